"""Recordings of induced bottlenecks and of healthy programs on one H200 (benchmarks/bottlenecks, sizes 0 to 2).

The rules were made on these, so they only keep what was reached: how good the rules are is measured on sizes that they had not
seen.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from chipwise.observe.diagnosis import diagnose
from chipwise.observe.readings import table_of
from chipwise.observe.recording import decoded
from chipwise.observe.sample import Recording, Sample

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "bottlenecks"


@cache
def recordings(name: str) -> dict[tuple[str, str, str], Recording]:
    return {
        (labels["place"], labels["kind"], labels["size"]): recording
        for recording in _loaded(FIXTURES / name)
        if (labels := recording.labels)
    }


def _loaded(path: Path) -> Iterator[Recording]:
    part: list[bytes] = []
    for line in [*gzip.decompress(path.read_bytes()).splitlines(keepends=True), b""]:
        if part and (not line or line.startswith(b'{"chipwise_recording"')):
            yield decoded(part, path.name).recording
            part = []
        part.append(line)


CASES = [case for case in recordings("h200.jsonl.gz") if case[0] == "gpu"]
HEALTHY = [case for case in recordings("h200.jsonl.gz") if case[0] == "healthy"]


def test_there_are_fourteen_kinds_three_times_and_ten_healthy_programs() -> None:
    assert (len({kind for _, kind, _ in CASES}), len(CASES), len(HEALTHY)) == (14, 42, 10)


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_an_induced_bottleneck_is_named_first(case: tuple[str, str, str]) -> None:
    first = diagnose(recordings("h200.jsonl.gz")[case]).first
    assert first is not None
    assert first.rule == case[1]


@pytest.mark.parametrize("case", HEALTHY, ids=" ".join)
def test_a_healthy_program_gets_notes_only(case: tuple[str, str, str]) -> None:
    assert diagnose(recordings("h200.jsonl.gz")[case]).is_healthy


# A supervisor reads the counters of the multiprocessors less often than the rest, and each reading is the mean since the one
# before. Here they come with one sample of a second, as one in 5 s does in a recording of half a minute.

COUNTED_S = 1.0
COUNTED = (
    *("graphics_active", "sm_active", "sm_occupancy", "tensor_active", "dram_active", "fp16_active", "fp32_active"),
    *("fp64_active", "pcie_sent", "pcie_received", "nvlink_sent", "nvlink_received"),
)


def counted_less_often(recording: Recording) -> Recording:
    samples: list[Sample] = []
    waiting: dict[str, list[Sample]] = {}
    for sample in recording.samples:
        readings = dict(sample.readings)
        if table_of(sample.source) is table_of("nvidia:0"):
            group = waiting.setdefault(sample.source, [])
            group.append(sample)
            readings = {name: reading for name, reading in readings.items() if name not in COUNTED}
            if sample.at_s - group[0].at_s >= COUNTED_S - 0.05:
                values = {name: [value for one in group if (value := one.value(name)) is not None] for name in COUNTED}
                readings |= {name: sum(known) / len(known) for name, known in values.items() if known}
                group.clear()
        samples.append(Sample(sample.at_s, sample.source, readings))
    return replace(recording, samples=tuple(samples))


def test_counters_that_are_read_less_often_name_the_same_causes() -> None:
    measured = {case: counted_less_often(recordings("h200.jsonl.gz")[case]) for case in (*CASES, *HEALTHY)}
    named = {case: first.rule if (first := diagnose(measured[case]).first) is not None else None for case in CASES}
    wrong = {case: rule for case, rule in named.items() if rule != case[1]}
    assert len(wrong) <= 0.05 * len(CASES), wrong
    assert [case for case in HEALTHY if not diagnose(measured[case]).is_healthy] == []
