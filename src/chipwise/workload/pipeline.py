"""A workload of stages: each is one of the kinds, and hand-offs carry what one makes to the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from chipwise.spelling import nearest
from chipwise.workload.common import Common
from chipwise.workload.goals import Text
from chipwise.workload.kinds import Batch, Finetune, Hpc, Hybrid, Interactive, Render, Serve, Stage, Stream, Train, Transcode
from chipwise.workload.part import Flaw, Section
from chipwise.workload.quantity import Bytes

MOST_STAGES = 50  # each is planned over all machines, for seconds, and all are then chosen together


class HandOff(Section):
    """What one stage gives to another: so much in all, or so much per item."""

    source: Text = Field(alias="from")
    """Name of the stage that gives."""
    to: Text
    """Name of the stage that takes."""
    size: Bytes | None = None
    """In all."""
    size_per_item: Bytes | None = None
    """Per item that passes, such as an image or an iteration, instead of size."""
    format: Text | None = None

    def flaws(self) -> Iterable[Flaw]:
        if self.size is not None and self.size_per_item is not None:
            yield Flaw("size_per_item", "size and size_per_item cannot be combined: give one of them", also=("size",))
        if self.source == self.to:
            yield Flaw("to", f"{self.to!r} hands off to itself", also=("from",))


class Pipeline(Common):
    """Stages with hand-offs. Its goals are those of the whole; its limits hold for every stage, which may add its own."""

    kind: Literal["pipeline"] = "pipeline"
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    hand_offs: tuple[HandOff, ...] = ()
    """Left out, each stage follows the one before it."""

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """(giver, taker) by name of stage."""
        if self.hand_offs:
            return tuple((hand_off.source, hand_off.to) for hand_off in self.hand_offs)
        names = [stage.name for stage in self.stages]
        return tuple(pairwise(names))

    @property
    def order(self) -> tuple[str, ...]:
        """Names of stages so that each comes after those it takes from."""
        graph: dict[str, set[str]] = {stage.name: set() for stage in self.stages}
        for giver, taker in self.edges:
            graph[taker].add(giver)
        return tuple(TopologicalSorter(graph).static_order())

    def flaws(self) -> Iterable[Flaw]:
        yield from super().flaws()
        if len(self.stages) > MOST_STAGES:
            split = f"at most {MOST_STAGES}; give several items of one kind to one stage, or make several pipelines of it"
            yield Flaw("stages", f"{len(self.stages)} stages are too many to be planned together", split)
            return
        names = [stage.name for stage in self.stages]
        places = tuple(f"stages[{index}].name" for index in range(len(names)))
        for index, name in enumerate(names):
            if (first := names.index(name)) < index:
                yield Flaw(f"stages[{index}].name", f"{name!r} is also the name of stages[{first}]", also=(places[first],))
        most = self.limits.chip_count.max
        for index, stage in enumerate(self.stages):
            if most is not None and (fewest := stage.limits.chip_count.min) is not None and fewest > most:
                message = f"{fewest} is above limits.chip_count.max of the pipeline, which is {most} and holds for every stage"
                yield Flaw(f"stages[{index}].limits.chip_count", message, also=("limits.chip_count",))
        known = True
        for index, hand_off in enumerate(self.hand_offs):
            for field, name in (("from", hand_off.source), ("to", hand_off.to)):
                if name not in names:
                    known = False
                    place, near = f"hand_offs[{index}].{field}", partial(nearest, name, names)
                    yield Flaw(
                        field=place, message=f"no stage is called {name!r}", allowed=_name_list(names), also=places, near=near
                    )
        if known and len(set(names)) == len(names):
            try:
                _ = self.order
            except CycleError as error:
                circle = " -> ".join(error.args[1])
                yield Flaw("hand_offs", f"the stages wait for each other in a circle: {circle}", also=places)


def _name_list(names: Sequence[str]) -> str:
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(names[:20]) + more


Workload = Annotated[
    Train | Finetune | Serve | Batch | Hpc | Render | Transcode | Stream | Hybrid | Interactive | Pipeline,
    Field(discriminator="kind"),
]
KINDS: tuple[type[Common], ...] = (
    Train,
    Finetune,
    Serve,
    Batch,
    Hpc,
    Render,
    Transcode,
    Stream,
    Hybrid,
    Interactive,
    Pipeline,
)
