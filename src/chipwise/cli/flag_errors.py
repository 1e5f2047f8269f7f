"""Errors about what a flag stated, told by the flag instead of by the field of a workload that it became."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from chipwise.api import OPTION_FIELDS, Constraints, items
from chipwise.errors import BadInput, InvalidFile, Problem, UnknownName

_COMMAND_LINE = "command line"  # what a workload that flags state is called
_NAMES = {"clouds": "--cloud", "regions": "--region", "countries": "--country", "chips": "--chip"}
LONGEST = 60  # characters of a stated limit that are shown
_SINGLE = ("market", "commit", "max_price_age", "large")


def by_flag(error: BadInput, constraints: Constraints, options: Mapping[str, Any]) -> BadInput:
    """The same error, with the flag that stated what is wrong; as it is where no flag did."""
    if isinstance(error, UnknownName):
        for name, flag in _NAMES.items():
            if error.name in [item.replace(":", "/") for item in items(getattr(constraints, name))]:
                return BadInput(f"{flag}: {error.message}", remedy=error.remedy)
        return error
    if not isinstance(error, InvalidFile):
        return error
    flags = _flags(constraints, options)
    problems = [(problem, _flag_of(problem.field, flags)) for problem in error.problems]
    if error.path != _COMMAND_LINE and not any(flag for _, flag in problems):
        return error
    return BadInput("\n".join(_line(error.path, problem, flag) for problem, flag in problems), remedy=error.remedy)


def _line(path: str, problem: Problem, flag: str | None) -> str:
    if flag is not None:
        return str(replace(problem, field=flag))
    return f"{path}: {problem}" if path == _COMMAND_LINE or problem.line is None else f"{path}:{problem.line}: {problem}"


def _flag_of(field: str, flags: Mapping[str, str]) -> str | None:
    return next((flag for start, flag in flags.items() if field == start or field.startswith((f"{start}.", f"{start}["))), None)


def _flags(constraints: Constraints, options: Mapping[str, Any]) -> dict[str, str]:
    """By field of the workload, the flags that were given."""
    stated = asdict(constraints)
    flags = {
        f"limits.{limit.partition('=')[0].strip()}": f"--limit {limit if len(limit) <= LONGEST else limit[:LONGEST] + '...'}"
        for limit in constraints.limits
    }
    flags |= {f"limits.{name}": flag for name, flag in _NAMES.items() if stated[name]}
    flags |= {f"limits.{name}": f"--{name.replace('_', '-')}" for name in _SINGLE if stated[name]}
    return flags | {
        field: f"--{name.replace('_', '-')}" for name, fields in OPTION_FIELDS.items() if options.get(name) for field in fields
    }
