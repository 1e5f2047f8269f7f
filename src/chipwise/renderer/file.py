"""What rendering gives: files, or the reason why a target cannot say what the plan says."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.errors import CannotRender as CannotRender


@dataclass(frozen=True, slots=True)
class File:
    """`path` is relative to where the files go and has no `..`; lines end in a newline."""

    path: str
    text: str
    executable: bool = False
