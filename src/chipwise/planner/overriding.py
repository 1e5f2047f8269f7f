"""Options over a whole workload: the rate, lengths, precision and goals that they state in place of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chipwise.errors import BadInput
from chipwise.files.source import read_yaml
from chipwise.planner.options import GOALS, KINDS, flat, goals_of, with_changes, without_field

_OVER_SERVICE = ("rps", "input", "output")  # options of a service that replace what a file says
OVER_FILE = (*_OVER_SERVICE, "precision", *GOALS, "deadline", "confidence", "budget")  # that replace what any file says
_ENDLESS = ("serve", "stream", "interactive")  # kinds that run without an end
_WITH_PRECISION = (*KINDS, "hpc")  # kinds that state one precision


def replacing_file(options: Iterable[str]) -> frozenset[str]:
    """Of these options those that replace what a file says."""
    return frozenset(options) & frozenset(OVER_FILE)


def over_workload(text: str, path: str, options: Mapping[str, Any]) -> str:
    """The same workload with the rate, lengths, precision and goals of these options in place of its own."""
    stated = {name: options[name] for name in OVER_FILE if options.get(name) is not None}
    if not stated:
        return text
    _refuse_for_kind(str(read_yaml(text, path).data.get("kind")), path, stated)
    text = with_goals(with_service(text, path, stated), path, goals_of(stated))
    precision = stated.get("precision")
    if precision is None:
        return text
    changed = with_changes(text, path, {"precision": precision}, "")
    if str(precision).lower() != "any":
        return changed
    without = {name: value for name, value in read_yaml(changed, path).data.items() if name != "precision"}
    return with_changes(flat(without), path, {"precision": "any"})


def _refuse_for_kind(kind: str, path: str, stated: Mapping[str, Any]) -> None:
    """Goals that nothing of this kind is held against would be dropped without a word."""
    if "deadline" in stated and kind in _ENDLESS:
        raise BadInput(f"--deadline is for a job, and {path} is a service.", remedy="Leave it out: a service has no end.")
    if (goals := [f"--{name}" for name in ("ttft", "tpot") if name in stated]) and kind != "serve":
        raise BadInput(f"{', '.join(goals)} is for a service, and {path} is none.", remedy="Leave the option out.")
    if "precision" in stated and kind not in _WITH_PRECISION:
        raise BadInput(f"--precision does not go with {kind}, and {path} is of this kind.", remedy="Leave the option out.")


def with_service(text: str, path: str, options: Mapping[str, Any]) -> str:
    """The same service with this rate and these lengths in place of the file's own."""
    stated = {name: options[name] for name in _OVER_SERVICE if options.get(name) is not None}
    if not stated:
        return text
    data = dict(read_yaml(text, path).data)
    if data.get("kind") != "serve":
        flags = ", ".join(f"--{name}" for name in stated)
        raise BadInput(f"{flags} is for a service, and {path} is none.", remedy="Change the file, or leave the option out.")
    fields = {f"{name}_tokens": value for name, value in stated.items() if name != "rps"}
    if "rps" in stated:
        own = data.get("arrival")
        bursts = {key: value for key, value in own.items() if key == "burstiness"} if isinstance(own, Mapping) else {}
        fields["arrival"] = {"rate": stated["rps"], **bursts}
    if isinstance(environments := data.get("environments"), Mapping):
        for field in fields:
            environments = {name: without_field(over, (field,)) for name, over in environments.items()}
        data["environments"] = environments
    return flat({**data, **fields})


def with_goals(text: str, path: str, goals: Mapping[str, Any]) -> str:
    """The same workload with these goals in place of the file's own of the same name."""
    return with_changes(text, path, goals, "goals") if goals else text
