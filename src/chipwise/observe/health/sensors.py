"""What the sensors of a recording say about a device's health. Counters count from the start of the recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from chipwise.observe.health.kernel_log import xid_sign
from chipwise.observe.health.verdict import Blame, Condition, JobEffect, Sign
from chipwise.observe.metrics import DEVICE
from chipwise.observe.readings import by_source, read, table_of
from chipwise.observe.sample import Recording, Sample

MANY_CORRECTED = 100  # while it was watched: below, correction does what it is for
MANY_REPLAYS_PER_S = 10.0
HOT_C, TOO_HOT_C = 87.0, 95.0
HOT_MEMORY_C, TOO_HOT_MEMORY_C = 95.0, 105.0
THROTTLED = 0.3  # of the time
PCIE_TRAFFIC = 1e9  # bytes/s: below it a link lowers its generation to save power


def signs(recording: Recording) -> Mapping[str, tuple[Sign, ...]]:
    """By device; one without signs is well."""
    sources = by_source(recording.samples)
    devices = [name for name in sources if table_of(name) is DEVICE]
    devices += [device.source for device in recording.devices if device.source not in sources]
    return {name: tuple(_signs(name, sources.get(name, []))) for name in devices}


def _signs(name: str, samples: Sequence[Sample]) -> Iterator[Sign]:
    if not samples:
        return
    last = samples[-1]
    if last.readings and all(last.value(metric) is None for metric in last.readings):
        yield Sign(Condition.DRAIN, "it does not answer any more", Blame.DEVICE, JobEffect.DIES)
        return
    yield from _memory(samples)
    yield from _links(name, samples)
    yield from _heat(name, samples)
    if (number := _last(samples, "xid")) is not None and number >= 1:
        yield xid_sign(int(number))


def _memory(samples: Sequence[Sample]) -> Iterator[Sign]:
    corrected, uncorrected = _grown(samples, "ecc_corrected"), _grown(samples, "ecc_uncorrected")
    if corrected >= MANY_CORRECTED:
        yield Sign(Condition.WATCH, f"{corrected:.0f} memory errors were corrected while it was watched", Blame.DEVICE)
    elif corrected:
        yield Sign(
            Condition.FINE, f"{corrected:.0f} memory errors were corrected: this is what correction is for", Blame.DEVICE
        )
    if uncorrected:
        words = f"{uncorrected:.0f} memory errors could not be corrected while it was watched"
        yield Sign(Condition.DRAIN, words, Blame.DEVICE, JobEffect.DIES)
    elif total := _last(samples, "ecc_uncorrected"):
        yield Sign(Condition.WATCH, f"{total:.0f} memory errors could not be corrected earlier", Blame.DEVICE)
    if _last(samples, "remap_failed"):
        yield Sign(Condition.REPLACE, "no spare row of memory is left", Blame.DEVICE)
    elif _last(samples, "remap_pending"):
        yield Sign(Condition.WATCH, "a row of memory is replaced at the next reset: reset it when convenient", Blame.DEVICE)
    elif rows := _last(samples, "remapped_rows"):
        yield Sign(Condition.FINE, f"{rows:.0f} rows of memory have been replaced by spare ones", Blame.DEVICE)


def _links(name: str, samples: Sequence[Sample]) -> Iterator[Sign]:
    links = _grown(samples, "nvlink_errors")
    if links:
        yield Sign(Condition.WATCH, f"{links:.0f} errors on its links to other devices while it was watched", Blame.LINK)
    replays, span = _grown(samples, "pcie_replays"), samples[-1].at_s - samples[0].at_s
    if span > 0 and replays / span >= MANY_REPLAYS_PER_S:
        yield Sign(Condition.WATCH, f"{replays / span:.0f} packets a second are sent again over PCIe", Blame.LINK)
    lanes, most_lanes = _last(samples, "pcie_width"), _last(samples, "pcie_width_max")
    if lanes and most_lanes and lanes < most_lanes:
        yield Sign(Condition.WATCH, f"its PCIe link has {lanes:.0f} of {most_lanes:.0f} lanes", Blame.LINK)
    levels = read(name, samples).levels
    generation, newest = levels.get("pcie_generation"), _last(samples, "pcie_generation_max")
    traffic = max((levels[way].mean for way in ("pcie_received", "pcie_sent") if way in levels), default=0.0)
    if generation and newest and traffic >= PCIE_TRAFFIC and generation.percentile(0.95) < newest:
        words = f"its PCIe link runs at generation {generation.percentile(0.95):.0f} of {newest:.0f} under load"
        yield Sign(Condition.WATCH, words, Blame.LINK)


def _heat(name: str, samples: Sequence[Sample]) -> Iterator[Sign]:
    levels = read(name, samples).levels
    for metric, hot, too_hot, part in (
        ("temperature", HOT_C, TOO_HOT_C, "chip"),
        ("memory_temperature", HOT_MEMORY_C, TOO_HOT_MEMORY_C, "memory"),
    ):
        track = levels.get(metric)
        high = None if track is None else track.percentile(0.95)
        if high is not None and high >= hot:
            state = Condition.DRAIN if high >= too_hot else Condition.WATCH
            yield Sign(state, f"its {part} is at {high:.0f} C", Blame.DEVICE)
    throttled = levels.get("throttled_heat")
    if throttled is not None and throttled.mean >= THROTTLED:
        yield Sign(Condition.WATCH, f"heat lowered its clock {throttled.mean:.0%} of the time", Blame.DEVICE)


def _values(samples: Sequence[Sample], metric: str) -> list[float]:
    values = [value for sample in samples if (value := sample.value(metric)) is not None]
    return [value for value in values if 0 <= value < 1e18]


def _last(samples: Sequence[Sample], metric: str) -> float | None:
    values = _values(samples, metric)
    return values[-1] if values else None


def _grown(samples: Sequence[Sample], metric: str) -> float:
    """What a counter grew by; a restart of it does not count."""
    values = _values(samples, metric)
    return sum(max(later - earlier, 0.0) for earlier, later in pairwise(values))
