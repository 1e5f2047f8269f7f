"""Runs a program that nobody has described, and measures what it does: its time, its resources and its operations.

`running` starts it and ends it with all its children, `counters` reads those of the processor, and `injected`
is put on the path of Python programs, where it counts the operations of PyTorch and NumPy without a change to the program.
"""
