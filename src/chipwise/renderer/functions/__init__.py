"""Functions and containers that are paid for while they work: Lambda, Cloud Run, Container Apps."""
