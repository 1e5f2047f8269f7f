"""Engines: what carries jobs out. The file name is the name that the user types; each defines `connect(config) -> Engine`."""
