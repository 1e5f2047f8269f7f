"""Puts the parts together: the packaged catalog, the user's own files, what the feeds brought.

Adapters are imported by this layer only, each when it is first needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from chipwise.api.session.config import Config, read_config
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.feed import Snapshot
from chipwise.catalog.names import Names, names_of
from chipwise.catalog.offer import year_before
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chipwise.catalog.chip import Chip
    from chipwise.catalog.feed import Report
    from chipwise.catalog.machine import Machine
    from chipwise.catalog.offer import Offer
    from chipwise.catalog.region import Region
    from chipwise.perf.model import Model as SpeedModel
    from chipwise.perf.part import Parts
    from chipwise.predictor.known import Known
    from chipwise.workload.model.registry import Model, Registry


@dataclass(frozen=True)
class Session:
    """What one command or one program works with. `problems` tells what of the user's data could not be read."""

    config: Config
    today: date
    problems: list[str]
    report: Report | None = None  # told how far a long plan is

    @cached_property
    def catalog(self) -> Catalog:
        """The packaged catalog, what the feeds brought, and the user's own files, the later over the earlier."""
        from chipwise.catalog.load import load

        if not any(self.config.catalog_dir.glob("*.y*ml")):
            snapshot = self._stored_rows(())
            return load((), snapshot.machines, snapshot.regions, snapshot.offers)
        from chipwise.catalog.own import join, read, read_chips

        files = read(self.config.catalog_dir)
        chips = read_chips(files)
        return join(files, chips, self._stored_rows(chips), self.today)

    @cached_property
    def chip_names(self) -> Names:
        """Of chips alone, packaged and the user's own: for who looks at devices, and asks for no price."""
        if "catalog" in vars(self):
            return self.names
        from chipwise.catalog.load import chips_alone

        if not any(self.config.catalog_dir.glob("*.y*ml")):
            return names_of(chips_alone())
        from chipwise.catalog.own import read, read_chips

        return names_of(chips_alone(read_chips(read(self.config.catalog_dir))))

    @cached_property
    def stored(self) -> tuple[Snapshot, ...]:
        """The snapshots of the data directory, read once; of a file that cannot be read, `problems` tells."""
        if not self.config.feeds_dir.exists():
            return ()
        from chipwise.adapters.stores import snapshots

        loaded, problems = snapshots.load(self.config.feeds_dir)
        self.problems.extend(problems)
        return tuple(loaded)

    def _stored_rows(self, chips: Sequence[Chip]) -> Snapshot:
        """The rows of all stored snapshots, as one, that pass the integrity suite; of what does not, `problems` tells."""
        if not self.stored:
            return Snapshot("", self.today, (), ())
        from chipwise.catalog.integrity import sound
        from chipwise.catalog.load import load

        packaged = load(chips, prices=False)
        machines: list[Machine] = []
        regions: list[Region] = []
        offers: list[Offer] = []
        for snapshot in sorted(self.stored, key=lambda one: one.day):
            good, refused = sound(snapshot, packaged.chips, packaged.machine_index)
            if refused:
                message = f"{len(refused)} rows of the stored prices of {snapshot.provider} are skipped: {refused[0]}."
                self.problems.append(f"{message} Refresh or import them again.")
            machines.extend(good.machines)
            regions.extend(good.regions)
            offers.extend(good.offers)
        return Snapshot(provider="", day=self.today, machines=tuple(machines), offers=tuple(offers), regions=tuple(regions))

    @property
    def year_ago(self) -> int:
        """The day (yyyymmdd) from which on a price counts as fresh where the cheapest is named."""
        return year_before(self.today)

    @cached_property
    def names(self) -> Names:
        return names_of(self.catalog)

    @cached_property
    def known(self) -> Known:
        """What planning and prediction may know."""
        from chipwise.api.session.model import Models
        from chipwise.predictor.known import Known

        return Known(
            catalog=self.catalog,
            names=self.names,
            models=Models(lambda: self.models),
            today=self.today,
            load_model=self._speed_model,
        )

    def _speed_model(self) -> SpeedModel:
        """Most users have measured nothing, and what reads measurements is much to load."""
        from chipwise.perf.model import packaged

        if not self.config.calibration.exists() and not self.config.profiles.exists():
            return packaged()
        from chipwise.api.session.calibration import own_model

        return own_model(self.config, self.parts, self.problems)

    @property
    def parts(self) -> Parts:
        return self.known.parts

    @cached_property
    def models(self) -> Registry:
        from chipwise.workload.model.registry import load

        return load(tuple(sorted(self.config.models_dir.glob("*.y*ml"))))

    def find_model(self, name: str, online: bool = True) -> Model:
        """A model by registry name, by a config.json on disk, or, where `name` is a hub id nobody knows, from the hub."""
        return self.known.find_model(name, online)

    def models_called(self, name: str, online: bool = True) -> list[Model]:
        """The model of this name, else those of the registry whose name or family holds it (`llama`)."""
        wanted = fold(name)
        is_word = len(wanted) > 1 and wanted[0].isalpha()  # a number is a part of almost any name
        parts = [model for model in self.models if is_word and (wanted in fold(model.name) or wanted in fold(model.family))]
        try:
            return [self.find_model(name, online=online and not parts)]
        except UnknownName:
            if not parts:
                raise
            return parts


OPENED: list[Session] = []  # by this process: whoever shows results asks them for problems at the end


def open_session() -> Session:
    session = Session(*surroundings(), [])
    OPENED.append(session)
    _check_day(session)
    return session


def _check_day(session: Session) -> None:
    """A pinned day is one on which prices of the catalog were known and may still be: neither before the first of them, nor,
    unless today is, more than a year after the last, when all of them would be old."""
    from chipwise.adapters import clock
    from chipwise.catalog.offer import date_of

    if (day := clock.pinned()) is None:
        return
    days = [number for number in session.catalog.offers.as_of if number]
    if not days:
        return
    first, last = (date_of(number) for number in (min(days), max(days)))
    latest = max(last + timedelta(days=365), clock.real_today())
    if not first <= day <= latest:
        side = f"before the first price of the catalog, of {first}" if day < first else f"too late: the last price is of {last}"
        raise BadInput(f"--as-of: {day} is {side}.", remedy=f"Allowed: days from {first} to {latest}.")


def pin_today(day: str) -> None:
    """Lets today be another day, for this process."""
    from chipwise.adapters import clock

    clock.pin(day)


def surroundings() -> tuple[Config, date]:
    """The directories of the user's files and the day, as this process sees them now."""
    from chipwise.adapters.clock import today

    return read_config(), today()
