"""The performance model with what the user measured."""

from __future__ import annotations

from chipwise import __version__
from chipwise.api.session.config import Config
from chipwise.calibration.calibrated import calibrated
from chipwise.calibration.fingerprint import fingerprint
from chipwise.calibration.profiles import offsets
from chipwise.calibration.stored import stored
from chipwise.perf.model import Model, packaged
from chipwise.perf.part import Parts


def own_model(config: Config, parts: Parts, problems: list[str]) -> Model:
    """The packaged model with the user's runs and profiles on top; the packaged one itself where there are none.

    What cannot be used, or is out of date, is added to `problems`."""
    calibration = stored(config.calibration)
    if calibration is not None and calibration.factors_digest != fingerprint():
        problems.append(
            f"Your calibration of {calibration.date} was made with other factors than chipwise {__version__} has."
            f" Run: chipwise calibrate {calibration.file}"
        )
    factors = calibration.factors if calibration else None
    return calibrated(packaged(), factors, offsets(config.profiles, parts, problems))
