"""A workload from options instead of a file, and options over a file: as the text of a workload, checked as any other."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from chipwise.errors import BadInput, InvalidFile
from chipwise.workload.source import read_text, read_yaml

GOALS = ("ttft", "tpot", "latency")
PERCENTILE = "p90"  # of a goal that an option states


def text_of(model: str, options: Mapping[str, Any]) -> str:
    """The workload that `chipwise plan MODEL --serve ...` asks for. Options that were not given are absent."""
    kinds = [kind for kind in ("serve", "train", "finetune") if options.get(kind)]
    if len(kinds) != 1:
        raise BadInput(
            f"{model} is not a workload file." if not kinds else f"--{' and --'.join(kinds)} exclude each other.",
            remedy="Give a file, or a model with one of --serve, --train and --finetune.",
        )
    kind = kinds[0]
    work: dict[str, Any] = {"kind": kind, "name": "command-line", "model": model}
    if kind == "serve":
        work |= _needed(options, {"rps": "--rps", "input": "--input", "output": "--output"})
        work = {
            **{key: work[key] for key in ("kind", "name", "model")},
            "arrival": {"rate": work["rps"]},
            "input_tokens": work["input"],
            "output_tokens": work["output"],
        }
    else:
        work |= _needed(options, {"tokens": "--tokens"})
        if options.get("seq"):
            work["sequence_length"] = options["seq"]
        if kind == "finetune":
            work["method"] = options["finetune"]
    goals: dict[str, Any] = {name: {PERCENTILE: options[name]} for name in GOALS if options.get(name)}
    goals |= {name: options[name] for name in ("deadline", "budget") if options.get(name)}
    if goals:
        work["goals"] = goals
    if options.get("precision"):
        work["precision"] = options["precision"]
    return yaml.safe_dump(work, sort_keys=False)


def _needed(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    lacking = [flag for name, flag in names.items() if not options.get(name)]
    if lacking:
        raise BadInput(f"{', '.join(lacking)} is needed.", remedy="Say how much there is to do.")
    return {name: options[name] for name in names}


def with_limits(text: str, path: str, limits: Sequence[str]) -> str:
    """The same workload with `key=value` set under `limits`, as JSON, which is YAML; values are YAML: [aws, gcp] is a list."""
    if not limits:
        return text
    data = dict(read_yaml(text, path).data)
    under = data.get("limits")
    changed = dict(under) if isinstance(under, Mapping) else {}
    for one in limits:
        key, equals, value = one.partition("=")
        if not equals or not key.strip():
            raise BadInput(
                f"--limit {one} has no value.", remedy="Write key=value, such as clouds=[aws, gcp] or interruptible=false."
            )
        try:
            found = read_yaml(f"value: {value}", "--limit").data
        except InvalidFile as error:
            raise _unreadable(one) from error
        if len(found) > 1:  # a line break, and another field behind it
            raise _unreadable(one)
        changed[key.strip()] = found["value"]
    return flat({**data, "limits": changed})


def flat(data: Mapping[str, Any]) -> str:
    """As JSON that is YAML as well: JSON escapes a sign such as an emoji in two halves, which YAML does not take for one."""
    return re.sub(r"[^ -~]", lambda sign: f"\\U{ord(sign[0]):08x}", json.dumps(data, ensure_ascii=False))


def _unreadable(limit: str) -> BadInput:
    shown = limit if len(limit) <= 60 else f"{limit[:57]}..."
    return BadInput(f"--limit {shown} cannot be read.", remedy="Write the value as YAML, such as [aws, gcp].")


def read(path: str) -> str:
    """A workload file's text."""
    return read_text(path)
