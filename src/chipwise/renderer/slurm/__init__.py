"""Pieces of Slurm that several targets put together."""
