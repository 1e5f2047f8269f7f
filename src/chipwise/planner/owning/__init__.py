"""Machines of one's own: what they cost over their life, and the rents that this is held against."""
