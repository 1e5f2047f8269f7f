"""Engines: what carries jobs out. One folder each, with all that is of that engine alone; its name is what the user types.

Its package has `connect(config) -> Engine`, `TRAITS`, and what else of `runner/abilities.py` it can do. It imports no SDK by
itself, and parts of its folder by relative imports, so that a copy of the folder under another name is another engine at once.
"""
