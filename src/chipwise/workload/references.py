"""The names in a workload that the model registry or the catalog must know, and where they stand.

They are found here and resolved elsewhere: workloads and the catalog do not know each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from chipwise.workload.goals import Limits
from chipwise.workload.kinds import Batch, Common, Finetune, Hybrid, Interactive, Measured, Render, Serve, Train
from chipwise.workload.pipeline import Pipeline, Workload
from chipwise.workload.source import Where, show_where


class ReferenceKind(StrEnum):
    MODEL = "model"
    CHIP = "chip"
    PROVIDER = "provider"
    REGION = "region"
    QPU = "qpu"


@dataclass(frozen=True, slots=True)
class Reference:
    """A name as written. `where` leads to its line by `Parsed.problem`; `provider` is that of a region, where given."""

    kind: ReferenceKind
    text: str
    where: Where
    provider: str | None = None

    @property
    def field(self) -> str:
        return show_where(self.where)


def references(workload: Workload) -> list[Reference]:
    """Every name to resolve, those of stages included. Models given by their shape have no name."""
    return list(_of(workload, ()))


def _of(workload: Common, at: Where) -> Iterator[Reference]:
    match workload:
        case Train(model=str(model)) | Finetune(model=str(model)) | Serve(model=str(model)) | Batch(model=str(model)):
            yield Reference(ReferenceKind.MODEL, model, (*at, "model"))
        case Interactive(model=str(model)):
            yield Reference(ReferenceKind.MODEL, model, (*at, "model"))
        case Render(measured=Measured(on=chip)):
            yield Reference(ReferenceKind.CHIP, chip, (*at, "measured", "on"))
        case Hybrid():
            if workload.quantum.device is not None:
                yield Reference(ReferenceKind.QPU, workload.quantum.device, (*at, "quantum", "device"))
            if workload.classical.measured is not None:
                yield Reference(ReferenceKind.CHIP, workload.classical.measured.on, (*at, "classical", "measured", "on"))
        case Pipeline():
            for index, stage in enumerate(workload.stages):
                yield from _of(stage, (*at, "stages", index))
    if workload.data is not None and workload.data.region is not None:
        cloud, region = workload.data.region
        yield Reference(ReferenceKind.PROVIDER, cloud, (*at, "data", "place"))
        yield Reference(ReferenceKind.REGION, region, (*at, "data", "place"), cloud)
    yield from _of_limits(workload.limits, (*at, "limits"))


def _of_limits(limits: Limits, at: Where) -> Iterator[Reference]:
    lists: Mapping[Where, tuple[ReferenceKind, tuple[str, ...]]] = {
        ("clouds",): (ReferenceKind.PROVIDER, limits.clouds),
        ("regions",): (ReferenceKind.REGION, limits.regions),
        ("chips",): (ReferenceKind.CHIP, limits.chips),
        ("avoid", "clouds"): (ReferenceKind.PROVIDER, limits.avoid.clouds),
        ("avoid", "regions"): (ReferenceKind.REGION, limits.avoid.regions),
        ("avoid", "chips"): (ReferenceKind.CHIP, limits.avoid.chips),
    }
    for steps, (kind, texts) in lists.items():
        for index, text in enumerate(texts):
            yield from _named(kind, text, (*at, *steps, index))
    for key in limits.quotas:
        *place, chip = key.split(":")
        here = (*at, "quotas", key)
        yield Reference(ReferenceKind.CHIP, chip, here)
        if place:
            yield Reference(ReferenceKind.PROVIDER, place[0], here)
        if len(place) > 1:
            yield Reference(ReferenceKind.REGION, place[1], here, place[0])


def _named(kind: ReferenceKind, text: str, where: Where) -> Iterator[Reference]:
    """A region may carry its cloud: aws:eu-central-1."""
    cloud, colon, region = text.partition(":")
    if kind is ReferenceKind.REGION and colon:
        yield Reference(ReferenceKind.PROVIDER, cloud, where)
        yield Reference(ReferenceKind.REGION, region, where, cloud)
    else:
        yield Reference(kind, text, where)
