"""This folder is put on PYTHONPATH of the program: only the standard library and what the program imports itself are there."""
