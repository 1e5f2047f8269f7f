"""Recordings of induced bottlenecks and of healthy programs on one H200 (benchmarks/bottlenecks, sizes 0 to 2).

The rules were made on these, so they only keep what was reached: how good the rules are is measured on sizes that they had not
seen.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from chipwise.observe.diagnosis import diagnose
from chipwise.observe.recording import decoded
from chipwise.observe.sample import Recording

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
