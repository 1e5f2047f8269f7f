"""How well a device is, as a value: four states, and the signs that speak for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """From the best to the worst."""

    FINE = "fine"
    WATCH = "watch"  # it works; look again
    DRAIN = "drain"  # give it nothing new and reset it
    REPLACE = "replace"  # a reset does not help


_RANK = {state: rank for rank, state in enumerate(Condition)}


class Blame(StrEnum):
    PROGRAM = "program"
    DEVICE = "device"
    LINK = "link"
    DRIVER = "driver"
    EITHER = "either"


class JobEffect(StrEnum):
    DIES = "dies"
    MAY_DIE = "may die"
    CONTINUES = "continues"


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing that was seen of a device."""

    state: Condition
    reason: str  # for people
    blame: Blame
    job: JobEffect = JobEffect.CONTINUES
    code: int | None = None  # XID
    pid: int | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    device: str  # "nvidia:0", "pci:0000:3b:00", or a node
    state: Condition
    reason: str
    signs: tuple[Sign, ...] = ()
    name: str = ""

    @property
    def is_programs_fault(self) -> bool:
        """The device is well, and a program that used it is not."""
        return self.state is Condition.FINE and any(sign.blame is Blame.PROGRAM for sign in self.signs)

    @property
    def job(self) -> JobEffect:
        """The worst that it does to a job on the device."""
        order = list(JobEffect)
        return min((sign.job for sign in self.signs), key=order.index, default=JobEffect.CONTINUES)


def worst(*states: Condition) -> Condition:
    return max(states, key=_RANK.__getitem__, default=Condition.FINE)


def rank(state: Condition) -> int:
    return _RANK[state]
