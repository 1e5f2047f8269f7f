"""Real processes: a checkpoint that four wrote is taken up by two, then by three, and nobody can tell afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chipwise.job.checkpoints import Checkpoints
from patience import deadline

pytestmark = pytest.mark.e2e
PROGRAM = Path(__file__).parents[1] / "support" / "elastic_training.py"
STEPS = 60


class Ranks:
    """One attempt after another, each with its own number of processes."""

    def __init__(self, home: Path) -> None:
        self.home, self.attempt = home, 0
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, world: int, pause_s: float = 0.0, **env: str) -> None:
        self.attempt += 1
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            port = held.getsockname()[1]
        told = {"WORLD_SIZE": str(world), "MASTER_PORT": str(port), "CHIPWISE_ATTEMPT": str(self.attempt)}
        words = [str(self.home / "checkpoints"), str(self.home / "result.json"), str(STEPS), str(pause_s)]
        with (self.home / "log").open("ab") as log:
            self.running = [
                subprocess.Popen(
                    [sys.executable, str(PROGRAM), *words],
                    env={**os.environ, **told, "RANK": str(rank), **env},
                    stdout=log,
                    stderr=log,
                )
                for rank in range(world)
            ]

    def ended(self, seconds: float = 60) -> list[int]:
        try:
            return [one.wait(seconds) for one in self.running]
        except subprocess.TimeoutExpired:
            raise AssertionError((self.home / "log").read_text()[-3000:]) from None
        finally:
            self.kill()

    def signal(self, number: int) -> None:
        for one in self.running:
            one.send_signal(number)

    def kill(self) -> None:
        for one in self.running:
            if one.poll() is None:
                one.kill()
            one.wait()

    def saved(self) -> int:
        if not (self.home / "checkpoints").exists():
            return 0
        found = [int(one.name.split("-")[1].split(".")[0]) for one in (self.home / "checkpoints").glob("*.manifest.json")]
        return max(found, default=0)

    def until_saved(self, step: int, seconds: float = 60) -> None:
        late = deadline(seconds)
        while self.saved() < step:
            gone = [one.poll() for one in self.running if one.poll() is not None]
            assert not gone, (gone, (self.home / "log").read_text()[-3000:])
            assert time.monotonic() < late, (self.home / "log").read_text()[-3000:]
            time.sleep(0.01)

    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.home / "result.json").read_text())
        return found


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[Ranks]:
    made = Ranks(tmp_path)
    yield made
    made.kill()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    alone = Ranks(tmp_path_factory.mktemp("undisturbed"))
    alone.start(1)
    assert alone.ended() == [0]
    return alone.result()


def test_four_then_two_then_three_give_what_one_gives_to_the_last_bit(ranks: Ranks, undisturbed: dict[str, Any]) -> None:
    ranks.start(4, 0.02)
    ranks.until_saved(8)
    ranks.signal(signal.SIGTERM)
    assert set(ranks.ended()) == {75}
    first = ranks.saved()
    ranks.start(2, 0.02)
    ranks.until_saved(first + 8)
    ranks.signal(signal.SIGKILL)
    ranks.ended()
    assert ranks.saved() < STEPS
    ranks.start(3)
    assert ranks.ended() == [0, 0, 0]
    assert ranks.result() == undisturbed
    assert len(undisturbed["losses"]) == STEPS


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_killed_in_the_middle_of_putting_states_together_costs_nothing(
    ranks: Ranks, undisturbed: dict[str, Any], rank: int
) -> None:
    ranks.start(4, 0.02)
    ranks.until_saved(8)
    ranks.signal(signal.SIGKILL)
    ranks.ended()
    before = ranks.saved()
    ranks.start(2, DIES_WHILE_JOINING=str(rank))
    late = deadline(30)
    while ranks.running[rank].poll() is None:
        assert time.monotonic() < late, (ranks.home / "log").read_text()[-3000:]
        time.sleep(0.01)
    assert ranks.running[rank].wait() == -signal.SIGKILL
    ranks.kill()
    assert ranks.saved() == before
    ranks.start(3)
    assert ranks.ended() == [0, 0, 0]
    assert ranks.result() == undisturbed


def test_killed_at_any_moment_with_any_number_it_goes_on_with_any_other(ranks: Ranks, undisturbed: dict[str, Any]) -> None:
    chance = random.Random(6)
    for _ in range(6):
        ranks.start(chance.randint(1, 4), 0.01)
        time.sleep(chance.uniform(0.2, 1.2))
        ranks.signal(signal.SIGKILL)
        ranks.ended()
    ranks.start(chance.randint(1, 4))
    assert set(ranks.ended()) == {0}
    assert ranks.result() == undisturbed


def test_what_was_saved_can_be_read_whole_by_one_who_looks(ranks: Ranks) -> None:
    ranks.start(3, 0.02)
    ranks.until_saved(8)
    ranks.signal(signal.SIGTERM)
    assert set(ranks.ended()) == {75}
    found = Checkpoints(ranks.home / "checkpoints", rank=0, world=1, attempt=9, split={"momentum": 0}).load()
    assert found is not None
    assert found.state["momentum"].shape == (11,)
