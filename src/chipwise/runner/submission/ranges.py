"""Numbers of workers and moves after a loss, as people type them: 4, 2-4; same,zone,fewer."""

from __future__ import annotations

import re

from chipwise.errors import BadInput
from chipwise.runner.job import Move
from chipwise.spelling import nearest

WORKERS_LIMIT = 1024


def workers(text: str, option: str) -> tuple[int, int | None]:
    """The number that is wanted, and the least that will do: None where it is to be exactly as many."""
    match = re.fullmatch(r"\s*(\d{1,40})\s*(?:-\s*(\d{1,40})\s*)?", text, re.ASCII)
    if match is None:
        raise BadInput(f"{option} is {text[:40]!r}.", remedy=f"Write a number, or a minimum and a maximum: {option} 2-4.")
    minimum, maximum = int(match[1]), int(match[2] or match[1])
    if minimum > maximum:
        raise BadInput(
            f"{option} is {text.strip()}: the minimum is above the maximum.", remedy=f"Write {option} {maximum}-{minimum}."
        )
    return _limited(maximum, option), (minimum if match[2] is not None and minimum < maximum else None)


def minimum_workers(text: str, option: str) -> int:
    """Of a workload, whose plan says the most: the least that it can do with, written 2-."""
    match = re.fullmatch(r"\s*(\d{1,40})\s*-\s*", text, re.ASCII)
    if match is None:
        raise BadInput(
            f"{option} is {text[:40]!r}, but the plan sets the number for a workload.",
            remedy=f"Leave it out, or give a minimum: {option} 2-.",
        )
    return _limited(int(match[1]), option)


def _limited(number: int, option: str) -> int:
    if number > WORKERS_LIMIT:
        raise BadInput(f"{option} is {number:,}, and at most {WORKERS_LIMIT:,} can be asked for.", remedy="Ask for fewer.")
    return number


def moves(text: str, option: str = "--recover") -> tuple[Move, ...]:
    """In the order in which they are tried."""
    names = [word.strip().lower() for word in text.split(",") if word.strip()]
    known = [str(one) for one in Move]
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise BadInput(f"{option} has {name[:40]!r}, which is no move.", remedy=f"{hint}There are: {', '.join(known)}.")
    if len(set(names)) != len(names):
        raise BadInput(f"{option} names a move twice: {text[:80]}.", remedy="Name each once.")
    return tuple(Move(name) for name in names)
