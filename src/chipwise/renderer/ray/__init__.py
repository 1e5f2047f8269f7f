"""Pieces of Ray: the cluster of a plan as KubeRay takes it, and the program that starts one command on every worker."""
