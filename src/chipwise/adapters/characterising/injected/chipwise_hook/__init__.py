"""Counts what a Python program does, inside it. Nothing of chipwise is imported: its interpreter may not have it."""
