"""chipwise: pick the right accelerator for a workload, and know why."""

__version__ = "0.1.0"
