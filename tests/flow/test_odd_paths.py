"""A path that names no ordinary file is answered with a sentence, by every command and option that takes one, and soon."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from command import Chipwise
from effort import LONG
from odd_paths import FOLDERS_TOO, KINDS, PATH, READING, WRITING, WaitsTooLong, at_most, make, path_parameters

LIMIT_S = 10.0  # of one command on a busy machine; what hangs does so for ever
CASES = {**READING, **WRITING}
# `serve rollout` reads what `serve` reads, for a service that is there; what a job produces is looked for and never opened.
ELSEWHERE = {("serve rollout", "words"), ("serve rollout", "weights"), ("run", "produces")}
SHARE = 1 if LONG else 8  # one in so many of the places is tried, with one kind each


def test_every_parameter_that_takes_a_path_is_tried() -> None:
    assert set(path_parameters()) - ELSEWHERE <= set(CASES), set(path_parameters()) - ELSEWHERE - set(CASES)


def test_a_path_of_another_kind_is_refused_with_a_sentence_within_a_second(chipwise: Chipwise, tmp_path: Path) -> None:
    faults = []
    for place, (parameter, (words, ending)) in list(enumerate(CASES.items()))[::SHARE]:
        for kind in KINDS if LONG else (KINDS[place // SHARE % 3],):
            if kind == "a folder" and parameter in FOLDERS_TOO:
                continue
            folder = tmp_path / f"{place}-{KINDS.index(kind)}"
            folder.mkdir()
            with ExitStack() as stack:
                path = make(kind, folder, ending, stack)
                fault = _fault(chipwise, [word.replace(PATH, str(path)) for word in words], folder)
                faults += [f"{' '.join(words)} with {kind}: {fault}"] if fault else []
    assert not faults, "\n".join(faults)


def _fault(chipwise: Chipwise, words: list[str], folder: Path) -> str:
    try:
        with at_most(LIMIT_S):
            done = chipwise(*words, cwd=folder)
    except WaitsTooLong as error:
        return str(error)
    lines = [line for line in done.err.strip().splitlines() if line.startswith("chipwise: ")]
    is_sentence = len(lines) == 1 and "Traceback" not in done.err
    return "" if done.code == 2 and is_sentence else f"exit code {done.code}: {done.out[-200:]}{done.err[-400:]}"


@pytest.mark.parametrize("name", ["settings.yaml", "engines.yaml", "queue.yaml", "catalog/machines.yaml"])
def test_a_pipe_in_place_of_an_own_file_is_not_waited_for(chipwise: Chipwise, name: str) -> None:
    os.mkfifo(chipwise.config_dir / name)
    with at_most(LIMIT_S):
        answers = [chipwise("chips", "h100"), chipwise("ps"), chipwise("run", "--gpus", "1", "--", "true")]
    (chipwise.config_dir / name).unlink()
    assert [answer.code for answer in answers if answer.code not in (0, 2) or "Traceback" in answer.err] == []


@pytest.mark.parametrize("there", ["a file", "a link"])
def test_what_is_there_already_is_left_as_it_is_by_every_command_that_writes(
    chipwise: Chipwise, tmp_path: Path, there: str
) -> None:
    faults = []
    for place, (words, ending) in list(enumerate(WRITING.values()))[:: 1 if LONG else 5]:
        folder = tmp_path / str(place)
        folder.mkdir()
        kept, path = folder / "kept", folder / f"out{ending}"
        kept.write_text("kept")
        if there == "a file":
            path.hardlink_to(kept)
        else:
            path.symlink_to(kept)
        with at_most(LIMIT_S):
            done = chipwise(*[word.replace(PATH, str(path)) for word in words], cwd=folder)
        names = sorted(one.name for one in folder.iterdir())
        if done.code != 2 or kept.read_text() != "kept" or names != sorted(["kept", path.name]):
            faults.append(f"{' '.join(words)}: exit code {done.code}, {names}: {done.out[-200:]}{done.err[-400:]}")
    assert not faults, "\n".join(faults)
