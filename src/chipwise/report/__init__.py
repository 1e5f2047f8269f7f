"""A plan as one HTML page that opens offline: tables, charts, and the questions that decided."""
