"""Runs a program until it is known what it does, and writes it down as a workload that can be planned."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from chipwise.errors import BadInput, ChipwiseError, NoResult
from chipwise.observe.characterise.characterise import SHORTEST_S, ProgramRuns, characterise, pace, steady_since
from chipwise.observe.characterise.values import REPEAT, SECOND, Characterisation, Hardware, Observed
from chipwise.observe.characterise.workload_text import workload_text
from chipwise.text import duration

if TYPE_CHECKING:
    from chipwise.adapters.characterising.running import Launch
    from chipwise.api.session.wiring import Session
    from chipwise.planner.values.plan import Plan

USUAL_S = 120.0
UNSTEADY = 3.0  # times as long as wanted, and a minute, it may take to become steady
COUNTED_S, IDLE_S = 120.0, 15.0  # the longest run that is counted, and that without any operation to count
THREADS = (1, 2, 4)


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
    from chipwise.adapters.characterising.running import Launch, RunMode, observe, refuse_short

    if not request.command or not request.command[0].strip():
        raise BadInput("No program is given.", remedy="For example: chipwise characterize -- python train.py")
    chip = None if request.on is None else session.names.one_chip(request.on).chip.name
    program = Launch(request.command, request.stdin)
    say(f"Running {program.title} until it has been steady for {duration(request.steady_s)}.")
    longest = UNSTEADY * request.steady_s + 60.0
    mode = "count" if request.single_run else "time"
    timed = observe(program, RunMode(mode, output=output, longest_s=longest), _steady_for(request.steady_s))
    refuse_short(program, timed, SHORTEST_S)
    notes: list[str] = []
    if request.single_run:
        counted = timed if (timed.counts or {}).get("framework") == "torch" else None
        notes.append("One run only: operations of NumPy and other numbers of threads were left out.")
    else:
        counted = _counted(program, timed, say, notes)
    rhythm = pace(timed, None if counted is None else counted.counts)
    if rhythm is None:
        raise NoResult(
            f"{program.title} did not become steady within {duration(timed.wall_s)}; nothing was written.",
            remedy="Try a longer --for, or an input on which it does the same work again and again.",
        )
    hardware = _hardware(session, counted or timed, chip)
    by_threads = {}
    if not request.single_run and rhythm.step != SECOND and not _device(counted):
        by_threads = _by_threads(program, request, timed, counted, rhythm.step, say)
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


def _steady_for(seconds: float) -> Callable[[Observed], bool]:
    def enough(seen: Observed) -> bool:
        if seen.wall_s < seconds:
            return False
        since = steady_since(seen)
        return since is not None and seen.began_s + seen.wall_s - since >= seconds

    return enough


def _counted(program: Launch, timed: Observed, say: Callable[[str], None], notes: list[str]) -> Observed | None:
    """The run in which operations are counted; None where the program is not Python, or does not run while it is counted."""
    from chipwise.adapters.characterising.running import RunMode, observe

    if timed.counts is None:
        return None
    say("Running it again to count its operations, more slowly.")

    def enough(seen: Observed) -> bool:
        counts = seen.counts or {}
        return bool(counts.get("done")) or (seen.wall_s > IDLE_S and "framework" not in counts)

    longest = max(COUNTED_S, 20 * timed.wall_s) if timed.ended else COUNTED_S
    try:
        return observe(program, RunMode("count", longest_s=longest), enough)
    except ChipwiseError as error:
        notes.append(f"Operations are not known: the program does not run while they are counted ({error.message})")
        return None


def _by_threads(
    program: Launch,
    request: CharacteriseRequest,
    timed: Observed,
    counted: Observed | None,
    step: str,
    say: Callable[[str], None],
) -> dict[int, Observed]:
    from chipwise.adapters.characterising.running import THREADS as SETTINGS
    from chipwise.adapters.characterising.running import RunMode, observe

    vcpus = _vcpus()
    wanted = request.threads or tuple(number for number in THREADS if number <= vcpus)
    mode = "count" if step == REPEAT else "time"
    runs: dict[int, Observed] = {}
    if not any(name in os.environ for name in SETTINGS):  # libraries take all cores by themselves
        usual = counted if step == REPEAT else timed
        if usual is not None:
            runs[vcpus] = usual
    seconds = max(request.steady_s / 4, 2.0)
    enough = _is_counted if mode == "count" else _steady_for(seconds)
    longest = max(COUNTED_S, 5 * timed.wall_s) if timed.ended else UNSTEADY * seconds + 60.0
    for number in wanted:
        if number in runs or number > vcpus:
            continue
        say(f"Running it with {number} thread{'s' if number > 1 else ''}.")
        try:
            runs[number] = observe(program, RunMode(mode, threads=number, longest_s=longest), enough)
        except ChipwiseError:
            continue  # it does not run so: one number less
    return runs


def _is_counted(seen: Observed) -> bool:
    return bool((seen.counts or {}).get("done"))


def _device(counted: Observed | None) -> str:
    device = (counted.counts or {}).get("device") if counted is not None else None
    return str(device) if device not in (None, "cpu") else ""


def _vcpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _hardware(session: Session, seen: Observed, chip: str | None) -> Hardware:
    from chipwise.api.running.predicting import local_allocation
    from chipwise.runner.job import Needs
    from chipwise.runner.submission.predicted import Allocation

    device, vcpus = _device(seen), _vcpus()
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
