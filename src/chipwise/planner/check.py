"""A workload file held against everything we know: its own rules, the models, the chips, the clouds, the regions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from chipwise.catalog.names import find_retired
from chipwise.countries import country_of
from chipwise.errors import BadInput, InvalidFile, OutsideFailed, Problem, UnknownName
from chipwise.predictor.known import Known
from chipwise.predictor.sizes import named_sizes
from chipwise.spelling import fold, nearest
from chipwise.workload.limits import MOST_NEEDS
from chipwise.workload.model.spelled import names_file
from chipwise.workload.parse import EnvironmentData, Parsed, load_with_lines, parse_with_lines
from chipwise.workload.pipeline import Workload
from chipwise.workload.references import Reference, ReferenceKind, references


@dataclass(frozen=True, slots=True)
class Checked:
    """A workload without a problem. `notes` are not mistakes, yet worth knowing."""

    parsed: Parsed
    workload: Workload
    parameters: dict[str, int]  # of every model that was resolved, by the name in the file
    notes: tuple[str, ...]


def check(known: Known, path: str, environment: str | None = None, online: bool = False, text: str | None = None) -> Checked:
    """The workload, or InvalidFile with every problem of every environment at once.

    With `text` the file is not read: `path` is what messages call it, and relative names start in its folder.
    """
    look = _Look(known, environment, online)
    parsed = load_with_lines(path, environment, look) if text is None else parse_with_lines(text, path, environment, look)
    return Checked(parsed, parsed.workload, look.parameters, tuple(look.notes))


@dataclass(slots=True)
class _Look:
    """Resolves the names in a file as it is laid out; gathers what is worth knowing on the way."""

    known: Known
    environment: str | None  # the one asked for: its models are told
    online: bool
    parameters: dict[str, int] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    needs: dict[str, tuple[str, str, tuple[str, ...]] | None] = field(default_factory=dict)  # what each lacks

    def __call__(self, laid: EnvironmentData) -> Iterator[Problem]:
        for reference in references(laid.data):
            yield from self._resolve(laid, reference)

    def _resolve(self, variant: EnvironmentData, reference: Reference) -> Iterator[Problem]:
        text, names, catalog = reference.text, self.known.names, self.known.catalog

        def unknown(what: str, near: tuple[str, ...], allowed: str | None = None) -> Problem:
            return variant.problem(reference.field_path, f"no {what} is called {text!r}", allowed, near)

        match reference.kind:
            case ReferenceKind.MODEL:
                yield from self._model(variant, reference)
            case ReferenceKind.SHAPE:
                yield from self._shape(variant, reference)
            case ReferenceKind.CHIP:
                if (names.chips_of if "limits" in reference.field_path else names.chips_or_none)(text) is None:
                    yield unknown("chip", names.nearest_chips(text))
                elif (retired := find_retired(text, catalog.data)) is not None:
                    self.notes.setdefault(f"{retired.name} is old: {retired.reason}. Use {retired.successor}.")
            case ReferenceKind.PROVIDER:
                if names.provider_or_none(text) is None:
                    yield unknown("cloud", nearest(text, catalog.providers), ", ".join(catalog.providers))
            case ReferenceKind.REGION:
                provider = None if reference.provider is None else names.provider_or_none(reference.provider)
                if reference.provider is not None and provider is None:
                    return  # the cloud itself is unknown, and that has been said
                if names.regions_or_none(text if provider is None else f"{provider}/{text}") is None:
                    if provider is None and country_of(text) is not None:
                        yield variant.problem(reference.field_path, f"no region of the catalog is in {text!r}")
                        return
                    listed = [region.name for region in catalog.regions if provider in (None, region.provider)]
                    yield unknown(f"region of {provider}" if provider else "region", nearest(text, listed))
            case ReferenceKind.QPU:
                devices = [row.device for row in catalog.rows("quantum")]
                if not any(fold(text) in fold(device) for device in devices):
                    yield unknown("quantum device", nearest(text, devices), ", ".join(devices))
            case ReferenceKind.NEED:
                yield from self._need(variant, reference)
            case ReferenceKind.TRACE:
                file = Path(variant.path).parent / text
                if not file.is_file():
                    allowed = "a CSV file; a relative path starts at the workload file"
                    description = f"{str(file)!r} is {'a folder' if file.is_dir() else 'no plain file'}"
                    message = description if file.exists() else f"there is no file {str(file)!r}"
                    yield variant.problem(reference.field_path, message, allowed)

    def _need(self, variant: EnvironmentData, reference: Reference) -> Iterator[Problem]:
        text = reference.text
        if text not in self.needs:
            if len(self.needs) >= MOST_NEEDS:  # each is held against every chip; that they are too many is told elsewhere
                return
            self.needs[text] = self._lack(text)
        problem = self.needs[text]
        if problem is not None:
            yield variant.problem(reference.field_path, *problem)

    def _lack(self, text: str) -> tuple[str, str, tuple[str, ...]] | None:
        """What is wrong with a requirement, what would do, and what looks like it; None: nothing."""
        from chipwise.planner.rules import required

        try:
            required(self.known, [text])
        except UnknownName as error:
            return error.message.rstrip("."), ", ".join(error.known), error.nearest
        except BadInput as error:
            return error.message.removeprefix("limits.requires: ").rstrip("."), (error.remedy or "").rstrip("."), ()
        return None

    def _model(self, variant: EnvironmentData, reference: Reference) -> Iterator[Problem]:
        text = reference.text
        path = Path(variant.path).parent / text
        is_path = names_file(text) or ("/" in text and path.exists())
        try:
            model = self.known.find_model(str(path) if is_path else text, self.online)
            if variant.environment == self.environment:
                self.parameters[text] = model.shape.parameters
            if _below(variant.data, reference.field_path[:-1]).get("steps") and "steps" not in named_sizes(model.shape):
                yield variant.problem((*reference.field_path[:-1], "steps"), f"{model.name} makes no pictures in steps")
        except UnknownName as error:
            if text.count("/") == 1:
                self.notes.setdefault(f"{text} is not in the registry; with --online its shape is read from the hub.")
            else:
                allowed = "a registry name, a hub id, a config.json, an ONNX file or a shape"
                yield variant.problem(reference.field_path, error.message.rstrip("."), allowed, error.nearest)
        except OutsideFailed as error:
            self.notes.setdefault(f"{text} could not be looked up: {error}")
        except InvalidFile as error:
            yield from (variant.problem(reference.field_path, f"{path}: {problem}") for problem in error.problems)
        except BadInput as error:
            yield variant.problem(reference.field_path, str(error))

    def _shape(self, variant: EnvironmentData, reference: Reference) -> Iterator[Problem]:
        from chipwise.workload.model.inline import shape_from_mapping

        try:
            shape = shape_from_mapping(reference.shape or {}, variant.path)
            if variant.environment == self.environment:
                self.parameters[f"shape in {reference.field}"] = shape.parameters
        except InvalidFile as error:
            for problem in error.problems:
                located = variant.problem(
                    (*reference.field_path, problem.field), problem.message, problem.allowed, problem.nearest
                )
                yield replace(located, field=f"{reference.field}.{problem.field}")
        except BadInput as error:
            yield variant.problem(reference.field_path, str(error))


def _below(data: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
    """The part of a workload that a path leads to."""
    for step in path:
        data = data[step]
    return data if isinstance(data, Mapping) else {}
