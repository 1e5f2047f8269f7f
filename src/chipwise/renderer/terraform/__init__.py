"""Pieces of Terraform modules: the writer of its language, the script a machine starts with, and one file per platform."""
