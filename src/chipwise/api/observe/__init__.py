"""Watching: what is sampled, of what, and where it goes."""
