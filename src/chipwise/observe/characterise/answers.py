"""The four questions (parallel? latency? scaling? budget?), answered by what was measured of a program."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.observe.characterise.values import RUN, SECOND, STEP_WORDS, Bounded, Characterisation
from chipwise.observe.sample import NoReading
from chipwise.text import duration, number, size

BUSY = 0.8  # of a core: below, it waits for something else
MOSTLY_SERIAL = 0.5
RIDGE = 10.0  # FLOP per byte from which on processors and accelerators are bound by arithmetic, roughly


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    question: str
    measured: str


def measured_answers(character: Characterisation) -> tuple[MeasuredAnswer, ...]:
    return (
        MeasuredAnswer("Is the work parallel enough?", _parallel(character)),
        MeasuredAnswer("Latency:", _latency(character)),
        MeasuredAnswer("How does it scale?", _scaling(character)),
        MeasuredAnswer("Budget:", _budget(character)),
    )


def _parallel(character: Characterisation) -> str:
    share = character.parallel
    if isinstance(share, NoReading):
        return f"Not measured: {share.reason}."
    spread = f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%}, by {share.basis})"
    if share.value < 0.02:
        return f"No: {spread} of its time is divided by more threads. As it is written it uses one core."
    limit = (
        f"never more than {number(1 / (1 - share.value))} times as fast as one core" if share.value < 0.995 else "no limit seen"
    )
    verdict = "Hardly" if share.value < MOSTLY_SERIAL else "Yes"
    return f"{verdict}: {spread} of its time is divided by more threads, {limit}."


def _latency(character: Characterisation) -> str:
    assert isinstance(character.step_s, Bounded)
    if character.step == SECOND:
        text = "The program marks no steps, so nothing has a latency that could be measured."
    else:
        span = f"{duration(character.step_s.low)} to {duration(character.step_s.high)}"
        subject = "The whole run" if character.step == RUN else f"A step ({STEP_WORDS[character.step].split(': ')[0]})"
        text = f"{subject} takes {duration(character.step_s.value)} here ({span})."
    if _waits(character):
        busy = number(character.cores.value) if isinstance(character.cores, Bounded) else "a part"
        text += f" It keeps {busy} of a core busy: it mostly waits, and a faster chip does not shorten that."
    if isinstance(character.data_wait, Bounded) and character.data_wait.value > 0.1:
        text += f" It waits for its data {character.data_wait.value:.0%} of the time."
    return text


def _waits(character: Characterisation) -> bool:
    """For something else than a core: neither for a device nor for other programs that held the cores."""
    if isinstance(character.cores, NoReading) or isinstance(character.device_memory, Bounded):
        return False
    return character.cores.value / max(1.0 - character.delayed, 0.01) < BUSY


def _scaling(character: Characterisation) -> str:
    parts = []
    intensity = character.intensity
    if isinstance(intensity, Bounded):
        bound = "arithmetic" if intensity.value >= RIDGE else "the bandwidth of memory"
        parts.append(f"{number(intensity.value)} FLOP per byte: {bound} decides on most chips")
    else:
        parts.append(f"What bounds it is not known: {intensity.reason}")
    if isinstance(character.memory, Bounded):
        parts.append(f"it had {size(character.memory.value)} of memory")
    if isinstance(character.communication, Bounded):
        parts.append(f"each process sends {size(character.communication.value)} a step ({character.pattern})")
    else:
        parts.append(character.communication.reason)
    return f"{'; '.join(parts)}."


def _budget(character: Characterisation) -> str:
    assert isinstance(character.step_s, Bounded)
    if isinstance(character.steps, NoReading):
        return (
            f"How many steps there are is not known ({character.steps.reason}); the prices below are for one day of steps here."
        )
    steps = f"{number(character.steps.value)} steps, by {character.steps.basis}"
    return f"The whole of it ({steps}) takes {duration(character.steps.value * character.step_s.value)} on this machine."
