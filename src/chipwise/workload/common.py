"""What every kind of work may say about itself, and what those say that work on samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, ClassVar, Self

from pydantic import BeforeValidator, Field, JsonValue, model_validator
from pydantic.config import JsonDict

from chipwise.text import duration
from chipwise.workload.data import Data, Labels, Name, Traffic
from chipwise.workload.goals import Goals, Text
from chipwise.workload.limits import Limits
from chipwise.workload.measured import Lines, Per, line_flaws
from chipwise.workload.part import Flaw, Section, fault, show_value
from chipwise.workload.program import Program
from chipwise.workload.quantity import (
    Seconds,
    WholeNumber,
)
from chipwise.workload.reservation import Reservation
from chipwise.workload.schedule import Always, Schedule


def _model(value: object) -> object:
    if (isinstance(value, str) and value.strip()) or (isinstance(value, Mapping) and value):
        return value
    raise fault(
        f"{show_value(value)} is not a model",
        "a name such as llama-3.1-8b, a hub id, a path to config.json, or a mapping of its shape",
    )


Model = Annotated[
    Text | Mapping[str, JsonValue], BeforeValidator(_model), Field(examples=["llama-3.1-8b", "meta-llama/Llama-3.1-8B"])
]
UNKNOWN_MODEL = "unknown"  # of which only a measured run tells how fast it is


def usual_name(model: object, kind: str) -> str:
    """What a workload is called unless it says: its model and what is done with it, in letters that names may have."""
    if not isinstance(model, str):
        return kind
    name = re.sub(r"[^a-z0-9]+", "-", model.rpartition("/")[2].lower()).strip("-")[:40]
    return f"{name}-{kind}" if name[:1].isalpha() else f"model-{name}-{kind}".replace("--", "-")


def _without_default(schema: JsonDict) -> None:
    """A name that is not given follows from the rest."""
    schema.pop("default", None)


class Common(Section):
    """What every workload may say about itself."""

    name: Name = Field(default="", json_schema_extra=_without_default)
    """What reports and deployments call it; unless given, the model and what is done with it, such as llama-3-1-8b-serve."""
    description: Text | None = None
    labels: Labels = Labels()
    data: Data | None = None
    traffic: Traffic = Field(default_factory=dict)
    """Share of the requests by country, group or continent, such as {DEU: 70%, USA: 30%}."""
    schedule: Schedule = Always()
    goals: Goals = Goals()
    limits: Limits = Limits()
    program: Program | None = None
    """What runs: image, command, settings. It changes no plan; `chipwise render` writes it down."""
    reservation: Reservation | None = None
    """Capacity of AWS that is held for it already. It changes no plan; rendered files start machines in it alone."""
    measured: Lines | None = None
    """A run of it on a known chip, or a list of them: speeds on other chips follow from it."""
    measured_per: ClassVar[tuple[Per, ...]] = ()  # what a measured time may be for; the first unless it says

    @model_validator(mode="before")
    @classmethod
    def _unknown_model(cls, value: object) -> object:
        """Where only a measured run tells how fast it is, no model need be named."""
        if isinstance(value, Mapping) and value.get("measured") and value.get("model") is None and _needs_model(cls):
            return {**value, "model": UNKNOWN_MODEL}
        return value

    @model_validator(mode="after")
    def _usual_name(self) -> Self:
        if not self.name:
            object.__setattr__(self, "name", usual_name(getattr(self, "model", None), getattr(self, "kind", "")))
        return self

    @property
    def is_unknown(self) -> bool:
        """Whether nothing but a measured run tells how fast it is."""
        return getattr(self, "model", None) == UNKNOWN_MODEL

    @property
    def tells_data(self) -> bool:
        """Whether the rest of the file tells how much is read (`volume`)."""
        return False

    def flaws(self) -> Iterable[Flaw]:
        total = sum(self.traffic.values())
        if self.traffic and abs(total - 1) > 0.005:
            yield Flaw("traffic", f"the shares add up to {total:.1%}", "shares that add up to 100%")
        if self.data is not None and self.data.size is None and not self.tells_data:
            yield Flaw("data.size", "is required: nothing else here tells how much is read", "a size such as 80GB", ("data",))
        yield from self._measured_flaws()
        trip = self.limits.round_trip
        for name in ("ttft", "latency"):
            goal = getattr(self.goals, name)
            if trip is not None and goal is not None and trip >= min(limit for _, limit in goal.limits):
                yield Flaw("limits.round_trip", f"{duration(trip)} leave nothing of goals.{name}", also=(f"goals.{name}",))

    def _measured_flaws(self) -> Iterable[Flaw]:
        kind = str(getattr(self, "kind", "work"))
        if self.measured and not self.measured_per:
            reason = (
                "its stages say what was measured of each" if kind == "pipeline" else "nothing of it is predicted from a run"
            )
            yield Flaw("measured", f"does not go with the kind {kind}: {reason}")
        elif self.measured:
            yield from line_flaws(self.measured, self.measured_per, f"a workload of the kind {kind}")
        if getattr(self, "model", None) == UNKNOWN_MODEL and not self.measured:
            yield Flaw("model", "nothing tells how fast an unknown model is", "a model, or measured: {on: CHIP, takes: TIME}")


def _needs_model(kind: type[Common]) -> bool:
    return "model" in kind.model_fields and kind.model_fields["model"].is_required()


class Sized(Common):
    """How large a sample is, where the model leaves it open."""

    image_size: WholeNumber | None = None
    """Pixels per side of an image; left open, the network's own."""
    steps: WholeNumber | None = None
    """Denoising steps per image, of models that make images; 30 unless given."""
    guidance: bool | None = None
    """Diffusion: whether each step is done twice, with and without the text; left open, as is usual for the model."""
    clip: Seconds | None = None
    """Speech: length of a clip; left open, the network's own."""
    compiled: bool | None = None
    """Networks in PyTorch: with torch.compile, or line by line; left open, the usual engine of the chip."""
