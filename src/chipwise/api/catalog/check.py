"""`check` as a verb: a workload file held against everything that this session knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.files.source import MAX_BYTES as MAX_BYTES
from chipwise.planner import check as checking
from chipwise.planner.check import Checked as Checked

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def check(
    session: Session, path: str, environment: str | None = None, online: bool = False, text: str | None = None
) -> Checked:
    """The workload, or InvalidFile with every problem of every environment at once.

    With `text` the file is not read: `path` is what messages call it, and relative names start in its folder.
    """
    return checking.check(session.known, path, environment, online, text)
