"""Pieces of Kubernetes objects that several targets put together."""
