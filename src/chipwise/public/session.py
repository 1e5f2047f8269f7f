"""The verbs as methods of one object, and the session whose verbs are those of the package."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from chipwise.errors import BadInput
from chipwise.public import deploying, jobs, listing, measuring, planning, upkeep
from chipwise.public.opened import Opened


@dataclass(frozen=True, slots=True)
class Session(Opened):
    """All verbs, with directories and a day of their own: `cw.open(data_dir="data", as_of="2026-11-15").plan(...)`."""

    chips = listing.chips
    machines = listing.machines
    offers = listing.offers
    regions = listing.regions
    models = listing.models
    explain = listing.explain
    catalog_refresh = listing.catalog_refresh
    catalog_import = listing.catalog_import
    catalog_forget = listing.catalog_forget
    catalog_status = listing.catalog_status
    catalog_show = listing.catalog_show

    check = planning.check
    plan = planning.plan
    compare = planning.compare
    rate = planning.rate
    pack = planning.pack
    tco = planning.tco
    predict = planning.predict
    fits = planning.fits

    render = deploying.render
    targets = deploying.targets
    audit = deploying.audit

    run = jobs.run
    simulate = jobs.simulate
    ps = jobs.ps
    find_job = jobs.find_job
    logs = jobs.logs
    describe = jobs.describe
    stop = jobs.stop
    resume = jobs.resume
    retry = jobs.retry
    attach = jobs.attach
    top = jobs.top
    forget = upkeep.forget
    prepare = upkeep.prepare
    reap = upkeep.reap
    members = upkeep.members
    members_add = upkeep.members_add
    members_remove = upkeep.members_remove

    bench = measuring.bench
    profile = measuring.profile
    calibrate = measuring.calibrate
    score = measuring.score

    jobs = jobs.ps  # a word that is easier to remember


DEFAULT: Session = Session()


def open_session(
    *, config_dir: str | Path | None = None, data_dir: str | Path | None = None, as_of: str | date | None = None
) -> Session:
    """A session with the same verbs: its own directories instead of the user's, and a day that prices are looked at from.

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
