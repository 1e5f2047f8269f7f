"""A prediction as a program sees it, made from the view that `chipwise predict --json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chipwise.public.intervals import Interval
from chipwise.public.layout import LINES, data_frame, html_pairs, text_pairs
from chipwise.public.records import Record
from chipwise.text import gib

_RATES = {
    "tokens_per_s": "tokens/s",
    "output_tokens_per_s": "output tokens/s",
    "samples_per_s": "samples/s",
    "messages_per_s": "messages/s",
    "requests_per_s": "requests/s",
}
_UNITS = {**_RATES, "step_time": "s", "time_s": "s", "job_time_s": "s", "ttft_ms": "ms", "tpot_ms": "ms", "latency_ms": "ms"}
_MAIN = (*_RATES, "time_s", "job_time_s")  # the first that there is


@dataclass(frozen=True, slots=True, repr=False)
class Estimate:
    """How fast, how large and how hot one configuration is. `value`, `low` and `high` are of `figure`, the main one."""

    data: Record

    @property
    def figure(self) -> Interval | None:
        """The speed where there is one, else the time; None of work that is counted by memory alone."""
        return next((self.figures[name] for name in _MAIN if name in self.figures), None)

    @property
    def value(self) -> float | None:
        return None if self.figure is None else self.figure.value

    @property
    def low(self) -> float | None:
        return None if self.figure is None else self.figure.low

    @property
    def high(self) -> float | None:
        return None if self.figure is None else self.figure.high

    @property
    def unit(self) -> str:
        return self.figure.unit if self.figure else ""

    @property
    def terms(self) -> Mapping[str, float]:
        """Seconds of a step, a request or the job, by what they go into."""
        terms = self.data.get("terms_s")
        if not terms and "step_time" in self.figures:
            terms = self.figures["step_time"].terms
        return dict(terms or (self.figure.terms if self.figure else {}))

    @property
    def provenance(self) -> str:
        """measured, carried (from a run on another chip), interpolated (near measurements), between, other software, formula"""
        return str(
            self.data.get("provenance")
            or next((figure.provenance for figure in self.figures.values() if figure.provenance), "")
        )

    @property
    def figures(self) -> dict[str, Interval]:
        """Every number that has an interval, by the name that it has in `to_dict()`."""
        return {
            name: Interval.of(value, _UNITS.get(name, ""))
            for name, value in self.data.items()
            if isinstance(value, Mapping) and {"value", "low", "high"} <= set(value)
        }

    @property
    def memory(self) -> Record | None:
        """Bytes of a chip by line; None where it is not predicted."""
        return self.data.get("memory")

    @property
    def fits(self) -> bool | None:
        """Whether it fits the chip; None where that is not predicted."""
        fit = self.data.get("fit")
        return fit["fits"] if fit else self.data.get("fits")

    @property
    def power(self) -> Record | None:
        """Watts of a chip: alone, with its host, and with cooling."""
        return self.data.get("power_per_chip")

    @property
    def stages(self) -> tuple[Estimate, ...]:
        """Of a pipeline."""
        return tuple(map(Estimate, self.data.get("stages", ())))

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.data.get("notes", ()))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as `chipwise predict --json` prints it."""
        return self.data.to_dict()

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each figure."""
        names = ("value", "low", "high", "unit", "provenance")
        return data_frame(
            [{"figure": key, **{name: getattr(figure, name) for name in names}} for key, figure in self.figures.items()]
        )

    def _title(self) -> str:
        subject = self.data.get("model") or self.data.get("name") or ""
        chips = f" on {self.data['chips']:g}x {self.data['chip']}" if "chip" in self.data else ""
        return f"Estimate of {subject}{chips}: {self.data['task']}"

    def _pairs(self) -> list[tuple[str, object]]:
        pairs: list[tuple[str, object]] = [(name.replace("_", " "), str(figure)) for name, figure in self.figures.items()]
        if self.memory is not None:
            pairs.append(("memory per chip", gib(self.memory["total_bytes"])))
        if self.fits is not None:
            pairs.append(("fits", self.fits))
        if self.power is not None:
            pairs.append(("power per chip", f"{self.power['chip_w']:.0f} W"))
        return [*pairs, *((stage._title(), str(stage.figure)) for stage in self.stages)]

    def __repr__(self) -> str:
        return "\n".join([self._title(), *text_pairs(self._pairs(), LINES - 1)])

    def _repr_html_(self) -> str:
        return html_pairs(self._pairs(), self._title())


@dataclass(frozen=True, slots=True, repr=False)
class MemoryFit:
    """Whether a model fits a chip, by how much, and what would help. It is true when it fits."""

    data: Record

    def __bool__(self) -> bool:
        return self.fits

    @property
    def fits(self) -> bool:
        return bool(self.data["fit"]["fits"])

    @property
    def spare_bytes(self) -> float:
        """What is left on a chip; below zero: what is missing."""
        return float(self.data["fit"]["spare_bytes"])

    @property
    def capacity_bytes(self) -> float:
        return float(self.data["fit"]["capacity_bytes"])

    @property
    def change(self) -> str | None:
        """The smallest change that would make it fit."""
        change = self.data["fit"]["smallest_change"]
        return None if change is None else str(change)

    @property
    def memory(self) -> Record:
        """Bytes of a chip by line."""
        memory: Record = self.data["memory"]
        return memory

    @property
    def largest(self) -> dict[str, float]:
        """The largest batch and the longest context that fit."""
        return dict(self.data["largest"])

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.data["notes"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as `chipwise fits --json` prints it."""
        return self.data.to_dict()

    def _pairs(self) -> list[tuple[str, object]]:
        left = ("left", f"{gib(self.spare_bytes)} of {gib(self.capacity_bytes)}")
        missing = ("missing", f"{gib(-self.spare_bytes)} on a chip of {gib(self.capacity_bytes)}")
        pairs: list[tuple[str, object]] = [("fits", self.fits), left if self.fits else missing]
        return [
            *pairs,
            *([("would help", self.change)] if self.change else []),
            *((name, self._held(name, most)) for name, most in self.largest.items()),
        ]

    def _held(self, name: str, most: float) -> str:
        unit = f" of {self.data['tokens']:,.0f} tokens each" if name in ("most sequences", "largest micro-batch") else " tokens"
        return f"{most:,.0f}{unit if most else ''}"

    def __repr__(self) -> str:
        return "\n".join([str(self.data["title"]), *text_pairs(self._pairs(), LINES - 1)])

    def _repr_html_(self) -> str:
        return html_pairs(self._pairs(), str(self.data["title"]))
