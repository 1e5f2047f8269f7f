"""A deployment as a picture: what stands where, and what flows between."""
