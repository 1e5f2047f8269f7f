"""What planning and prediction may know: facts, names, models and the day. A value that whoever opens a session passes in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, Protocol

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.names import Names
from chipwise.perf.model import Model as SpeedModel
from chipwise.perf.model import packaged
from chipwise.perf.part import Parts
from chipwise.workload.model.registry import Model, Registry


def parts_of(catalog: Catalog) -> Parts:
    return catalog.derived("parts", lambda: Parts(catalog.chips.values()))


class Models(Protocol):
    """Where models are found: a registry, files and, in a session that may go online, a hub."""

    @property
    def registry(self) -> Registry: ...

    def find(self, name: str, online: bool = True) -> Model: ...


@dataclass(frozen=True)
class Known:
    """`model` is the performance model: the packaged one, or one with the user's own measurements on top."""

    catalog: Catalog
    names: Names
    models: Models
    today: date
    load_model: Callable[[], SpeedModel] = packaged  # called once, when a prediction first needs it
    memo: dict[tuple[str, str], Any] = field(
        default_factory=dict, compare=False, repr=False
    )  # answers that are asked for again

    @cached_property
    def model(self) -> SpeedModel:
        return self.load_model()

    @cached_property
    def parts(self) -> Parts:
        """Chips as the performance model sees them, with parts that are measured but not sold."""
        return parts_of(self.catalog)

    def find_model(self, name: str, online: bool = True) -> Model:
        """A model by registry name, by a config.json on disk or, where `name` is a hub id nobody knows, from the hub."""
        return self.models.find(name, online)

    def with_model(self, model: Model) -> Known:
        """The same, with one model more: one that a workload file describes by its shape."""
        return self.changed(models=_OneMore(self.models, model))

    def changed(self, *, models: Models | None = None, parts: Parts | None = None, speed: SpeedModel | None = None) -> Known:
        """The same facts with other models, parts or speeds; answers are remembered apart."""
        changed = Known(
            catalog=self.catalog,
            names=self.names,
            models=models or self.models,
            today=self.today,
            load_model=lambda: speed or self.model,
        )
        changed.__dict__["parts"] = parts or self.parts  # built once
        return changed


@dataclass(frozen=True, slots=True)
class _OneMore:
    models: Models
    described: Model

    @property
    def registry(self) -> Registry:
        return self.models.registry

    def find(self, name: str, online: bool = True) -> Model:
        return self.described if name == self.described.name else self.models.find(name, online)
