"""What a user measured: one run of the workload on a known chip, as a time or as a rate.

    measured: {on: rtx-4090, takes: 6h, per: epoch}
    measured: {on: l4, rate: 1200 images/s}
    measured: [{on: h100, chips: 8, takes: 0.9s, per: step, batch: 256}, {on: a100, takes: 14s, per: step, batch: 256}]

On the command line a line is CHIP=VALUE: `rtx-4090=6h`, `rtx-4090=6h/epoch`, `8xh100=0.9s/step@256` (a batch of 256),
`l4=1200 images/s`, `l40s=900 tokens/s@32` (32 requests in flight).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import ValidationError, model_validator

from chipwise import units
from chipwise.errors import BadInput
from chipwise.text import duration, number, plural
from chipwise.units import YEAR
from chipwise.workload.goals import Text
from chipwise.workload.part import EnumChoice, Flaw, OneOrMore, Section, exactly_one
from chipwise.workload.quantity import Bytes, Count, Seconds, WholeNumber

LONGEST_S, SHORTEST_S = 10 * YEAR, 1e-9
MOST_LINES = 20
EXAMPLES = "Write CHIP=6h, CHIP=6h/epoch, CHIP=0.9s/step@256 (a batch of 256), or CHIP=1200 images/s."
AGREE = 1.25  # two lines about the same thing that differ by more contradict each other


class Per(StrEnum):
    """What a time is for, or what a rate counts."""

    JOB = "job"
    EPOCH = "epoch"
    STEP = "step"
    SAMPLE = "sample"
    TOKEN = "token"
    REQUEST = "request"
    RUN = "run"
    FRAME = "frame"


class Bound(StrEnum):
    """What holds the work up."""

    COMPUTE = "compute"
    MEMORY = "memory"
    TRANSFER = "transfer"
    UNKNOWN = "unknown"


_WORDS = {
    "whole": Per.JOB,
    "all": Per.JOB,
    "epochs": Per.EPOCH,
    "iteration": Per.STEP,
    "it": Per.STEP,
    "update": Per.STEP,
    "image": Per.SAMPLE,
    "img": Per.SAMPLE,
    "picture": Per.SAMPLE,
    "sequence": Per.SAMPLE,
    "seq": Per.SAMPLE,
    "document": Per.SAMPLE,
    "doc": Per.SAMPLE,
    "item": Per.SAMPLE,
    "row": Per.SAMPLE,
    "clip": Per.SAMPLE,
    "tok": Per.TOKEN,
    "req": Per.REQUEST,
    "answer": Per.REQUEST,
    "query": Per.REQUEST,
    "inference": Per.REQUEST,
    "simulation": Per.RUN,
}
_ALONE = {"rps": Per.REQUEST, "qps": Per.REQUEST, "fps": Per.FRAME}  # rates whose word says per second too
AnyPer = Annotated[Per, EnumChoice(Per, "what a time is for", tuple((word, str(per)) for word, per in _WORDS.items()))]
AnyBound = Annotated[Bound, EnumChoice(Bound, "what holds work up", (("bandwidth", "memory"), ("io", "transfer")))]


def _word(noun: str) -> Per | None:
    word = noun.strip().lower()
    for name in (word, word.removesuffix("s"), word.removesuffix("ies") + "y"):
        if name in _WORDS or name in set(Per):
            return _WORDS.get(name) or Per(name)
    return None


def counted(rate: str) -> tuple[float, Per] | None:
    """How many a second, and of what; None: it is no rate of something that we count."""
    amount, slash, period = re.sub(r"\s+per\s+", "/", rate.strip(), count=1).partition("/")
    match = re.fullmatch(r"\s*([\d.,_]+(?:[eE][+-]?\d+)?\s*[kKMGBT]?)\s*([A-Za-z]+)\s*", amount)
    if match is None:
        return None
    value, noun = match[1], match[2]
    per = _ALONE.get(noun.lower()) if not slash else _word(noun)
    if per is None:
        return None
    try:
        return units.parse_rate(f"{value}/{period or 's'}"), per
    except BadInput:
        return None


class Measured(Section):
    """One measured run. What is not stated is as in the rest of the workload."""

    on: Text
    """The chip it ran on."""
    takes: Seconds | None = None
    """How long it took, for what `per` says."""
    per: AnyPer | None = None
    """job, epoch, step, sample, token, request, run or frame; the whole job unless given, of a service a request, of
    pictures that are rendered a frame."""
    rate: Text | None = None
    """Instead of takes: images/s, samples/s, tokens/s, requests/s, steps/s, frames/s."""
    chips: WholeNumber = 1
    """That it ran on together."""
    vcpus: WholeNumber | None = None
    """Of a processor: the virtual CPUs that it ran on; the whole chip unless given."""
    batch: Count | None = None
    """Samples of a step, where `per` is step and the workload does not say."""
    concurrency: WholeNumber | None = None
    """Of a service: requests in flight; unless given one for a time, and as many as there is room for at a rate."""
    memory: Bytes | None = None
    """That it took on each chip; needed only where nothing else tells it."""
    bound: AnyBound = Bound.UNKNOWN
    """What held it up, where nothing else tells it: compute, memory (its bandwidth), transfer (from the host) or unknown."""

    @model_validator(mode="before")
    @classmethod
    def _per_of_rate(cls, value: object) -> object:
        """A rate says itself what it counts."""
        rate = value.get("rate") if isinstance(value, Mapping) else None
        known = counted(rate) if isinstance(rate, str) else None
        return {**value, "per": str(known[1])} if isinstance(value, Mapping) and known and value.get("per") is None else value

    @property
    def seconds(self) -> float:
        """Of one of what it is per."""
        known = counted(self.rate) if self.rate is not None else None
        return 1.0 / known[0] if known is not None else self.takes or 0.0

    @property
    def chip_words(self) -> str:
        return self.words_of(self.on)

    def words_of(self, chip: str) -> str:
        """One A100, 8 A100, 2 vCPUs of one Xeon."""
        chips = f"one {chip}" if self.chips == 1 else f"{self.chips:,} {chip}"
        return chips if self.vcpus is None else f"{plural(self.vcpus, 'vCPU')} of {chips}"

    def words(self, usual: Per) -> str:
        """6 h per epoch; 1,200 images/s."""
        load = f" with {self.concurrency:,} in flight" if self.concurrency is not None else ""
        if self.rate is not None:
            return f"{self.rate}{load}"
        per = self.per or usual
        return f"{duration(self.seconds)} {'for the whole job' if per is Per.JOB else f'per {per}'}{load}"

    def flaws(self) -> Iterable[Flaw]:
        yield from exactly_one(self, "takes", "rate")
        if self.rate is not None and (known := counted(self.rate)) is None:
            yield Flaw("rate", f"{self.rate!r} does not say what is counted per what time", "a rate such as 1200 images/s")
        elif self.rate is not None and known is not None and self.per is not known[1]:
            yield Flaw("per", f"the rate counts {known[1]}s, not {self.per}s", "per only with takes", ("rate",))
        elif (self.takes is not None or self.rate is not None) and not SHORTEST_S <= self.seconds <= LONGEST_S:
            field = "takes" if self.takes is not None else "rate"
            yield Flaw(field, f"{duration(self.seconds)} for one {self.per or Per.JOB} was not measured", "1 ns to 10 years")


class _OneOrMoreLines(OneOrMore):
    """A single mapping may stand for a list of one."""

    def read(self, value: object) -> object:
        return value if value is None or isinstance(value, list | tuple) else (value,)


Lines = Annotated[tuple[Measured, ...], _OneOrMoreLines()]


def line_flaws(lines: Sequence[Measured], allowed: Sequence[Per], kind: str) -> Iterable[Flaw]:
    """What does not go with a kind of work, and lines that contradict each other; the first of `allowed` is the usual one."""
    if len(lines) > MOST_LINES:
        yield Flaw("measured", f"{len(lines)} lines are too many", f"at most {MOST_LINES}")
        return
    for index, line in enumerate(lines):
        per = line.per or allowed[0]
        if per not in allowed:
            field = "rate" if line.rate is not None else "per"
            yield Flaw(f"measured[{index}].{field}", f"{kind} has no {per}s", ", ".join(allowed))
        for before in lines[:index]:
            repeated = all(
                getattr(line, name) == getattr(before, name) for name in ("on", "chips", "vcpus", "batch", "concurrency")
            )
            alike = repeated and per is (before.per or allowed[0]) and (line.rate is None) == (before.rate is None)
            if alike and not 1 / AGREE <= line.seconds / before.seconds <= AGREE:
                times = max(line.seconds / before.seconds, before.seconds / line.seconds)
                finding = f"two lines on {line.chip_words} differ by {number(times)} times"
                yield Flaw(f"measured[{index}]", finding, "one of them, or runs within 25% of each other")


def lines_of(lines: Sequence[str | Mapping[str, Any]]) -> tuple[Measured, ...]:
    """CHIP=VALUE, or mappings as a file has them, where there is no file."""
    read = []
    for line in lines:
        try:
            read.append(Measured.model_validate(read_line(line) if isinstance(line, str) else line))
        except ValidationError as error:
            details = error.errors(include_url=False)[0]
            field = ".".join(map(str, details["loc"]))
            raise BadInput(f"--measured: {f'{field}: ' if field else ''}{details['msg']}.", remedy=EXAMPLES) from error
    return tuple(read)


def read_line(text: str) -> dict[str, Any]:
    """CHIP=VALUE as the mapping that a file would have."""
    chip, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not chip or not value:
        raise BadInput(f"--measured: {text!r} is not CHIP=VALUE.", remedy="For example --measured rtx-4090=6h/epoch.")
    line: dict[str, Any] = {"on": chip}
    if (counted_chip := re.fullmatch(r"(\d+)\s*[xX*]\s*(.+)", chip)) is not None:
        line = {"on": counted_chip[2], "chips": int(counted_chip[1])}
    value, sign, many_at_once = (part.strip() for part in value.partition("@"))
    if counted(value) is not None:
        return {**line, "rate": value, **({"concurrency": many_at_once} if sign else {})}
    takes, slash, per = re.sub(r"\s+per\s+", "/", value, count=1).partition("/")
    try:
        seconds = units.parse_seconds(takes)
    except BadInput as error:
        raise BadInput(
            f"--measured: {value!r} is neither a time nor a rate.",
            remedy=EXAMPLES,
        ) from error
    if re.fullmatch(r"[\d.,_]+(?:[eE][+-]?\d+)?\s*[kKMGBT]?", takes.strip()):
        raise BadInput(f"--measured: {value!r} has no unit.", remedy=EXAMPLES)
    if seconds <= 0:
        raise BadInput(f"--measured: {value!r} is not above zero.", remedy="Give the time that it took.")
    line["takes"] = takes.strip()
    if sign:
        line["batch" if _word(per) is Per.STEP else "concurrency"] = many_at_once
    return {**line, "per": per.strip()} if slash else line
