"""Kills a real training process at random moments, again and again, and looks whether anything was lost or believed wrongly.

    python benchmarks/faults/checkpoint.py [KILLS, default 200] [--seed N]

A NumPy training (momentum SGD with its own random generator) runs in a process of its own and is killed with SIGKILL after a
random time; every fifth time a file of the newest checkpoint is damaged as well (a bit, the end, all of it). The next process
must go on from the newest whole checkpoint (found by a reader that shares no code with the library), and the finished training
must be equal to an undisturbed one, bit for bit. When a training is done and kills are left, another begins. Exit code 1 where
anything was lost or wrongly believed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from figure import Figure

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # processes are forked here, and threads would not come along

import numpy as np

import chipwise.job as job

TOTAL = 400
EVERY = 3


@dataclass(slots=True)
class Tally:
    kills: int = 0
    resumes: int = 0
    lost_beyond_checkpoint: int = 0
    damaged: int = 0
    corrupted_accepted: int = 0
    trainings: int = 0
    bit_equal: int = 0

    @property
    def clean(self) -> bool:
        return not (self.lost_beyond_checkpoint or self.corrupted_accepted) and self.bit_equal == self.trainings

    def table(self) -> str:
        rows = [
            ("kills", self.kills),
            ("resumes", self.resumes),
            ("lost steps beyond checkpoint", self.lost_beyond_checkpoint),
            ("checkpoints damaged on purpose", self.damaged),
            ("corrupted accepted", self.corrupted_accepted),
            ("bit-equal", f"{self.bit_equal} of {self.trainings}"),
        ]
        return "\n".join(f"{name:<32}{value:>12}" for name, value in rows)


def train(directory: Path, report: Path, pause_s: float) -> str:
    """One process's life; the digest of the finished state."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(256, 24))
    target = features @ rng.normal(size=24)
    state: dict[str, Any] = {
        "weights": np.zeros(24),
        "momentum": np.zeros(24),
        "ballast": np.zeros(20_000),
        "rng": np.random.default_rng(11),
        "losses": [],
    }
    first = True
    for step in job.steps(state, total=TOTAL, every=EVERY, keep=2, directory=directory):
        if first:
            report.write_text(str(step))
            first = False
        rows = state["rng"].integers(0, 256, size=16)
        error = features[rows] @ state["weights"] - target[rows]
        state["momentum"][:] = 0.9 * state["momentum"] + features[rows].T @ error / 16
        state["weights"] -= 0.01 * state["momentum"]
        state["ballast"][step % 20_000] = error.sum()
        state["losses"].append(float(error @ error))
        if pause_s:
            time.sleep(pause_s)
    digest = hashlib.sha256()
    for name in ("weights", "momentum", "ballast"):
        digest.update(state[name].tobytes())
    digest.update(json.dumps(state["losses"]).encode())
    digest.update(str(state["rng"].bit_generator.state).encode())
    return digest.hexdigest()


def newest_whole(directory: Path) -> int:
    """The step of the newest whole checkpoint, by nothing but the documented format."""
    for path in sorted(directory.glob("step-*.manifest.json"), reverse=True):
        try:
            manifest = json.loads(path.read_text())
            files = [(directory / one["name"], one["sha256"]) for one in manifest["files"]]
            content = {key: value for key, value in manifest.items() if key != "sha256"}
            text = json.dumps(content, sort_keys=True, separators=(",", ":"))
            own = hashlib.sha256(text.encode()).hexdigest() == manifest["sha256"]
            if own and all(hashlib.sha256(file.read_bytes()).hexdigest() == told for file, told in files):
                return int(manifest["step"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return 0


def damage(directory: Path, dice: random.Random) -> bool:
    """Harm one file of the newest checkpoint, where there is an older one to fall back to."""
    manifests = sorted(directory.glob("step-*.manifest.json"), reverse=True)
    if len(manifests) < 2:
        return False
    try:
        files = [directory / one["name"] for one in json.loads(manifests[0].read_text())["files"]]
    except ValueError:  # harmed before, and the program was killed before it saved again
        return False
    path = dice.choice([*files, manifests[0]])
    content = bytearray(path.read_bytes())
    way = dice.choice(("bit", "end", "all")) if path in files else "end"
    if way == "bit":
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    elif way == "end":
        del content[dice.randrange(len(content) - 2) :]
    else:
        content.clear()
    path.write_bytes(content)
    return True


def start(directory: Path, report: Path, result: Path) -> int:
    report.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            logging.disable(logging.WARNING)
            written = result.with_name("result.tmp")
            written.write_text(train(directory, report, 0.0005))
            written.replace(result)
            code = 0
        finally:
            os._exit(code)
    return child


def judge(report: Path, expected: int, tally: Tally) -> None:
    """Where a process that came to its first step began."""
    if not report.exists() or not (text := report.read_text()):
        return
    began = int(text)
    tally.resumes += began > 0
    tally.lost_beyond_checkpoint += max(0, expected - began)
    tally.corrupted_accepted += began > expected


def run(kills: int, seed: int) -> Tally:
    dice = random.Random(seed)
    tally = Tally()
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        wanted = train(root / "undisturbed", root / "report", 0.0)
        while tally.kills < kills:
            tally.trainings += 1
            directory, report, result = root / f"training-{tally.trainings}", root / "report", root / "result"
            result.unlink(missing_ok=True)
            while not result.exists():
                expected = newest_whole(directory)
                child = start(directory, report, result)
                if tally.kills < kills:
                    time.sleep(dice.uniform(0.0, 0.15))
                    os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
                judge(report, expected, tally)
                if os.WIFSIGNALED(status):
                    tally.kills += 1
                    if tally.kills % 5 == 0:
                        tally.damaged += damage(directory, dice)
                elif os.WEXITSTATUS(status):
                    raise SystemExit(f"the training itself failed with code {os.WEXITSTATUS(status)}")
            tally.bit_equal += result.read_text() == wanted
    return tally


def figures(long: bool = False) -> Iterator[Figure]:
    """In a process of its own, since it forks."""
    from figure import Figure

    kills = 200 if long else 25
    done = subprocess.run([sys.executable, __file__, str(kills), "--json"], capture_output=True, text=True, timeout=60 + kills)
    told = json.loads(done.stdout)
    yield Figure("faults_checkpoint_kills", told["kills"], "kills", {"min": kills})
    yield Figure("faults_checkpoint_lost_steps", told["lost_beyond_checkpoint"], "steps", {"max": 0})
    yield Figure("faults_checkpoint_corrupted_accepted", told["corrupted_accepted"], "checkpoints", {"max": 0})
    yield Figure("faults_checkpoint_not_bit_equal", told["trainings"] - told["bit_equal"], "trainings", {"max": 0})


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kills", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    tally = run(asked.kills, asked.seed)
    print(json.dumps(asdict(tally)) if asked.json else tally.table())
    return 0 if tally.clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
