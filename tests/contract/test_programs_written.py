"""A rendered job needs nothing that nobody wrote: a program that a command names is among the files, in the image, or stated as
the user's own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from chipwise.planner.values.split import TrainingSplit
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.named_targets import files, target, target_names
from deployments import NAMES, on_few_offers
from effort import LONG

_PROGRAM = re.compile(r"(?<![\w./-])(?:\.{0,2}/?[\w./-]*/)?([\w-]+\.(?:py|sh))\b(?!/)")
_COMMENT = re.compile(r"^\s*(?:#|//).*$|\s#\s.*$", re.MULTILINE)
_OF_OTHERS = {"start-notebook.py", "other.py"}  # of the image of Jupyter; what an example in `track.py` is called
_STATED = ("program.command of the workload", "`--to dockerfile` writes both")


def rendered(what: Deployment, name: str) -> dict[str, str]:
    try:
        return {file.path: file.text for file in files(name, target(name), what)}
    except CannotRender:
        return {}


def unwritten(what: Deployment, name: str) -> set[str]:
    made = rendered(what, name)
    every = "\n".join(made.values())
    named = {one for text in made.values() for one in _PROGRAM.findall(_COMMENT.sub("", text))}
    inside = {one for one in named if re.search(rf"^\s*\"?{re.escape(one)}\"?:|{re.escape(one)} <<", every, re.MULTILINE)}
    left = named - {path.rpartition("/")[2] for path in made} - inside - _OF_OTHERS
    return set() if any(words in every for words in _STATED) else left


@pytest.mark.parametrize("example", NAMES if LONG else ("finetune", "train"))
def test_every_program_that_a_command_names_is_written_or_stated_as_the_users(example: str) -> None:
    what = on_few_offers(example)
    assert {name: left for name in target_names() if (left := unwritten(what, name))} == {}


def test_a_plan_that_our_program_cannot_run_says_why_it_is_not_written() -> None:
    planned = on_few_offers("finetune")
    assert isinstance(planned.split, TrainingSplit)
    cut = replace(planned, split=replace(planned.split, tp=2))
    silent = []
    for name in target_names():
        text = "\n".join(rendered(cut, name).values())
        if "finetune.py" in text and "No finetune.py is written, since ours gives each GPU" not in re.sub(
            r"\n[#\s]*", " ", text
        ):
            silent.append(name)
    assert silent == []


def test_what_runs_in_no_image_brings_the_program_and_its_packages() -> None:
    made = rendered(on_few_offers("finetune"), "skypilot")
    assert {"finetune.py", "finetune.json", "finetune-requirements.txt"} <= set(made)
    assert "pip install --requirement finetune-requirements.txt" in made["task.yaml"]
    assert "comes with the image" not in made["task.yaml"]
