"""The loop: every step is done once, and a program that is started again does the rest."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chipwise.job as job
from chipwise.errors import InvalidSettings
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.stepping import without_chance
from effort import cases
from patience import deadline


def fresh() -> dict[str, Any]:
    return {"w": np.zeros(3), "rng": np.random.default_rng(1), "done": []}


def train(state: dict[str, Any], step: int) -> None:
    state["w"] += state["rng"].normal(size=3)
    state["done"].append(step)


def undisturbed(total: int) -> dict[str, Any]:
    state = fresh()
    for step in range(total):
        train(state, step)
    return state


@given(total=st.integers(0, 12), every=st.integers(1, 5), stops=st.lists(st.integers(1, 6), max_size=4))
@settings(max_examples=cases(25))
def test_a_run_that_is_broken_off_anywhere_ends_as_one_that_is_not(
    tmp_path_factory: pytest.TempPathFactory, total: int, every: int, stops: list[int]
) -> None:
    directory = tmp_path_factory.mktemp("steps")
    for stop in stops:
        state = fresh()
        for number, step in enumerate(job.steps(state, total=total, every=every, directory=directory), 1):
            train(state, step)
            if number == stop:
                break
    state = fresh()
    for step in job.steps(state, total=total, every=every, directory=directory):
        train(state, step)
    assert state["done"] == list(range(total))
    assert state["w"].tolist() == undisturbed(total)["w"].tolist()
    assert list(job.steps(fresh(), total=total, directory=directory)) == []  # done is done


def test_sigterm_ends_the_step_saves_and_leaves_with_75(tmp_path: Path) -> None:
    state = fresh()
    heard: list[int] = []

    def run_until_told() -> None:
        for step in job.steps(state, total=100, every=50, directory=tmp_path):
            if step == 7:
                os.kill(os.getpid(), signal.SIGTERM)
                notice = job.leaving()
                assert notice is not None
                assert notice.reason == "SIGTERM"
                assert 25 < (notice.seconds_left or 0) <= 30
            train(state, step)

    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with pytest.raises(SystemExit) as caught:
            run_until_told()
        assert caught.value.code == job.LEFT == 75
        assert heard == [signal.SIGTERM]  # who listened before hears it too
        os.kill(os.getpid(), signal.SIGTERM)
        assert len(heard) == 2  # and alone again afterwards
        assert job.leaving() is None
    finally:
        signal.signal(signal.SIGTERM, before)
    again = fresh()
    rest = list(job.steps(again, total=100, directory=tmp_path))
    assert rest[0] == 8
    assert again["w"].tolist() == state["w"].tolist()


def test_signals_can_be_left_to_the_program(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    for _ in job.steps({"n": 1}, total=2, directory=tmp_path, signals=False):
        assert signal.getsignal(signal.SIGTERM) is before


def test_a_loop_in_another_thread_hears_no_signals_and_runs(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: list(job.steps({"n": 1}, total=3, directory=tmp_path))).result() == [0, 1, 2]


def test_a_worker_forked_inside_the_loop_still_ends_by_sigterm(tmp_path: Path) -> None:
    for _ in job.steps({"n": 1}, total=1, directory=tmp_path):
        child = os.fork()
        if child == 0:
            try:
                time.sleep(30)
            finally:
                os._exit(3)
        time.sleep(0.1)
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        assert os.WTERMSIG(status) == signal.SIGTERM


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "run"
    directory.mkdir()
    monkeypatch.setenv("CHIPWISE_RUN_DIR", str(directory))
    return directory


def test_a_notice_file_makes_it_save_and_leave(tmp_path: Path, run_dir: Path) -> None:
    done: list[int] = []

    def run_until_told() -> None:
        for step in job.steps({"n": 1}, total=10_000, every=10_000, directory=tmp_path / "c"):
            done.append(step)
            if step == 3:
                (run_dir / "notice.json").write_text(json.dumps({"reason": "spot", "until": time.time() + 120}))
            time.sleep(0.02)

    with pytest.raises(SystemExit) as caught:
        run_until_told()
    assert caught.value.code == 75
    found = Checkpoints(tmp_path / "c").load()
    assert found is not None
    assert found.step == len(done)
    assert len(done) < 100


def test_with_no_time_left_it_still_tries(tmp_path: Path, run_dir: Path, caplog: pytest.LogCaptureFixture) -> None:
    def run_until_told() -> None:
        for step in job.steps({"n": 1}, total=10_000, every=2, directory=tmp_path / "c"):
            if step == 5:
                limit = deadline(2)
                while Checkpoints(tmp_path / "c").load() is None and time.monotonic() < limit:
                    time.sleep(0.02)
                time.sleep(0.2)  # how long saving took is known
                (run_dir / "notice.json").write_text(json.dumps({"reason": "spot", "until": time.time() + 1e-4}))
                time.sleep(0.12)

    with pytest.raises(SystemExit):
        run_until_told()
    assert "trying" in caplog.text
    found = Checkpoints(tmp_path / "c").load()
    assert found is not None
    assert found.step == 6


def test_a_signal_that_comes_with_a_notice_has_its_reason_and_its_time(tmp_path: Path, run_dir: Path) -> None:
    heard = []

    def train() -> None:
        for step in job.steps({"n": 0}, total=5, directory=tmp_path / "c"):
            if step == 1:
                assert job.leaving() is None
                (run_dir / "notice.json").write_text(json.dumps({"reason": "spot", "until": time.time() + 120}))
                os.kill(os.getpid(), signal.SIGTERM)
                heard.append(job.leaving())

    with pytest.raises(SystemExit):
        train()
    [notice] = heard
    assert notice is not None
    assert notice.reason == "spot"
    assert 110 < (notice.seconds_left or 0) <= 120


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"until": "soon"}'])
def test_a_notice_that_cannot_be_read_is_a_notice(tmp_path: Path, run_dir: Path, text: str) -> None:
    (run_dir / "notice.json").write_text(text)
    with pytest.raises(SystemExit):
        list(job.steps({"n": 1}, total=5, directory=tmp_path / "c"))


def test_a_notice_for_an_earlier_process_is_none(tmp_path: Path, run_dir: Path) -> None:
    (run_dir / "notice.json").write_text(json.dumps({"reason": "spot", "until": time.time() - 86400}))
    assert list(job.steps({"n": 1}, total=3, directory=tmp_path / "c")) == [0, 1, 2]


def test_progress_is_told_once_a_second_with_each_checkpoint_and_at_the_end(tmp_path: Path, run_dir: Path) -> None:
    seen = set()
    for _ in job.steps({"n": 1}, total=30, every=5, directory=tmp_path / "c"):
        time.sleep(0.05)
        if (run_dir / "progress.json").exists():
            seen.add((run_dir / "progress.json").read_text())
    told = json.loads((run_dir / "progress.json").read_text())
    assert (told["step"], told["total"], told["saved_step"]) == (30, 30, 30)
    assert told["save_seconds"] > 0
    assert 5 < told["rate"] < 25
    assert abs(told["at"] - time.time()) < 10
    assert len(seen) <= 2 + len({json.loads(text)["saved_step"] for text in seen})
    assert [path.name for path in run_dir.iterdir()] == ["progress.json"]


def test_progress_that_cannot_be_written_does_not_stop_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CHIPWISE_RUN_DIR", str(tmp_path / "nowhere"))
    assert len(list(job.steps({"n": 1}, total=4, directory=tmp_path / "c"))) == 4
    assert "Progress cannot be reported" in caplog.text


def test_auto_saves_early_once_and_then_by_the_rate_of_interruptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: dict[str, int] = {}
    for per_hour in ("0", "200000"):
        monkeypatch.setenv("CHIPWISE_INTERRUPTIONS_PER_HOUR", per_hour)
        kept = Checkpoints(tmp_path / per_hour, keep=1000)
        for _ in job.steps({"n": 1}, total=40, checkpoints=kept):
            time.sleep(0.01)
        saved[per_hour] = len(list((tmp_path / per_hour).glob("*.manifest.json")))
    assert saved["0"] == 2  # the first, to measure, and the last
    assert saved["200000"] > 4


def test_a_step_that_fails_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    def fail() -> None:
        state = fresh()
        for step in job.steps(state, total=10, every=2, directory=tmp_path):
            if step == 5:
                raise RuntimeError("a bug")
            train(state, step)
            time.sleep(0.05)

    with pytest.raises(RuntimeError):
        fail()
    found = Checkpoints(tmp_path).load()
    assert found is not None
    assert found.step == 4


@pytest.mark.parametrize("wrong", [{"total": -1}, {"total": 2.5}, {"every": 0}, {"every": "daily"}, {"world": 2}])
def test_settings_that_cannot_be_are_refused_before_anything_happens(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettings):
        job.steps({"n": 1}, **{"total": 5, "directory": tmp_path / "c", **wrong})
    assert not (tmp_path / "c").exists()


def run_ranks(count: int, body: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(count) as pool:
        return [one.result() for one in [pool.submit(body, rank) for rank in range(count)]]


@pytest.mark.parametrize("told", [0, 1])
def test_ranks_that_train_together_leave_after_the_same_step(tmp_path: Path, run_dir: Path, told: int) -> None:
    """Through files: whichever rank is told first. The barrier is what an all-reduce is in training."""
    barrier = threading.Barrier(3, timeout=20)

    def body(rank: int) -> int:
        kept = Checkpoints(tmp_path / "c", rank=rank, world=3, patience_s=10)
        done = 0
        try:
            for step in job.steps({"n": rank}, total=500, every=100, checkpoints=kept):
                if step == 20 and rank == told:
                    (run_dir / "notice.json").write_text("{}")
                barrier.wait()
                time.sleep(0.002)
                done = step + 1
        except SystemExit:
            return done
        return -1

    left = run_ranks(3, body)
    assert len(set(left)) == 1
    assert 20 < left[0] < 400
    found = Checkpoints(tmp_path / "c", rank=1, world=3).load()
    assert found is not None
    assert found.step == left[0]


def test_ranks_decide_by_the_function_they_are_given(tmp_path: Path) -> None:
    barrier = threading.Barrier(2, timeout=20)
    said = [0, 0]

    def agree_of(rank: int) -> Callable[[int], int]:
        def agree(number: int) -> int:
            said[rank] = number
            barrier.wait()
            greatest = max(said)
            barrier.wait()
            return greatest

        return agree

    def body(rank: int) -> int:
        kept = Checkpoints(tmp_path, rank=rank, world=2, patience_s=10)
        return len(list(job.steps({"n": rank}, total=30, every="auto", checkpoints=kept, agree=agree_of(rank))))

    assert run_ranks(2, body) == [30, 30]
    found = Checkpoints(tmp_path, rank=1, world=2).load()
    assert found is not None
    assert (found.step, found.state) == (30, {"n": 1})


def test_a_model_of_torch_without_a_generator_is_known_by_the_names_of_types() -> None:
    """Stand-ins: where torch is installed, `tests/e2e/test_job_torch.py` asks it of real ones."""
    module = type("Module", (), {"__module__": "torch.nn.modules.module"})
    model = type("Net", (module,), {"__module__": "train"})()
    generators = type("State", (), {"__module__": "chipwise.job.torch"})()
    assert without_chance({"model": model})
    assert not without_chance({"model": model, "chance": generators})
    assert not without_chance({"weights": [1.0]})
    assert not without_chance(model)


@pytest.mark.parametrize("per_hour", ["nan", "inf", "-1", "often"])
def test_a_rate_of_interruptions_that_cannot_be_is_refused_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_hour: str
) -> None:
    monkeypatch.setenv("CHIPWISE_INTERRUPTIONS_PER_HOUR", per_hour)
    with pytest.raises(InvalidSettings, match="CHIPWISE_INTERRUPTIONS_PER_HOUR"):
        job.steps({"x": 1}, 3, directory=tmp_path)
