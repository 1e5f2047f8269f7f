"""What is known of a job that is recorded as under way: by what somebody sees who does not lead, in words for people."""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.runner.engine import Sight, State
from chipwise.runner.job import Job, Phase
from chipwise.text import span

LOST, ENDED = "lost", "ended"  # beside the phases of the record: nothing of it runs any more, and nobody recorded that yet


@dataclass(frozen=True, slots=True)
class Sighting:
    phase: str  # as it is recorded, or LOST or ENDED
    seen: float | None = None  # when it was last seen alive; None: nobody knows, or it is not under way
    note: str = ""  # what is known, where the phase alone says too much
    is_certain: bool = True  # False: as it was when somebody last looked

    @property
    def is_gone(self) -> bool:
        return self.phase in (LOST, ENDED)

    @property
    def is_trouble(self) -> bool:
        """Whether nobody knows what becomes of it now."""
        return bool(self.note) and (not self.is_certain or self.phase == Phase.QUEUED)

    @property
    def label(self) -> str:
        """For a list: a phase that may have changed since has a question mark."""
        return self.phase if self.is_certain else f"{self.phase}?"


def of_sight(job: Job, sight: Sight, now: float) -> Sighting | None:
    """None: nothing was seen that tells."""
    match sight.state:
        case State.RUNNING:
            return Sighting(str(job.phase), now, sight.reason)
        case State.LOST:
            seen = f", seen {_ago(sight.until, now)}" if sight.until is not None else ""
            return Sighting(LOST, sight.until, f"process gone{seen}")
        case State.EXITED:
            ended = f"{_ago(sight.until, now)} " if sight.until is not None else ""
            code = f"with exit code {sight.code}; " if sight.code is not None else ""
            waits = "" if job.spec.service or job.phase is not Phase.RUNNING else job.waiting  # for the store of its output
            note = waits.removeprefix("it ended well; ") or "not recorded yet"
            return Sighting(ENDED, sight.until, f"{ended}{code}{note}")
        case State.PENDING if job.phase is Phase.STARTING or sight.since is not None:  # its supervisor has begun, and not it
            return Sighting(str(Phase.STARTING))
    return None


def _ago(moment: float, now: float) -> str:
    return f"{span(max(now - moment, 0.0))} ago"
