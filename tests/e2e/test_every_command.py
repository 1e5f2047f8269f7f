"""No command crashes on a file that is here: every command on every file, every command with every engine and purchase option
on files in turn, and every file with every engine and purchase option on every target. In one process, on the small catalog."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chipwise.api import render as rendering
from chipwise.api.audit import audit
from chipwise.api.catalog.check import check
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan_any_checked
from chipwise.errors import ChipwiseError, NoResult
from chipwise.planner.options import Constraints, constrained, with_limits
from chipwise.planner.values.pipeline import PipelinePlan
from chipwise.planner.values.plan import Plan
from chipwise.renderer.file import CannotRender, File
from chipwise.workload.common import Common
from chipwise.workload.pipeline import Pipeline
from chipwise.workload.program import Engine, Program
from command import Chipwise
from every_command import COMMANDS, PLANNING, PURCHASES, Cell, fault, triples, workload_files
from small_catalog import few_offers

pytestmark = pytest.mark.plans_once
SIMULATED = 9  # one file in so many is played: the clock of a simulation goes through every month of a service
OWN_COMMAND = (None, Engine.VLLM, Engine.OWN)  # engines that are also tried with a command of the user's own
AUDITED = "kubernetes"
BATCH = "examples/batch/workload.yaml"


@pytest.fixture(scope="module", autouse=True)
def _catalog() -> Iterator[None]:
    with few_offers():
        yield


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_answers_for_every_file(command: tuple[str, ...], chipwise: Chipwise, tmp_path: Path) -> None:
    cells = [Cell(command, file) for file in _files_of(command)]
    codes: Counter[int] = Counter()
    faults = []
    for index, cell in enumerate(cells):
        folder = tmp_path / str(index)
        folder.mkdir()
        done = cell.run(chipwise, folder)
        codes[done.code] += 1
        faults.append(fault(cell, done))
    assert not list(filter(None, faults))
    assert codes[0] > 0  # some are answered, so that the rest is refused for what it is
    assert command[0] != "check" or set(codes) == {0}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_answers_with_every_engine_and_purchase_option(
    command: tuple[str, ...], chipwise: Chipwise, tmp_path: Path
) -> None:
    faults = []
    for index, cell in enumerate(triples(command)):
        folder = tmp_path / str(index)
        folder.mkdir()
        faults.append(fault(cell, cell.run(chipwise, folder)))
    assert len(faults) == len(Engine) * len(PURCHASES)
    assert not list(filter(None, faults))


@pytest.mark.parametrize("file", workload_files())
def test_a_file_is_rendered_or_refused_with_every_engine_and_purchase_option(file: str, tmp_path: Path) -> None:
    """Every engine, some also with a command of the user's own."""
    session = open_session()
    text = workload_files()[file]
    engines = (None, *Engine)
    planned = _planned(session, file, text, None)
    for engine in engines if planned else ():
        assert planned is not None
        work, plan = planned
        if engine in OWN_COMMAND:
            _rendered(session, _with_program(work, engine=engine, command=("python", "own.py")), plan)
        rendered = _rendered(session, _with_program(work, engine=engine), plan)
        if engine is None and AUDITED in rendered:
            rendering.write(tmp_path / "files", {AUDITED: rendered[AUDITED]})
            assert audit(str(tmp_path / "files")).audited
    for purchase in PURCHASES:
        if bought := _planned(session, file, text, purchase):
            for engine in Engine:
                _rendered(session, _with_program(bought[0], engine=engine), bought[1])


def test_a_batch_has_files_of_vllm_whatever_its_engine() -> None:
    session = open_session()
    text = with_limits(workload_files()[BATCH], BATCH, ["chips=[h100]"])  # a chip that vLLM runs on
    planned = _planned(session, BATCH, text, None)
    assert planned is not None
    work, plan = planned
    assert all("vllm" in _rendered(session, _with_program(work, engine=engine), plan) for engine in Engine)


def _files_of(command: tuple[str, ...]) -> list[str]:
    """All; ways of asking one command that plans share them in turn."""
    files = list(workload_files())
    ways: list[tuple[str, ...]] = [one for one in PLANNING if one[0] == command[0]] if command in PLANNING else [command]
    return files[::SIMULATED] if command[0] == "run" else files[ways.index(command) :: len(ways)]


def _planned(session: Session, file: str, text: str, purchase: str | None) -> tuple[Common, Plan | PipelinePlan] | None:
    """None: it is refused, or nothing fits."""
    limits = Constraints(limits=(f"purchase={purchase}",) if purchase else ())
    try:
        checked = check(session, file, None, text=constrained(session.names, text, file, limits) if purchase else text)
        return checked.workload, plan_any_checked(session, file, checked, None, rendering.SEARCHED_CHOICES)
    except ChipwiseError:
        return None


def _with_program(work: Common, **changes: Any) -> Common:
    if isinstance(work, Pipeline):
        return work.model_copy(update={"stages": tuple(_with_program(stage, **changes) for stage in work.stages)})
    given = {key: value for key, value in changes.items() if value is not None}
    return work.model_copy(update={"program": (work.program or Program()).model_copy(update=given)})


def _rendered(session: Session, work: Common, plan: Plan | PipelinePlan) -> dict[str, list[File]]:
    """By target; anything but a refusal goes through."""
    rendered: dict[str, list[File]] = {}
    refusals: dict[str, ChipwiseError] = {}
    try:
        deployment = rendering.deployment_from(session, work, plan)
    except (CannotRender, NoResult) as error:
        refusals["all"] = error
    for name in rendering.target_names() if not refusals else ():
        try:
            rendered[name] = rendering.files(name, rendering.target(name), deployment)
        except CannotRender as error:
            refusals[name] = error
    assert not [name for name, error in refusals.items() if not error.remedy]
    return rendered
