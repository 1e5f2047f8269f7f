"""Ten programs whose truth is known by construction: `python benchmarks/characterise/prove.py [--for 5] [NAME...]`.

Prints a table: FLOP and FLOP per byte against the truth, and the family of hardware that a plan picks from what was measured
against that from the truth: counts by hand, and a step's time by a stopwatch. The family by counts alone stands beside it: it
differs where a program is far slower than its operations need. Exits with 1 where FLOP are over 5% off, the intensity over 15%,
or the families differ. Programs that need PyTorch are left out, and said, where it is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from characterise.truth import Truth, truths
from chipwise.api.measure.characterise import Characterised, CharacteriseRequest, characterise_program, plan_of
from chipwise.api.session.wiring import Session, open_session
from chipwise.errors import ChipwiseError
from chipwise.observe.characterise.values import Bounded
from chipwise.planner.values.plan import Plan

FOLDER = Path(__file__).resolve().parent
FLOP_WITHIN, INTENSITY_WITHIN = 0.05, 0.15
WATCHED_S = 3.0
COLUMNS = ("program", "kind", "step", "s a step", "FLOP a step", "FLOP per byte", "parallel", "family", "by truth")
COLUMNS_AFTER = ("by counts alone", "right")


@dataclass(frozen=True, slots=True)
class Row:
    cells: tuple[str, ...]
    right: bool


def stopwatch(truth: Truth, step_s: float) -> float:
    """Seconds of a step, by two runs of the program without anything of ours: what the longer one takes more, per step."""
    few, more = 3, 3 + max(math.ceil(WATCHED_S / step_s), 3)
    seconds = []
    for steps in (few, more):
        start = time.monotonic()
        environment = {**os.environ, "STEPS": str(steps)}
        subprocess.run([sys.executable, str(FOLDER / f"{truth.program}.py")], check=True, env=environment)
        seconds.append(time.monotonic() - start)
    return max(seconds[1] - seconds[0], 1e-6) / (more - few)


def true_workload(truth: Truth, result: Characterised, timed: bool = True) -> str:
    """The same amount of work, as its author would describe it, with a step's time by a stopwatch; of what has no count only
    that it ran on this processor."""
    hardware = result.character.hardware
    steps = next(line for line in result.text.splitlines() if line.split(":")[0] in _AMOUNTS)
    lines = ["name: truth", steps]
    if truth.model:
        lines += ["kind: train", f"model: {truth.model}", f"batch_samples: {truth.batch}", f"precision: {truth.precision}"]
        lines.append(f"optimizer: {truth.optimizer}")
    else:
        lines += ["kind: hpc", f"precision: {truth.precision}", f"parallel: {truth.parallel:.2%}"]
    if truth.flop is not None and not truth.model:
        lines += [f"flop_per_step: {truth.flop:.6g}", f"bytes_per_step: {truth.moved:.6g}"]
    if not timed and truth.flop is not None:
        return "\n".join(lines) + "\n"
    assert isinstance(result.character.step_s, Bounded)
    step_s = 1.0 if truth.flop is None else stopwatch(truth, result.character.step_s.value)
    vcpus = "" if hardware.vcpus is None else f"vcpus: {hardware.vcpus}, "
    lines.append(f"measured: {{on: {hardware.chip}, {vcpus}takes: {step_s:.6g}s, per: step}}")
    return "\n".join(lines) + "\n"


_AMOUNTS = ("steps", "samples", "items")


def family(plan: Plan | None) -> str:
    return "none" if plan is None or not plan.choices else plan.choices[0].family


def proved(session: Session, truth: Truth, seconds: float, processor: str | None) -> Row:
    request = CharacteriseRequest(
        command=(sys.executable, str(FOLDER / f"{truth.program}.py")),
        steady_s=seconds,
        on=None if truth.model else processor,
    )
    try:
        result = characterise_program(session, request, None, lambda line: None)
    except ChipwiseError as error:
        return Row((truth.program, str(error)), False)
    character = result.character
    flop, flop_right = _against(truth.flop, character.flop, FLOP_WITHIN)
    true_intensity = truth.flop / truth.moved if truth.flop and truth.moved else None
    intensity, intensity_right = _against(true_intensity, character.intensity, INTENSITY_WITHIN, bool(truth.flop))
    here, there = family(plan_of(session, result.text)), family(plan_of(session, true_workload(truth, result)))
    untimed = family(plan_of(session, true_workload(truth, result, timed=False)))
    share = character.parallel.value if isinstance(character.parallel, Bounded) else float("nan")
    seconds_of_step = character.step_s.value if isinstance(character.step_s, Bounded) else float("nan")
    cells = (
        truth.program,
        character.kind,
        character.step,
        f"{seconds_of_step:.4g}",
        flop,
        intensity,
        f"{share:.0%}",
        here,
        there,
        untimed,
    )
    return Row(cells, flop_right and intensity_right and here == there)


def _against(true: float | None, character: object, within: float, unproved: bool = False) -> tuple[str, bool]:
    """Of what has no truth, that no number is given; `unproved`: where a number is given that nobody can check."""
    if true is None:
        if isinstance(character, Bounded):
            return f"{character.value:.4g} (not checked)", unproved
        return "not countable, said", True
    if not isinstance(character, Bounded):
        return f"none of {true:.4g}", False
    error = character.value / true - 1
    return f"{character.value:.4g} ({error:+.1%})", abs(error) <= within


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--for", dest="seconds", type=float, default=5.0)
    parser.add_argument("--on", help="the processor, where it is not recognised")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    session, rows = open_session(), []
    print(" | ".join((*COLUMNS, *COLUMNS_AFTER)))
    for truth in truths():
        if options.names and truth.program not in options.names:
            continue
        if truth.model and importlib.util.find_spec("torch") is None:
            print(f"{truth.program} | left out: PyTorch is not installed", flush=True)
            continue
        rows.append(proved(session, truth, options.seconds, options.on))
        print(" | ".join((*rows[-1].cells, "yes" if rows[-1].right else "NO")), flush=True)
    return 0 if all(row.right for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
