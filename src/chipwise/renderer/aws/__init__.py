"""Pieces of AWS deployments that several targets put together."""
