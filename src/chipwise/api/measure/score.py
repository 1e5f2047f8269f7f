"""`score` as a verb: predictions of this session scored against a file of measurements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.calibration.measured import LARGEST as LARGEST
from chipwise.calibration.measured import read
from chipwise.calibration.scored_file import Ask as Ask
from chipwise.calibration.scored_file import Report, check_ask, score_file
from chipwise.calibration.scored_file import Score as Score

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def score(session: Session, path: str, typed: bytes | None, ask: Ask, report: Report) -> Score:
    """`typed` is standard input where the path is a dash."""
    check_ask(ask)
    measured = read(session.parts, session.names, path, typed)
    return score_file(measured, ask, session.parts, lambda: session.known.model, report)
