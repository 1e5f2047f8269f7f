"""Options of the commands, by the column of a setup that each fills; flags and workload files share them."""

from __future__ import annotations

LEARNING_OPTIONS = {
    "seq": "seq", "micro_batch": "micro_batch", "zero": "shard", "interleave": "interleave", "method": "method",
    "optimizer": "optimizer", "tp": "tp", "pp": "pp", "cp": "cp", "ep": "ep", "precision": "precision",
}  # fmt: skip
SERVING_OPTIONS = {
    "tp": "tp", "pp": "pp", "ep": "ep", "precision": "precision_weights", "kv": "precision_kv", "input_tokens": "input_len",
    "output_tokens": "output_len", "prefix": "prefix_len",
}  # fmt: skip
LOADS = ("concurrency", "rate", "batch")  # ways of loading a replica; they exclude each other
