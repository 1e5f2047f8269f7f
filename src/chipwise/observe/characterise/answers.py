"""The four questions (parallel? latency? scaling? budget?), answered by what was measured of a program."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.observe.characterise.values import RUN, SECOND, STEP_WORDS, Amount, Characterisation
from chipwise.observe.sample import Missing
from chipwise.text import duration, number, size

BUSY = 0.8  # of a core: below, it waits for something else
MOSTLY_SERIAL = 0.5
RIDGE = 10.0  # FLOP per byte from which on processors and accelerators are bound by arithmetic, roughly


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    question: str
    measured: str


def measured_answers(found: Characterisation) -> tuple[MeasuredAnswer, ...]:
    return (
        MeasuredAnswer("Is the work parallel enough?", _parallel(found)),
        MeasuredAnswer("Latency:", _latency(found)),
        MeasuredAnswer("How does it scale?", _scaling(found)),
        MeasuredAnswer("Budget:", _budget(found)),
    )


def _parallel(found: Characterisation) -> str:
    share = found.parallel
    if isinstance(share, Missing):
        return f"Not measured: {share.reason}."
    spread = f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%}, by {share.basis})"
    if share.value < 0.02:
        return f"No: {spread} of its time is divided by more threads. As it is written it uses one core."
    most = (
        f"never more than {number(1 / (1 - share.value))} times as fast as one core" if share.value < 0.995 else "no limit seen"
    )
    verdict = "Hardly" if share.value < MOSTLY_SERIAL else "Yes"
    return f"{verdict}: {spread} of its time is divided by more threads, {most}."


def _latency(found: Characterisation) -> str:
    assert isinstance(found.step_s, Amount)
    if found.step == SECOND:
        text = "The program marks no steps, so nothing has a latency that could be measured."
    else:
        span = f"{duration(found.step_s.low)} to {duration(found.step_s.high)}"
        subject = "The whole run" if found.step == RUN else f"A step ({STEP_WORDS[found.step].split(': ')[0]})"
        text = f"{subject} takes {duration(found.step_s.value)} here ({span})."
    if isinstance(found.cores, Amount) and found.cores.value < BUSY and isinstance(found.device_memory, Missing):
        busy = number(found.cores.value)
        text += f" It keeps {busy} of a core busy: it mostly waits, and a faster chip does not shorten that."
    if isinstance(found.data_wait, Amount) and found.data_wait.value > 0.1:
        text += f" It waits for its data {found.data_wait.value:.0%} of the time."
    return text


def _scaling(found: Characterisation) -> str:
    parts = []
    intensity = found.intensity
    if isinstance(intensity, Amount):
        bound = "arithmetic" if intensity.value >= RIDGE else "the bandwidth of memory"
        parts.append(f"{number(intensity.value)} FLOP per byte: {bound} decides on most chips")
    else:
        parts.append(f"What bounds it is not known: {intensity.reason}")
    if isinstance(found.memory, Amount):
        parts.append(f"it had {size(found.memory.value)} of memory")
    if isinstance(found.communication, Amount):
        parts.append(f"each process sends {size(found.communication.value)} a step ({found.pattern})")
    else:
        parts.append(found.communication.reason)
    return f"{'; '.join(parts)}."


def _budget(found: Characterisation) -> str:
    assert isinstance(found.step_s, Amount)
    if isinstance(found.steps, Missing):
        return f"How many steps there are is not known ({found.steps.reason}); the prices below are for one day of steps here."
    total = found.steps.value * found.step_s.value
    return (
        f"The whole of it ({number(found.steps.value)} steps, by {found.steps.basis}) takes {duration(total)} on this machine."
    )
