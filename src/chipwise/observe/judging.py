"""What rules share: how signs of several devices become one finding, and what a lost share is worth in speed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from chipwise.observe.evidence import Evidence, Observed, ObservedDevice
from chipwise.observe.finding import Fact, Severity
from chipwise.observe.readings import table_of
from chipwise.predictor.interval import Interval
from chipwise.text import decimal_size, number, percent

NOTABLE = 0.1  # of the paid time: less is a note


class Explains(StrEnum):
    """Which lost time a rule is about. Two causes of the same lost time contradict each other, and the likelier one stays."""

    WAITING = "waiting"  # the device has nothing to do
    ARITHMETIC = "arithmetic"  # what limits kernels while they run
    CLOCK = "clock"  # the device runs slower than it could
    SHARING = "sharing"  # other programs use the same hardware
    IMBALANCE = "imbalance"  # devices wait for one of them
    MEMORY = "memory"  # capacity
    PLACEMENT = "placement"  # how the device is attached
    READING = "reading"  # how figures of other tools are to be read
    REST = "rest"  # what nothing else explains


@dataclass(frozen=True, slots=True)
class Signs:
    """Of one cause at one device, or of the whole program."""

    lost_share: float
    confidence: float
    facts: tuple[Fact, ...]
    source: str = ""


def over_devices(evidence: Evidence, judge: Callable[[ObservedDevice], Signs | None]) -> Signs | None:
    """A cause counts for as much of the money as there are devices that show it; the facts are those of the worst."""
    judged = [(device, signs) for device in evidence.devices if (signs := judge(device)) is not None]
    if not judged:
        return None
    worst, signs = max(judged, key=lambda pair: pair[1].lost_share)
    share = sum(signs.lost_share for _, signs in judged) / len(evidence.devices)
    confidence = sum(signs.confidence for _, signs in judged) / len(judged)
    other_devices = len(judged) - 1
    facts = signs.facts
    if other_devices:
        text = f"the same on {other_devices} other {'device' if other_devices == 1 else 'devices'} of {len(evidence.devices)}"
        facts = (*facts, Fact(metric="devices", value=float(other_devices + 1), unit="count", text=text))
    return Signs(share, confidence, facts, worst.name if len(evidence.devices) > 1 and not other_devices else "")


def fact(source: Observed, metric: str, text: str, value: float | None = None) -> Fact:
    """`text` with `{}` for the value in its unit."""
    reading = source.or_zero(metric) if value is None else value
    known = table_of(source.name).get(metric)
    unit = known.unit if known else "share"
    return Fact(metric=f"{source.name}.{metric}", value=reading, unit=unit, text=text.format(quantity(reading, unit)))


def quantity(value: float, unit: str) -> str:
    match unit:
        case "share":
            return percent(value)
        case "bytes":
            return decimal_size(value)
        case "bytes/s":
            return f"{decimal_size(value)}/s"
        case "count":
            return number(value)
    return f"{number(value)} {unit}"


def severity(lost_share: float, confidence: float) -> Severity:
    """What costs little, or is unsure, is a note."""
    return Severity.WARNING if lost_share >= NOTABLE and confidence >= 0.5 else Severity.NOTE


def removed(lost_share: float, least_share: float = 0.5, highest: float | None = None) -> Interval:
    """The speed-up if the lost time were gone: of all of it at best, of `least_share` of it at worst, half way between as
    the value. Not more than `highest`, where a limit of the hardware is known."""
    lost = min(max(lost_share, 0.0), 0.99)
    ends = [1 / (1 - share * lost) for share in (least_share, (1 + least_share) / 2, 1.0)]
    low, value, high = (end if highest is None else min(end, highest) for end in ends)
    return Interval(low=max(low, 1.0), value=max(value, 1.0), high=max(high, 1.0))


def labels(devices: Sequence[ObservedDevice], most_names: int = 4) -> str:
    """GPU 0, GPU 3 and 2 more."""
    names = [device.label for device in devices]
    rest = len(names) - most_names
    return ", ".join(names[:most_names]) + (f" and {rest} more" if rest > 0 else "")
