"""A real Kubernetes on the loopback, for end-to-end tests; the programs come from `make cluster`."""
