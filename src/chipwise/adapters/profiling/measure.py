"""The door: measures the present device within a time limit and returns a `Profile`.

Cases of most worth come first within each kind, and each kind has a share of the time, so a slow device loses sizes and not
whole kinds. A case that fails becomes a note, never an error: not every device has fp8.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from chipwise.adapters.profiling import attention, collectives, elementwise, gemm, launch, layer, memory
from chipwise.adapters.profiling.case import Case
from chipwise.adapters.profiling.device import Device, connect
from chipwise.adapters.profiling.timing import time_calls
from chipwise.errors import BadInput, OutsideFailed
from chipwise.perf.profile import Profile, ProfileSample

Tell = Callable[[int, int | None, str], None]  # cases done, of how many (None: not known yet), and what comes next

# The share of the time each may take; what one leaves over, the next ones have.
_FAMILIES: dict[str, tuple[Callable[[Device], list[Case]], float]] = {
    "launch": (launch.cases, 0.03),
    "memory": (memory.cases, 0.12),
    "gemm": (gemm.cases, 0.40),
    "attention": (attention.cases, 0.13),
    "layer": (layer.cases, 0.16),
    "elementwise": (elementwise.cases, 0.11),
}
_COLLECTIVES = "collectives"
FAMILIES = (*_FAMILIES, _COLLECTIVES)


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    date: str  # ISO; the caller has the clock
    chip: str | None = None  # the catalog's name, where somebody knows it
    device: str = "auto"
    quick: bool = False
    seconds: float | None = None  # about how long in all; None is 180, or 30 when quick
    only: tuple[str, ...] = ()  # families; empty is all

    @property
    def limit(self) -> float:
        return self.seconds if self.seconds is not None else 30.0 if self.quick else 180.0

    @property
    def case_seconds(self) -> float:
        """Seconds to measure one case."""
        return 0.03 if self.quick else 0.1


@dataclass(frozen=True, slots=True)
class _Outcome:
    samples: tuple[ProfileSample, ...]
    notes: tuple[str, ...]
    cases: int  # tried or left out


def measure(settings: ProfileSettings, tell: Tell) -> Profile:
    """Measures; raises MissingExtra without torch and NotFound without the device that was asked for."""
    wrong = [name for name in settings.only if name not in FAMILIES]
    if wrong:
        raise BadInput(f"Nothing to measure is called {wrong[0][:60]!r}.", remedy=f"Choose from {', '.join(FAMILIES)}.")
    if not 0 < settings.limit <= 86400:
        raise BadInput(f"{settings.limit:g} seconds is no time to measure in.", remedy="Give 10 to 600 seconds.")
    tell(0, None, "starting torch")
    device = connect(settings.device)
    before = device.torch.get_float32_matmul_precision()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about private functions and about its compiler, at length
            outcome = _all(device, settings, tell)
    finally:
        device.torch.set_float32_matmul_precision(before)
        device.free()
    if not outcome.samples:
        raise OutsideFailed(
            f"Nothing could be measured on {device.name}. {' '.join(outcome.notes[:3])}",
            remedy="Measure all kinds of work, or check that no other program holds the device.",
        )
    tell(outcome.cases, outcome.cases, f"{len(outcome.samples)} samples")
    return Profile(
        device=device.name,
        device_kind=device.kind,
        chip=settings.chip,
        date=settings.date,
        software=device.software,
        samples=outcome.samples,
        notes=_printable(outcome.notes),
    )


def _tell_of(tell: Tell, done: int, total: int, index: int, text: str) -> None:
    tell(done + index, total, text)


def _printable(notes: tuple[str, ...]) -> tuple[str, ...]:
    """One line each, of what a profile's file takes."""
    return tuple("".join(c if c.isprintable() else " " for c in note)[:1000] for note in notes)


def _all(device: Device, settings: ProfileSettings, tell: Tell) -> _Outcome:
    began = time.perf_counter()
    notes = [] if device.gpu else ["No GPU: this is the processor, at smaller sizes."]
    samples: list[ProfileSample] = []
    plan = {
        name: sorted((case for case in cases(device) if case.core or not settings.quick), key=lambda case: not case.core)
        for name, (cases, _) in _FAMILIES.items()
        if not settings.only or name in settings.only
    }
    total = sum(len(cases) for cases in plan.values()) + 1
    share, finished = 0.0, 0
    weight = sum(_FAMILIES[name][1] for name in plan) or 1.0
    for name, cases in plan.items():
        share += _FAMILIES[name][1] / weight
        until = began + settings.limit * (1.0 if settings.only else 0.95) * share
        outcome = _family(name, device, cases, settings.case_seconds, until, partial(_tell_of, tell, finished, total))
        samples += outcome.samples
        notes += outcome.notes
        finished += len(cases)
        if not device.alive():
            lost = f"{name}: the device no longer answers; the rest was not measured."
            return _Outcome(tuple(samples), (*notes, lost), total)
    if not settings.only or _COLLECTIVES in settings.only:
        tell(finished, total, "collectives")
        measurements, reasons = collectives.measured(device, settings.quick, max(5.0, 0.1 * settings.limit))
        samples += measurements
        notes += reasons
    return _Outcome(tuple(samples), tuple(notes), total)


def _family(
    name: str, device: Device, cases: list[Case], seconds: float, until: float, tell: Callable[[int, str], None]
) -> _Outcome:
    samples: list[ProfileSample] = []
    failures: dict[str, list[str]] = {}
    left_out = 0
    for index, case in enumerate(cases):
        if time.perf_counter() > until:
            left_out = len(cases) - index
            break
        tell(index, str(case))
        problem = ""
        try:
            timing = time_calls(device, case.prepare(), seconds, case.graph)
            samples.append(
                ProfileSample(
                    kind=case.kind,
                    shape=case.shape,
                    precision=case.precision,
                    seconds=timing.seconds,
                    flop=case.flop,
                    bytes=case.bytes,
                    spread=timing.spread,
                )
            )
        except Exception as error:  # whatever torch, the compiler or the driver raise: one case less
            problem = f"{type(error).__name__}: {(str(error).strip() or 'no reason given').splitlines()[0][:200]}"
        if problem:  # after the except clause, when the traceback no longer holds tensors
            failures.setdefault(f"{case.kind} {case.precision}", []).append(problem)
            device.free()
            if not device.alive():
                break
    device.free()
    notes = [f"{what}: {len(reasons)} could not be measured ({reasons[0]})" for what, reasons in failures.items()]
    if left_out:
        notes.append(f"{name}: the time was up, {left_out} of {len(cases)} cases were left out.")
    return _Outcome(tuple(samples), tuple(notes), len(cases))
