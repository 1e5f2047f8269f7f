"""Pieces of Argo workflows: stages as templates, hand-offs between them, and what a workflow may do."""
