"""The verbs of serving on this machine: start, status, scale, roll out, stop. Replicas and the gateway are jobs of the record."""
