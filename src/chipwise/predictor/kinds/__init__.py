"""Predictions for workload files: a file for each family of work, and those for what they share."""
