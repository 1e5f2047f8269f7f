"""What follows from runs of a program: when it is steady, what a step is, how parallel it is, and what is not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.observe.characterise import amdahl, steady
from chipwise.observe.characterise.answers import measured_answers
from chipwise.observe.characterise.characterise import ProgramRuns, characterise, delayed_share, steady_since
from chipwise.observe.characterise.values import Bounded, Characterisation, Hardware, Observed
from chipwise.observe.characterise.workload_text import workload_text
from chipwise.observe.sample import PROGRAM, NoReading, Sample
from chipwise.workload.kinds import Hpc, Train
from chipwise.workload.parse import parse

HERE = Hardware("Xeon-Sapphire-Rapids", 1, 2)
NUMPY = {
    "python": "3.11",
    "framework": "numpy",
    "total_flop": 5e9,
    "step": "repeat",
    "step_flop": [4e6],
    "step_bytes": [1e8],
    "step_inside_s": 0.09,
    "step_unknown_s": 0.0,
    "step_net_s": 0.1,
    "formats": {"fp64": 5e9},
    "done": True,
}
TORCH = {
    "python": "3.11",
    "framework": "torch",
    "step_flop": [6e9, 6e9, 6e9],
    "step_bytes": [1e8, 1e8, 1e8],
    "counted_steps": 3,
    "products": {"fp32": 1.8e10},
    "wall_s": 1.0,
    "inside_s": 0.9,
    "overhead_s": 0.05,
    "samples": 32.0,
    "forward_flop": 2e9,
    "activations": 1e6,
    "product_calls": 4,
    "convolution_flop": 5.9e9,
    "parameters": 50_000,
    "input": [32, 3, 64, 64],
    "device": "cpu",
    "optimizer": "SGD",
    "transfers": {"to_device": 3e6},
}


def samples(count: int, cores: float = 1.0, every: float = 0.2) -> list[Sample]:
    return [
        Sample(at * every, PROGRAM, {"cpu": cores, "memory_used": 1e8, "io_read": 1e6 * at, "disk_read": 0.0, "processes": 1.0})
        for at in range(count)
    ]


def run(**changes: object) -> Observed:
    plain = Observed(began_s=0.0, wall_s=10.0, exit_code=None, step_times={}, samples=samples(50))
    return replace(plain, **changes)  # type: ignore[arg-type]


def of(timed: Observed, counted: Observed | None = None, **others: Observed) -> Characterisation:
    by_threads = {int(name[1:]): observed for name, observed in others.items()}
    character = characterise(ProgramRuns(("python", "train.py"), timed, counted, by_threads, HERE))
    assert character is not None
    return character


def test_the_slow_start_is_left_out() -> None:
    times = [0.0, 5.0, 9.0, *(9.0 + 0.1 * step for step in range(1, 100))]
    since = steady.steady_steps(times)
    assert since is not None
    assert since >= 9.0
    mean, low, high = steady.step_seconds([time for time in times if time >= since])
    assert low <= mean <= high
    assert mean == pytest.approx(0.1)


def test_steps_that_take_longer_and_longer_are_not_steady() -> None:
    assert steady.steady_steps([step**2.0 for step in range(60)]) is None
    assert characterise(ProgramRuns(("a",), run(samples=samples(3)), None, {}, HERE)) is None


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_the_parallel_share_of_exact_times_is_found(share: float) -> None:
    times = {threads: (10 * (1 - share + share / threads),) * 3 for threads in (1, 2, 4)}
    character = amdahl.parallel_share(times)
    assert isinstance(character, Bounded)
    assert character.value == pytest.approx(share, abs=1e-9)
    assert character.low <= share <= character.high


def test_one_run_says_nothing_of_threads() -> None:
    assert isinstance(amdahl.parallel_share({2: (1.0, 1.0, 1.0)}), NoReading)


def test_operations_that_repeat_are_a_step() -> None:
    character = of(run(), run(counts=NUMPY))
    assert (character.kind, character.step, character.precision) == ("hpc", "repeat", "fp64")
    assert isinstance(character.intensity, Bounded)
    assert character.intensity.value == pytest.approx(0.04)
    work = parse(workload_text(character, "a"))
    assert isinstance(work, Hpc)
    assert work.flop_per_step == pytest.approx(4e6)
    assert work.measured is not None
    assert work.measured[0].vcpus == 2
    assert work.measured[0].seconds == pytest.approx(0.1)


def test_counts_that_explain_little_of_the_time_are_not_given() -> None:
    character = of(run(), run(counts={**NUMPY, "step_inside_s": 0.01}))
    assert isinstance(character.flop, NoReading)
    assert "10% of the time" in character.flop.reason
    work = parse(workload_text(character, "a"))
    assert isinstance(work, Hpc)
    assert work.is_unknown


def test_a_network_becomes_a_training_that_can_be_read() -> None:
    steps = [0.1 * step for step in range(100)]
    character = of(run(step_times={"optimizer": steps}, counts={"batches": 100, "data_wait_s": 2.0}), run(counts=TORCH))
    assert character.network is not None
    assert (character.kind, character.network.layers, character.network.image_size) == ("train", "cnn", 64)
    assert character.network.macs == round(2e9 / 2 / 32)
    assert isinstance(character.data_wait, Bounded)
    assert character.data_wait.value == pytest.approx(0.2)
    assert isinstance(character.transfers, Bounded)
    assert character.transfers.value == pytest.approx(1e6)
    work = parse(workload_text(character, "a"))
    assert isinstance(work, Train)
    assert work.batch_samples == 32


def test_importing_pytorch_is_not_what_a_program_does() -> None:
    """A busy core and no step yet, for longer than was to be watched."""
    assert steady_since(run(counts={"python": "3.12", "imports": "torch"})) is None
    assert steady_since(run(counts={"python": "3.12", "framework": "torch"})) is None
    assert steady_since(run(counts={"python": "3.12", "framework": "torch"}, wall_s=70.0)) is not None, "it has no steps"
    assert steady_since(run(counts={"python": "3.12"})) is not None


def test_operations_of_a_step_are_not_those_of_a_second_or_a_run() -> None:
    counts = run(counts={**TORCH, "step": "optimizer"})
    assert isinstance(of(run(), counts).flop, NoReading)
    flop = of(run(exit_code=0, step_times={"optimizer": [1.0, 2.0, 3.0, 4.0]}), counts).flop
    assert isinstance(flop, Bounded)
    assert flop.value == pytest.approx(4 * 6e9)
    steps = [0.1 * step for step in range(100)]
    flop = of(run(step_times={"bar": steps, "forward": []}), run(counts={**TORCH, "step": "optimizer"})).flop
    assert isinstance(flop, NoReading)


def test_a_run_that_ends_is_the_job() -> None:
    character = of(run(exit_code=0), None)
    assert character.step == "run"
    assert "per: job" in workload_text(character, "a")
    assert isinstance(character.flop, NoReading)


def test_a_program_without_steps_is_counted_in_seconds() -> None:
    character = of(run())
    assert character.step == "second"
    assert "NOT KNOWN" in workload_text(character, "a")


def test_a_name_that_breaks_out_of_a_comment_stays_in_it() -> None:
    character = replace(of(run()), command=("a\nkind: train", "\x1b[31m"))
    assert parse(workload_text(character, "a")).kind == "hpc"


def test_all_four_questions_are_answered() -> None:
    questions = [answer.question for answer in measured_answers(of(run(), run(counts=NUMPY)))]
    assert questions == ["Is the work parallel enough?", "Latency:", "How does it scale?", "Budget:"]


def test_neighbours_that_held_the_cores_are_noticed() -> None:
    seen = [replace(sample, readings={**sample.readings, "cpu_delayed": sample.at_s}) for sample in samples(50)]
    character = of(run(samples=seen))
    assert delayed_share(seen, character.cores) == pytest.approx(0.5)
    assert "it mostly waits" not in measured_answers(character)[1].measured
    assert "Other programs held the cores for 50%" in character.notes[0]


@pytest.mark.parametrize(("waits", "is_known"), [(0.0, True), (0.1, True), (4.0, False)])
def test_the_parallel_share_is_unknown_where_others_held_the_cores(waits: float, is_known: bool) -> None:
    """Four threads that wait for cores take as long as one."""

    def observed(step_s: float, delayed: float) -> Observed:
        seen = [replace(one, readings={**one.readings, "cpu_delayed": delayed * one.at_s}) for one in samples(200)]
        return run(samples=seen, exit_code=0, wall_s=step_s)

    share = of(observed(40.0, 0.0), t1=observed(40.0, 0.0), t4=observed(40.0, waits)).parallel
    assert isinstance(share, Bounded) is is_known
    if isinstance(share, Bounded):
        assert share.high >= waits / (1.0 + waits)
    else:
        assert "other programs held the cores" in share.reason


def test_a_program_that_waits_is_not_helped_by_a_faster_chip() -> None:
    assert "it mostly waits" in measured_answers(of(run(samples=samples(50, cores=0.1))))[1].measured
