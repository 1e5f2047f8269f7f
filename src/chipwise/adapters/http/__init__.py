"""HTTP doors on the level of bytes: a gateway in front of replicas, and a client that sends load."""
