"""Measurements against predictions: reading them, scoring, leaving out, and fitting a user's own runs."""
