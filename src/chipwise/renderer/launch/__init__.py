"""How a program is started on one machine or on many, whichever system starts it."""
