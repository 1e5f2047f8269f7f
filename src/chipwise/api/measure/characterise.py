"""Runs a program until it is known what it does, and writes it down as a workload that can be planned."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from chipwise.errors import BadInput, ChipwiseError, NoResult
from chipwise.observe.characterise.characterise import SHORTEST_S, ProgramRuns, characterise, pace
from chipwise.observe.characterise.values import SECOND, Characterisation, Hardware, Observed
from chipwise.observe.characterise.workload_text import workload_text
from chipwise.text import duration

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.planner.values.plan import Plan

USUAL_S = 120.0


@dataclass(frozen=True, slots=True)
class CharacteriseRequest:
    command: tuple[str, ...]
    steady_s: float = USUAL_S
    threads: tuple[int, ...] | None = None  # numbers that are tried; None: the usual ones that this machine has cores for
    single_run: bool = False  # a single run: neither operations of NumPy nor other numbers of threads
    on: str | None = None
    stdin: Path | None = None
    steps: float | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Characterised:
    character: Characterisation
    text: str  # of a workload file


def characterise_program(
    session: Session, request: CharacteriseRequest, output: IO[str] | None, say: Callable[[str], None]
) -> Characterised:
    from chipwise.adapters.characterising import repeated
    from chipwise.adapters.characterising.running import Launch, RunMode, observe, refuse_short

    if not request.command or not request.command[0].strip():
        raise BadInput("No program is given.", remedy="For example: chipwise characterize -- python train.py")
    chip = None if request.on is None else session.names.one_chip(request.on).chip.name
    program = Launch(request.command, request.stdin)
    say(f"Running {program.title} until it has been steady for {duration(request.steady_s)}.")
    longest = repeated.UNSTEADY * request.steady_s + 60.0
    mode = "count" if request.single_run else "time"
    timed = observe(program, RunMode(mode, output=output, longest_s=longest), repeated.steady_for(request.steady_s))
    refuse_short(program, timed, SHORTEST_S)
    notes: list[str] = []
    if request.single_run:
        counted = timed if (timed.counts or {}).get("framework") == "torch" else None
        notes.append("One run only: operations of NumPy and other numbers of threads were left out.")
    else:
        counted = repeated.counted_run(program, timed, say, notes)
    rhythm = pace(timed, None if counted is None else counted.counts)
    if rhythm is None:
        raise NoResult(
            f"{program.title} did not become steady within {duration(timed.wall_s)}; nothing was written.",
            remedy="Try a longer --for, or an input on which it does the same work again and again.",
        )
    hardware = _hardware(session, counted or timed, chip)
    by_threads = {}
    if not request.single_run and rhythm.step != SECOND and not repeated.device(counted):
        by_threads = repeated.by_threads(program, request.threads, request.steady_s, timed, counted, rhythm.step, say)
    seen = ProgramRuns(
        command=request.command,
        timed=timed,
        counted=counted,
        by_threads=by_threads,
        hardware=hardware,
        stated_steps=request.steps,
    )
    character = characterise(seen)
    assert character is not None  # it has a pace
    character = replace(character, notes=(*character.notes, *notes))
    return Characterised(character, workload_text(character, request.name or _name(request.command)))


def thread_numbers(text: str | None) -> tuple[int, ...] | None:
    """1,2,4 as numbers."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= 4096 for word in words):
        raise BadInput(f"--threads: {text[:60]!r} is not a list of numbers.", remedy="For example --threads 1,2,4.")
    return tuple(sorted({int(word) for word in words}))


def plan_of(session: Session, text: str) -> Plan | None:
    """None where nothing can be planned of it."""
    from chipwise.api.verbs import plan

    try:
        return plan(session, "workload.yaml", text=text)
    except ChipwiseError:
        return None


def _hardware(session: Session, seen: Observed, chip: str | None) -> Hardware:
    from chipwise.adapters.characterising import repeated
    from chipwise.api.running.predicting import local_allocation
    from chipwise.runner.job import Needs
    from chipwise.runner.submission.predicted import Allocation

    device, vcpus = repeated.device(seen), repeated.vcpus()
    if device:
        device_chip = chip or session.names.chip_within(device)
        return Hardware(device_chip, 1, None, "" if device_chip else f"{device} is not in the catalog")
    if chip is not None:
        is_cpu = session.catalog.chips[chip].kind.value == "cpu"
        return Hardware(chip, 1, vcpus if is_cpu else None)
    allocation = local_allocation(session, Needs(cpus=vcpus))
    if isinstance(allocation, Allocation):
        return Hardware(allocation.chip, max(int(allocation.chips), 1), vcpus)
    return Hardware(None, 1, vcpus, allocation.reason)


def _name(command: tuple[str, ...]) -> str:
    """Of the script, else of the program."""
    scripts = [word for word in command if re.search(r"\.\w{1,4}$", word)]
    stem = Path(scripts[0] if scripts else command[0]).stem
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:40] or "program"
