"""The verbs of serving on this machine: start, status, scale, roll out, stop. Replicas and gateways are jobs."""
