"""Puts the parts together: the packaged catalog, the user's own files, what the feeds brought.

The only module that imports adapters, and each when it is first needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from chipwise.api.config import Config, read_config
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.names import Names

if TYPE_CHECKING:
    from chipwise.catalog.machine import Machine
    from chipwise.catalog.offer import Offer
    from chipwise.catalog.region import Region
    from chipwise.workload.model.registry import Model, Registry


@dataclass(frozen=True)
class Session:
    """What one command or one program works with. `problems` tells what of the user's data could not be read."""

    config: Config
    today: date
    problems: list[str]

    @cached_property
    def catalog(self) -> Catalog:
        from chipwise.catalog.load import load

        machines: list[Machine] = []
        regions: list[Region] = []
        offers: list[Offer] = []
        if self.config.feeds_dir.is_dir():
            from chipwise.adapters.stores import snapshots

            stored, problems = snapshots.load(self.config.feeds_dir)
            self.problems.extend(problems)
            for snapshot in sorted(stored, key=lambda one: one.taken):
                machines.extend(snapshot.machines)
                regions.extend(snapshot.regions)
                offers.extend(snapshot.offers)
        if not self.config.catalog_dir.is_dir():
            return load((), machines, regions, offers)
        from chipwise.api.own import join

        return join(self.config.catalog_dir, machines, regions, offers, self.today)

    @cached_property
    def names(self) -> Names:
        return Names(self.catalog)

    @cached_property
    def models(self) -> Registry:
        from chipwise.workload.model.registry import load

        return load(tuple(sorted(self.config.models_dir.glob("*.y*ml"))))

    def find_model(self, name: str, online: bool = True) -> Model:
        """A model by registry name, by a config.json on disk, or, where `name` is a hub id nobody knows, from the hub."""
        from chipwise.api.model import find

        return find(name, self.models, online)


def open_session() -> Session:
    from chipwise.adapters.clock import today

    return Session(read_config(), today(), [])
