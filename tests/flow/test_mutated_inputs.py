"""Whatever a file or an option holds, the newest commands answer with a documented exit code, in words, and soon."""

from __future__ import annotations

from pathlib import Path

from command import ROOT, Chipwise, Done
from effort import cases
from every_command import DOCUMENTED
from mutated_inputs import CONFIG, DATA, inputs, mutated
from odd_paths import WaitsTooLong, at_most

LIMIT_S = 20.0  # of what takes a fraction of a second
SEED = 20_000


def called(chipwise: Chipwise, folder: Path, words: tuple[str, ...], cwd: Path = ROOT) -> Done:
    """With directories of its own."""
    return chipwise(*words, cwd=cwd, CHIPWISE_CONFIG_DIR=str(folder / CONFIG), CHIPWISE_DATA_DIR=str(folder / DATA))


def test_what_is_spoilt_is_a_command_that_works(chipwise: Chipwise, tmp_path: Path) -> None:
    ends_early: dict[tuple[str, ...], int] = {
        ("accuracy", "train"): 1,
        ("load", "http://127.0.0.1:9"): 3,
        ("characterize", "--for"): 1,
    }
    ends_early |= {("serve", "--key-file"): 2, ("calibrate", "FOLDER/m.csv"): 2, ("calibrate", "--from-runs"): 1}
    wrong = []
    for place, known in enumerate(inputs()):
        folder = tmp_path / str(place)
        done = called(chipwise, folder, known.write(folder))
        if done.code not in (0, ends_early.get(known.words[:2], int(known.words[0] in ("health", "audit")))):
            wrong.append((known.words, done.code, done.err))
    assert not wrong


def test_a_spoilt_input_is_answered_in_words(chipwise: Chipwise, tmp_path: Path) -> None:
    faults = []
    for seed in range(SEED, SEED + cases(300)):
        spoilt = mutated(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        words = spoilt.write(folder)
        try:
            with at_most(LIMIT_S):
                done = called(chipwise, folder, words, folder)
        except WaitsTooLong as error:
            faults.append(f"{seed}: {error}: {spoilt}")
            continue
        if done.code not in DOCUMENTED or "Traceback" in done.err or (done.code and not (done.err or done.out).strip()):
            faults.append(f"{seed}: exit code {done.code}: {done.err[-600:]} {spoilt}")
        if changed := spoilt.changed(folder):
            faults.append(f"{seed}: changed or left half written: {changed} {spoilt}")
    assert not faults, "\n".join(faults)
