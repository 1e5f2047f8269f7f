"""Policies on traces: what each would have cost."""
