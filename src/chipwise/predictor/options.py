"""Options of the commands: the column of a setup that each fills, which go together, and what numbers they take.

Flags and workload files share them. What is found wrong with a column is told by the name it was given under: the flag that
was typed, or the field of the file.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import Any

from chipwise.errors import BadInput

LEARNING_OPTIONS = {
    "seq": "seq",
    "micro_batch": "micro_batch",
    "zero": "shard",
    "interleave": "interleave",
    "method": "method",
    "optimizer": "optimizer",
    "tp": "tp",
    "pp": "pp",
    "cp": "cp",
    "ep": "ep",
    "precision": "precision",
    "target": "target",
}
SERVING_OPTIONS = {
    "tp": "tp",
    "pp": "pp",
    "ep": "ep",
    "precision": "precision_weights",
    "kv": "precision_kv",
    "input_tokens": "input_len",
    "output_tokens": "output_len",
    "prefix": "prefix_len",
    "cuda_graphs": "cuda_graphs",
}
LOADS = ("concurrency", "rate", "batch")  # ways of loading a replica; they cannot be combined
GOALS = ("ttft", "tpot", "latency")  # seconds that a share of the requests must keep
SIZES = ("image_size", "steps", "guidance", "clip_s", "compiled")  # of work that is counted by samples
ONLY = {  # options that mean nothing to the other task
    "train": (
        "seq",
        "target",
        "micro_batch",
        "global_batch",
        "zero",
        "interleave",
        "recompute",
        "method",
        "optimizer",
        "framework",
        "cp",
    ),
    "serve": (
        "engine",
        *LOADS,
        "input_tokens",
        "output_tokens",
        "prefix",
        "kv",
        "replicas",
        "cuda_graphs",
        *GOALS,
        "percentile",
    ),
}
_AS_NAMED = ("global_batch", "recompute", "framework", "chips", "chips_per_node", "network", "engine", "replicas", *LOADS)
_COLUMNS = {column: key for options in (LEARNING_OPTIONS, SERVING_OPTIONS) for key, column in options.items()}
_COLUMNS |= {name: name for name in _AS_NAMED}
_FIELDS = {
    "seq": "sequence_length",
    "target": "target_length",
    "global_batch": "batch",
    "precision": "precision",
    "precision_weights": "precision",
    "precision_kv": "kv_precision",
    "optimizer": "optimizer",
    "method": "method",
    "recompute": "recompute",
    "input_len": "input_tokens",
    "output_len": "output_tokens",
    "prefix_len": "shared_prefix_tokens",
    "rate": "arrival.rate",
    "concurrency": "arrival.concurrency",
    "replicas": "replicas.min",
}
_MAY_BE_ZERO = ("zero", "prefix", "output_tokens")
_NOT_WHOLE = ("rate", "network", "percentile", "clip_s", *GOALS)
LARGEST = 1e12


def option(name: str) -> str:
    """As it is typed."""
    return f"--{name.removesuffix('_tokens').removesuffix('_s').replace('_', '-')}"


FLAGS = {column: option(key) for column, key in _COLUMNS.items()}


def names_beside(options: Container[str]) -> dict[str, str]:
    """What columns are called where a workload file is asked about with `options`: by flag, or by the file's field."""
    return {
        column: _FIELDS[column] if column in _FIELDS and key not in options else option(key) for column, key in _COLUMNS.items()
    }


def check_numbers(settings: Mapping[str, Any]) -> None:
    """Counts are whole and from 1 on, rates above 0; no option is infinite or not a number."""
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        lowest, is_whole = (0 if name in _MAY_BE_ZERO else 1), name not in _NOT_WHOLE
        highest = 3 if name == "zero" else 100 if name == "percentile" else LARGEST
        if (
            not math.isfinite(value)
            or value > highest
            or (value != math.floor(value) or value < lowest if is_whole else value <= 0)
        ):
            end = f"{highest:g}".replace("e+", "e")
            allowed = f"whole numbers from {lowest} to {end}" if is_whole else f"numbers above 0, up to {end}"
            raise BadInput(f"{option(name)}: {value:g} is not possible.", remedy=f"Allowed: {allowed}.")


def check_together(options: Mapping[str, Any]) -> None:
    """Refuses options of which one would win silently over another."""
    loads = [option(name) for name in LOADS if name in options]
    if len(loads) > 1:
        raise BadInput(f"{' and '.join(loads)} cannot be combined.", remedy="Give one way of loading it.")
    if "percentile" in options and not any(name in options for name in GOALS):
        flags = " or ".join(map(option, GOALS))
        raise BadInput("--percentile says how many requests must keep a goal, and none is given.", remedy=f"Add {flags}.")
    if "chips" in options and "replicas" in options:
        copy_chips = float(options.get("tp", 1)) * float(options.get("pp", 1))
        if options["chips"] != copy_chips * options["replicas"]:
            raise BadInput(
                f"--chips {options['chips']:g} is not --tp x --pp x --replicas = {copy_chips * options['replicas']:g}.",
                remedy="Leave out --chips or --replicas.",
            )


def check_task(options: Mapping[str, Any], task: str) -> None:
    """Refuses options that mean nothing to a task."""
    opposite = "serve" if task == "train" else "train"
    foreign = [option(name) for name in ONLY[opposite] if name in options]
    if foreign:
        does = "does" if len(foreign) == 1 else "do"
        raise BadInput(
            f"{', '.join(foreign)} {does} not go with --{task}.",
            remedy=f"Leave {'it' if len(foreign) == 1 else 'them'} out, or ask for --{opposite}.",
        )
