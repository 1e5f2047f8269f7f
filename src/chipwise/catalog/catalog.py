"""The catalog: everything that exists and what it costs, as one value that never changes after it was loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from chipwise.catalog.chip import Chip
from chipwise.catalog.fact import Source
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offers
from chipwise.catalog.region import Region
from chipwise.catalog.tables import TABLES, read_rows

Value = TypeVar("Value")


@dataclass(frozen=True)
class Catalog:
    """`machines` and `regions` are the tuples whose positions the offers' columns hold."""

    chips: Mapping[str, Chip]
    machines: tuple[Machine, ...]
    regions: tuple[Region, ...]
    offers: Offers
    data: Path  # the packaged data directory: the tables beside are read from it when first asked for

    @cached_property
    def machine_index(self) -> dict[tuple[str, str], int]:
        return {machine.key: i for i, machine in enumerate(self.machines)}

    @cached_property
    def region_index(self) -> dict[tuple[str, str], int]:
        return {region.key: i for i, region in enumerate(self.regions)}

    def owned(self, provider: str, machine: str, region: str) -> int | None:
        """How many of a machine of the user's own are there; None: not stated."""
        return self.machines[self.machine_index[provider, machine]].owned_in(region)

    @cached_property
    def providers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(machine.provider for machine in self.machines))

    @cached_property
    def sources(self) -> dict[str, Source]:
        return {source.id: source for source in read_rows(self.data / "sources.csv", Source)}

    @cached_property
    def _tables(self) -> dict[str, tuple[Any, ...]]:
        return {}

    def rows(self, table: str) -> tuple[Any, ...]:
        """All rows of one of the tables of `chipwise.catalog.tables`."""
        if table not in self._tables:
            self._tables[table] = tuple(read_rows(self.data / "tables" / f"{table}.csv", TABLES[table]))
        return self._tables[table]

    @cached_property
    def _derived(self) -> dict[str, Any]:
        return {}

    def derived(self, name: str, build: Callable[[], Value]) -> Value:
        """What follows from this catalog and nothing else, built when `name` is first asked for: sessions share the packaged
        catalog, and with it whatever was built from it."""
        if name not in self._derived:
            self._derived[name] = build()
        value: Value = self._derived[name]
        return value
