"""A world that is played: what the `simulated` engine is made of."""
