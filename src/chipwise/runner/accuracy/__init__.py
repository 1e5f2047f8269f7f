"""Predictions held against one's own runs: how far off, how often inside the interval, and since when another."""
