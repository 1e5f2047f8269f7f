"""`limits.chip_count` in every kind of work: the fewest and most are kept, and numbers between those usually tried count."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import yaml

from chipwise.api.catalog.check import check
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.errors import InvalidFile
from chipwise.planner.counts import chip_limits, machine_counts
from chipwise.planner.kinds.ways import Question, worthwhile
from chipwise.planner.limits import Rules
from chipwise.planner.reasons.goals import MissesDeadline
from chipwise.planner.reasons.sizes import NeedsChips
from chipwise.planner.values.plan import Plan
from chipwise.workload.kinds import Hpc
from chipwise.workload.limits import Limits

HPC = {"kind": "hpc", "steps": 2000, "flop_per_step": 1e14, "precision": "fp64", "limits": {"chips": ["H100"]}}
LLAMA = {"model": "llama-3.1-8b", "input_tokens": 500, "output_tokens": 200, "limits": {"chips": ["L40S", "H100"]}}
STREAM = {"kind": "stream", "operations": ["parse"], "messages": 400e6, "message_size": 64}
EDGE = {
    "kind": "serve",
    "model": "resnet50",
    "arrival": {"rate": 30},
    "devices": 40,
    "precision": "int8",
    "limits": {"where": "edge"},
}
KINDS: dict[str, dict[str, Any]] = {
    "hpc": HPC,
    "render": {"kind": "render", "frames": 400, "resolution": "1080p", "samples_per_pixel": 64, "limits": {"chips": ["L40S"]}},
    "live": {
        "kind": "transcode",
        "streams": 100,
        "source": {"codec": "h264", "resolution": "1080p", "fps": 30},
        "outputs": [{"codec": "h264", "resolution": "720p", "fps": 30}],
        "limits": {"chips": ["L4"]},
    },
    "archive": {
        "kind": "transcode",
        "duration": "2000h",
        "source": {"codec": "h264", "resolution": "1080p", "fps": 30},
        "outputs": [{"codec": "h264", "resolution": "720p", "fps": 30}],
        "limits": {"chips": ["L4"]},
    },
    "stream": STREAM,
    "interactive": {
        "kind": "interactive",
        "people": 24,
        "memory": "20GiB",
        "sharing": "none",
        "limits": {"chips": ["L4", "H100"]},
    },
    "hybrid": {
        "kind": "hybrid",
        "iterations": 10,
        "quantum": {"qubits": 20, "shots": 100, "circuits": 2, "depth": 10, "two_qubit_gates": 20},
        "classical": {"flop": 3e12, "memory": "4GiB", "precision": "fp64"},
        "limits": {"chips": ["H100"]},
    },
    "samples served": {"kind": "serve", "model": "resnet50", "arrival": {"rate": 9000}, "limits": {"chips": ["L4"]}},
    "samples in a pile": {"kind": "batch", "model": "resnet50", "items": 1e8, "limits": {"chips": ["L4"]}},
    "samples learnt": {"kind": "train", "model": "resnet50", "samples": 1e6, "limits": {"chips": ["L4"]}},
    "tokens learnt": {
        "kind": "train",
        "model": "llama-3.2-1b",
        "tokens": 1e9,
        "sequence_length": 2048,
        "batch_tokens": 655360,
        "limits": {"chips": ["H100"]},
    },
    "tokens served": {"kind": "serve", "arrival": {"rate": 20}, **LLAMA},
    "tokens in a pile": {"kind": "batch", "items": 1e6, **LLAMA},
    "edge": EDGE,
}


@cache
def session() -> Session:
    return open_session()


def planned(work: dict[str, Any], objective: str | None = None, **chip_count: int) -> Plan:
    limits = {**work.get("limits", {}), "chip_count": chip_count}
    return plan(session(), "test.yaml", objective, 1000, None, yaml.safe_dump({"name": "a", **work, "limits": limits}))


def chips(found: Plan) -> list[int]:
    return [round(choice.chips * choice.machines) for choice in (*found.choices, *found.front)]


@pytest.mark.parametrize("kind", KINDS)
def test_at_least_as_many_chips_as_the_limit_asks_for(kind: str) -> None:
    counts = chips(planned(KINDS[kind], min=120))
    assert counts
    assert min(counts) >= 120


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_as_many_chips_as_the_limit_allows(kind: str) -> None:
    largest = 40 if kind == "edge" else 2
    found = planned(KINDS[kind], max=largest)
    assert max(chips(found), default=0) <= largest
    if found.winner is None:
        assert any(isinstance(lack.reason, NeedsChips) and lack.reason.allowed == largest for lack in found.missing)


def test_more_devices_than_chips_are_allowed_contradict_each_other() -> None:
    work = {"name": "a", **EDGE, "limits": {"where": "edge", "chip_count": {"max": 10}}}
    with pytest.raises(InvalidFile, match=r"40 devices are more than limits.chip_count allows, which is at most 10"):
        check(session(), "test.yaml", text=yaml.safe_dump(work))


def test_a_stage_that_asks_for_more_chips_than_its_pipeline_allows_is_refused_when_it_is_checked() -> None:
    stage = {"name": "s", **HPC, "limits": {"chip_count": {"min": 16}}}
    text = yaml.safe_dump({"kind": "pipeline", "name": "p", "stages": [stage], "limits": {"chip_count": {"max": 8}}})
    with pytest.raises(InvalidFile, match=r"16 is above limits.chip_count.max of the pipeline, which is 8"):
        check(session(), "test.yaml", text=text)


@pytest.mark.parametrize(
    ("each", "limits", "options", "counts"),
    [
        (8, (1, 64), {}, [1, 2, 3, 4, 6, 8]),
        (1, (5, 10), {}, [5, 6, 8, 10]),  # the ends of the limits, which are between those tried
        (8, (9, 10), {}, []),
        (1, (1, 12), {"least": 7}, [7, 8, 12]),
        (8, (1, 130), {"span": 5}, [5, 15]),  # replicas over five machines
        (1, (600, 4096), {}, [600]),
        (8, (4096, 16384), {}, [512, 768, 1024, 1536, 2048]),  # more than are tried unasked, where the file allows them
        (8, (1, 100_000), {"least": 2000}, [2000, 2048, 3072, 4096]),  # there is an end
    ],
)
def test_the_numbers_of_machines_that_are_tried(
    each: int, limits: tuple[int, int], options: dict[str, int], counts: list[int]
) -> None:
    assert list(machine_counts(each, limits, **options)) == counts


def test_without_a_most_as_many_as_are_tried_or_asked_for() -> None:
    assert chip_limits(Limits()) == (1, 4096)
    assert chip_limits(Limits(chip_count={"min": 5000})) == (5000, 5000)


PRETRAIN = {
    "kind": "train",
    "name": "large",
    "model": "llama-3.1-405b",
    "tokens": "1T",
    "sequence_length": 8192,
    "precision": "bf16",
}


def pretrained(**limits: Any) -> Plan:
    goals = limits.pop("goals", {})
    text = yaml.safe_dump({**PRETRAIN, "goals": goals, "limits": {"chips": ["H100"], "large": True, **limits}})
    return plan(session(), "large.yaml", text=text)


def test_a_job_may_take_more_chips_than_are_tried_unasked_where_its_file_allows_them() -> None:
    found = pretrained(chip_count={"max": 16384})
    assert max(one.chips * one.machines for one in found.front) > 4096


def test_the_answer_says_where_the_search_for_chips_ended() -> None:
    found = pretrained()
    assert found.winner is not None
    assert any("Up to 4,096 chips were tried" in note for note in found.notes)


def test_a_deadline_that_needs_more_chips_gets_them() -> None:
    found = pretrained(goals={"deadline": "22d"})
    assert found.winner is not None
    assert found.winner.chips * found.winner.machines > 4096
    assert any("More than 4,096 chips were tried" in note for note in found.notes)


def test_a_small_job_says_nothing_of_the_most_chips_that_are_tried() -> None:
    assert not any("chips were tried" in note for note in pretrained(chip_count={"max": 512}).notes)


def rows_of(seconds: list[float], objective: str, deadline: float | None = None) -> list[int]:
    goals = {} if deadline is None else {"deadline": deadline}
    work = Hpc.model_validate({"kind": "hpc", "name": "a", "flop_per_step": 1e15, "precision": "fp64", "goals": goals})
    return worthwhile(Question(session().known, "test.yaml", work, Rules(), objective, 1), np.array(seconds))


def test_a_number_of_machines_that_does_not_help_ends_nothing() -> None:
    seconds = [1e6, 6e5, 5.8e5, 3e5, 3.1e5, 2.9e5, 1.5e5]
    assert rows_of(seconds, "time") == [0, 1, 3, 6]
    assert rows_of(seconds, "cost", 3.2e5) == [0, 1, 3, 6]
    assert rows_of(seconds, "cost", 5.9e5) == [0, 1, 2, 3, 6]
    assert rows_of(seconds, "cost") == [0, 1, 3]


def test_more_machines_are_no_help_where_they_start_up_for_longer_than_they_work() -> None:
    assert rows_of([60.0, 30.0, 15.0, 1.0], "time") == [0]
    assert rows_of([600.0, 300.0, 150.0, 10.0], "time") == [0, 1, 2, 3]
    assert rows_of([60.0, 30.0, 15.0, 1.0], "time", 620.0) == [0, 2], "though one is in time"


def test_the_fewest_chips_that_hold_a_problem_are_tried_though_they_are_no_usual_number() -> None:
    large = {**HPC, "working_set": "2600GiB", "limits": {"chips": ["H100"], "clouds": ["aws"], "interruptible": False}}
    assert set(chips(planned(large, max=40))) == {36, 40}  # nine machines of four, five of eight: neither is usual
    assert planned(large, max=32).missing[0].reason == NeedsChips(36, 32)


LATE = {**KINDS["tokens learnt"], "tokens": 2e10, "goals": {"deadline": "12h"}}


def test_where_nothing_is_in_time_the_chips_that_would_be_are_told() -> None:
    found = planned(LATE, max=8)
    assert found.winner is None
    needs = next(lack.reason for lack in found.missing if isinstance(lack.reason, NeedsChips))
    assert any(isinstance(lack.reason, MissesDeadline) for lack in found.missing)
    assert planned(LATE, max=needs.needed).winner is not None


def test_a_family_that_is_late_for_want_of_chips_tells_how_many_it_needs() -> None:
    work = {**LATE, "tokens": 3e9, "limits": {"chips": ["H100", "L4"]}}
    found = planned(work, max=8)
    assert found.winner is not None
    (lost,) = [loss for loss in found.losses if loss.family == "NVIDIA Ada Lovelace"]
    assert isinstance(lost.why, NeedsChips)
    only = {**work, "limits": {"chips": ["L4"]}}
    assert planned(only, max=lost.why.needed).winner is not None
    assert planned(only, max=8).winner is None
