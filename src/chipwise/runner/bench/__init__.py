"""The same work at several places: what was asked, what came of it, and the rows that calibration reads."""
