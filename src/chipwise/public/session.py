"""The verbs as methods of one object, and the session whose verbs are those of the package."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.public.calling import verb
from chipwise.public.deploying import DeployVerbs
from chipwise.public.diagnosing import DiagnoseVerbs
from chipwise.public.listing import CatalogVerbs
from chipwise.public.measuring import MeasureVerbs
from chipwise.public.observing import ObserveVerbs
from chipwise.public.planning import PlanVerbs
from chipwise.public.serving import ServeVerbs
from chipwise.public.simulating import SimulateVerbs
from chipwise.public.upkeep import UpkeepVerbs


@dataclass(frozen=True, slots=True)
class Session(
    CatalogVerbs,
    PlanVerbs,
    DeployVerbs,
    UpkeepVerbs,
    MeasureVerbs,
    ObserveVerbs,
    DiagnoseVerbs,
    SimulateVerbs,
    ServeVerbs,
):
    """All functions, with directories and a day of their own: `cw.open(data_dir="data", as_of="2026-11-15").plan(...)`."""


DEFAULT: Session = Session()


@verb
def open_session(
    *, config_dir: str | Path | None = None, data_dir: str | Path | None = None, as_of: str | date | None = None
) -> Session:
    """Open a session with the same functions, but its own directories, and prices as of the day `as_of`.

    >>> cw.open(as_of="2026-11-15").offers(chip="h100", limit=1)
    """
    config = None if config_dir is None else Path(config_dir).expanduser().absolute()
    if config is not None and not config.is_dir():
        raise BadInput(f"{config} is not a directory.", remedy="Create it, or leave config_dir out.")
    try:
        day = date.fromisoformat(as_of) if isinstance(as_of, str) else as_of
    except ValueError as error:
        raise BadInput(f"as_of={as_of!r} is not a date.", remedy="Write it like 2026-11-15.") from error
    return Session(config, None if data_dir is None else Path(data_dir).expanduser().absolute(), day)
