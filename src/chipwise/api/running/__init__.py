"""The verbs of running: submit, list, follow, stop, resume, retry; and the controller that carries jobs out."""
