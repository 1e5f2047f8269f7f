"""Factors of the user's own runs as plain data: what `chipwise calibrate --json` prints."""

from __future__ import annotations

import math
from typing import Any

from chipwise.api.measure.calibrate import Calibration
from chipwise.api.session.calibration import Stored
from chipwise.calibration.own import OwnFactors, Trial

View = dict[str, Any]


def _factors(factors: OwnFactors) -> list[View]:
    return [
        {"level": level, "name": name, "factor": math.exp(log), "log_sd": deviation}
        for level, name, log, deviation in factors.factors()
    ]


def _held_out(trial: Trial | None) -> View | None:
    if trial is None:
        return None
    names = ("groups", "median_before", "median_after", "mean_before", "mean_after")
    return {name: getattr(trial, name) for name in names} | {"worse": trial.worse}


def calibration_view(found: Calibration) -> View:
    return {
        "file": found.measured.name,
        "rows": len(found.measured.rows),
        "used": found.used,
        "refused": [{"reason": reason, "rows": count} for reason, count in found.refused],
        "held_out": _held_out(found.trial),
        "stored": found.path is not None,
        "path": str(found.path) if found.path else None,
        "why_not": found.why_not or None,
        "cautious": found.factors.cautious,
        "factors": _factors(found.factors),
    }


def stored_view(kept: Stored) -> View:
    return {
        "file": kept.file,
        "date": kept.date,
        "used": kept.rows,
        "versions": {"chipwise": kept.chipwise, "factors": kept.factors_digest},
        "held_out": _held_out(kept.trial),
        "cautious": kept.factors.cautious,
        "factors": _factors(kept.factors),
    }
