"""A run that a user measured, as a file and as the command line have it."""

from __future__ import annotations

import pytest

from chipwise.errors import BadInput, InvalidFile
from chipwise.workload.common import UNKNOWN_MODEL
from chipwise.workload.kinds import Hpc, Train
from chipwise.workload.measured import Bound, Per, counted, lines_of, read_line
from chipwise.workload.parse import parse

TRAIN = "kind: train\nname: a\nmodel: resnet-50\nsamples: 1.2M\nepochs: 90\n"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("rtx-4090=6h", {"on": "rtx-4090", "takes": "6h"}),
        ("rtx-4090=6h/epoch", {"on": "rtx-4090", "takes": "6h", "per": "epoch"}),
        ("rtx-4090=6h per epoch", {"on": "rtx-4090", "takes": "6h", "per": "epoch"}),
        ("8xh100=0.9s/step@256", {"on": "h100", "chips": 8, "takes": "0.9s", "per": "step", "batch": "256"}),
        ("l4=1200 images/s", {"on": "l4", "rate": "1200 images/s"}),
        ("l40s=900 tokens/s@32", {"on": "l40s", "rate": "900 tokens/s", "concurrency": "32"}),
        ("l4=80ms/request@4", {"on": "l4", "takes": "80ms", "per": "request", "concurrency": "4"}),
    ],
)
def test_a_line_of_the_command_line_is_what_a_file_would_have(line: str, fields: dict[str, object]) -> None:
    assert read_line(line) == fields


@pytest.mark.parametrize("line", ["", "rtx-4090", "=6h", "rtx-4090=", "rtx-4090=fast", "rtx-4090=0s", "rtx-4090=-3h"])
def test_a_line_that_is_neither_a_time_nor_a_rate_is_refused(line: str) -> None:
    with pytest.raises(BadInput, match="--measured"):
        read_line(line)


@pytest.mark.parametrize(
    ("rate", "per_second", "per"),
    [
        ("1200 images/s", 1200.0, Per.SAMPLE),
        ("1.2k img/s", 1200.0, Per.SAMPLE),
        ("60 frames per hour", 1 / 60, Per.FRAME),
        ("30 fps", 30.0, Per.FRAME),
        ("12 queries/s", 12.0, Per.REQUEST),
        ("5M tokens/day", 5e6 / 86400, Per.TOKEN),
        ("2.5 it/s", 2.5, Per.STEP),
    ],
)
def test_a_rate_says_what_it_counts(rate: str, per_second: float, per: Per) -> None:
    found = counted(rate)
    assert found is not None
    assert found[0] == pytest.approx(per_second)
    assert found[1] is per


def test_one_line_or_a_list_of_them() -> None:
    work = parse(f"{TRAIN}measured: {{on: rtx-4090, takes: 6h, per: epoch}}")
    assert work.measured is not None
    assert [line.seconds for line in work.measured] == [21600.0]
    lines = parse(f"{TRAIN}measured: [{{on: a100, rate: 2k images/s}}, {{on: h100, takes: 10min, per: epoch}}]").measured
    assert [line.per for line in lines or ()] == [Per.SAMPLE, Per.EPOCH]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("{on: rtx-4090, takes: 0s}", "is not above zero"),
        ("{on: rtx-4090, takes: -2h}", "zero"),
        ("{on: rtx-4090, takes: 900y}", "was not measured"),
        ("{on: rtx-4090}", "exactly one of takes or rate"),
        ("{on: rtx-4090, takes: 2h, rate: 3 images/s}", "cannot be combined"),
        ("{on: rtx-4090, rate: 12 frames/s}", "has no frames"),
        ("{on: rtx-4090, rate: 12 bananas/s}", "does not say what is counted"),
        ("{on: rtx-4090, takes: 1h, per: request}", "has no requests"),
        ("[{on: rtx-4090, takes: 6h}, {on: rtx-4090, takes: 9h}]", "differ by 1.5 times"),
    ],
)
def test_what_was_not_measured_so_is_refused(lines: str, message: str) -> None:
    with pytest.raises(InvalidFile, match=message):
        parse(f"{TRAIN}measured: {lines}")


def test_where_a_run_is_measured_no_model_need_be_named() -> None:
    work = parse("kind: train\nname: a\nmeasured: {on: rtx-4090, takes: 6h}")
    assert isinstance(work, Train)
    assert (work.model, work.is_unknown) == (UNKNOWN_MODEL, True)
    solver = parse("kind: hpc\nname: a\nmeasured: {on: a100, takes: 6h, bound: bandwidth}")
    assert isinstance(solver, Hpc)
    assert solver.is_unknown
    assert [line.bound for line in solver.measured or ()] == [Bound.MEMORY]


@pytest.mark.parametrize("text", ["kind: train\nname: a\nsamples: 3k", "kind: hpc\nname: a\nsteps: 3", f"{TRAIN}x: 1"])
def test_without_a_run_nothing_changes(text: str) -> None:
    with pytest.raises(InvalidFile, match=r"model: is required|one of flop_per_step|is not a field"):
        parse(text)


def test_a_model_that_nothing_tells_of_is_refused() -> None:
    with pytest.raises(InvalidFile, match="nothing tells how fast"):
        parse("kind: train\nname: a\nmodel: unknown\nsamples: 3k")


def test_work_that_no_run_tells_of_says_so() -> None:
    with pytest.raises(InvalidFile, match="does not go with the kind interactive"):
        parse("kind: interactive\nname: a\npeople: 3\nmemory: 3GB\nmeasured: {on: a100, takes: 3s}")


def test_lines_without_a_file_are_checked_alike() -> None:
    (line,) = lines_of(["8xh100=0.9s/step@256"])
    assert (line.chips, line.batch, line.per) == (8, 256.0, Per.STEP)
    with pytest.raises(BadInput, match="--measured"):
        lines_of(["h100=900y"])


def test_a_run_on_a_part_of_a_processor_says_so() -> None:
    work = parse("kind: hpc\nname: a\nmeasured: {on: Xeon-Sapphire-Rapids, vcpus: 2, takes: 9s}\n", "a.yaml")
    assert isinstance(work, Hpc)
    assert work.measured is not None
    assert work.measured[0].chip_words == "2 vCPUs of one Xeon-Sapphire-Rapids"
