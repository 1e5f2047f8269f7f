"""The performance model that a session uses: the packaged one, with what the user measured on top."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.perf.model import Model, packaged

if TYPE_CHECKING:
    from chipwise.api.wiring import Session


def own_model(session: Session) -> Model:
    """The packaged model with what the user measured on top, read once."""
    known: Model | None = session.resolved.get(("model", ""))
    if known is None:
        known = session.resolved["model", ""] = _with_own(session)
    return known


def _with_own(session: Session) -> Model:
    """Most users have measured nothing, and what reads measurements is much to load."""
    if not session.config.calibration.exists() and not session.config.profiles.exists():
        return packaged()
    from chipwise.api.calibration import own_model as read

    return read(session)
