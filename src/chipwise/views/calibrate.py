"""Factors of the user's own runs as plain data: what `chipwise calibrate --json` prints."""

from __future__ import annotations

import math
from typing import Any

from chipwise.calibration.own import OwnFactors as OwnFactors
from chipwise.calibration.own import Trial as Trial
from chipwise.calibration.own_file import Calibration
from chipwise.calibration.stored import Stored

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


def calibration_view(calibration: Calibration) -> View:
    return {
        "file": calibration.measured.name,
        "rows": len(calibration.measured.rows),
        "used": calibration.used,
        "refused": [{"reason": reason, "rows": count} for reason, count in calibration.refused],
        "held_out": _held_out(calibration.trial),
        "stored": calibration.path is not None,
        "path": str(calibration.path) if calibration.path else None,
        "why_not": calibration.why_not or None,
        "cautious": calibration.factors.cautious,
        "factors": _factors(calibration.factors),
    }


def stored_view(stored: Stored) -> View:
    return {
        "file": stored.file,
        "date": stored.date,
        "used": stored.rows,
        "versions": {"chipwise": stored.chipwise, "factors": stored.factors_digest},
        "held_out": _held_out(stored.trial),
        "cautious": stored.factors.cautious,
        "factors": _factors(stored.factors),
    }
