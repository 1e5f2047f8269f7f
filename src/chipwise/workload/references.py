"""The names in a workload that the model registry or the catalog must know, and where they stand.

They are found here and resolved elsewhere: workloads and the catalog do not know each other. They are found in the data of
the file rather than in the checked workload, so that a file with other mistakes gets all of its errors at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chipwise.files.source import FieldPath, show_where
from chipwise.workload.common import UNKNOWN_MODEL
from chipwise.workload.data import region_of


class ReferenceKind(StrEnum):
    MODEL = "model"
    SHAPE = "shape"  # a model given by its shape: nothing to look up, but its fields can be wrong
    CHIP = "chip"
    PROVIDER = "provider"
    REGION = "region"
    QPU = "qpu"
    NEED = "need"  # software or a feature that must be there
    TRACE = "trace"  # a file that must be there


@dataclass(frozen=True, slots=True)
class Reference:
    """A name as written. `field_path` leads to its line by `EnvironmentData.problem`; `provider`: of a region, where given."""

    kind: ReferenceKind
    text: str
    field_path: FieldPath
    provider: str | None = None
    shape: Mapping[str, object] | None = None

    @property
    def field(self) -> str:
        return show_where(self.field_path)


def references(data: Mapping[str, object]) -> list[Reference]:
    """Every name to resolve in the data of a file, those of stages included. What has the wrong type is passed over."""
    return list(_references_of(data, ()))


# The way to a name below a workload or a stage, and what it names.
_PLACES: Mapping[tuple[str, ...], ReferenceKind] = {
    ("measured", "on"): ReferenceKind.CHIP,
    ("classical", "measured", "on"): ReferenceKind.CHIP,
    ("quantum", "device"): ReferenceKind.QPU,
    ("limits", "clouds"): ReferenceKind.PROVIDER,
    ("limits", "regions"): ReferenceKind.REGION,
    ("limits", "chips"): ReferenceKind.CHIP,
    ("limits", "requires"): ReferenceKind.NEED,
    ("limits", "avoid", "clouds"): ReferenceKind.PROVIDER,
    ("limits", "avoid", "regions"): ReferenceKind.REGION,
    ("limits", "avoid", "chips"): ReferenceKind.CHIP,
}


def _references_of(part: Mapping[str, object], root: FieldPath) -> Iterator[Reference]:
    model = part.get("model")
    if isinstance(model, str) and model.strip() and not (model == UNKNOWN_MODEL and part.get("measured")):
        yield Reference(ReferenceKind.MODEL, model.strip(), (*root, "model"))
    elif isinstance(model, Mapping) and model:
        yield Reference(ReferenceKind.SHAPE, "", (*root, "model"), shape=model)
    for steps, kind in _PLACES.items():
        for field_path, text in _texts(_below(part, steps), (*root, *steps)):
            yield from _reference(kind, text, field_path)
    lines = part.get("measured")
    for index, line in enumerate(lines if isinstance(lines, list) else ()):
        for field_path, text in _texts(_below(line, ("on",)), (*root, "measured", index, "on")):
            yield from _reference(ReferenceKind.CHIP, text, field_path)
    place = _below(part, ("data", "place"))
    if isinstance(place, str) and region_of(place) is not None:
        yield from _reference(ReferenceKind.REGION, place, (*root, "data", "place"))
    yield from _of_quotas(_below(part, ("limits", "quotas")), (*root, "limits", "quotas"))
    trace = _below(part, ("arrival", "trace"))
    path = trace.get("path") if isinstance(trace, Mapping) else trace
    if isinstance(path, str) and path.strip():
        yield Reference(ReferenceKind.TRACE, path.strip(), (*root, "arrival", "trace"))
    stages = part.get("stages")
    if isinstance(stages, list) and not root:
        for index, stage in enumerate(stages):
            if isinstance(stage, Mapping):
                yield from _references_of(stage, ("stages", index))


def _of_quotas(quotas: object, root: FieldPath) -> Iterator[Reference]:
    for key in quotas if isinstance(quotas, Mapping) else ():
        *place, chip = str(key).split(":")
        yield Reference(ReferenceKind.CHIP, chip, (*root, key))
        if place:
            yield Reference(ReferenceKind.PROVIDER, place[0], (*root, key))
        if len(place) > 1:
            yield Reference(ReferenceKind.REGION, place[1], (*root, key), place[0])


def _below(value: object, steps: Sequence[str]) -> object:
    for step in steps:
        value = value.get(step) if isinstance(value, Mapping) else None
    return value


def _texts(value: object, field_path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """One text, or those of a list."""
    if isinstance(value, str) and value.strip():
        yield field_path, value.strip()
    elif isinstance(value, list):
        yield from (
            ((*field_path, index), text.strip()) for index, text in enumerate(value) if isinstance(text, str) and text.strip()
        )


def _reference(kind: ReferenceKind, text: str, field_path: FieldPath) -> Iterator[Reference]:
    """A region may carry its cloud: aws:eu-central-1."""
    cloud, colon, region = text.partition(":")
    if kind is ReferenceKind.REGION and colon:
        yield Reference(ReferenceKind.PROVIDER, cloud, field_path)
        yield Reference(ReferenceKind.REGION, region, field_path, cloud)
    else:
        yield Reference(kind, text, field_path)
