"""What jobs leave at a URL, looked for when they have ended well. Files are looked for where they lie, by each engine.

A store answers when it likes, or not at all: threads ask it, and a turn of the controller never waits for one. Until there is
an answer the job counts as running. A store that cannot be asked is asked again for a while, and then the job has failed: its
work may be done, but nobody should build on what nobody has seen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from chipwise.errors import BadInput
from chipwise.job.remote import Remote
from chipwise.run.engine import Seen, Sight, State
from chipwise.run.job import Job, Spec

CODE = 66
AT_ONCE = 8  # stores that are asked; others wait for their turn
AGAIN_S = 15.0
PATIENCE_S = 600.0
Key = tuple[str, int]


def urls(spec: Spec) -> tuple[str, ...]:
    """Of what it makes. A machine of EC2 looks at S3 by itself, with its own rights."""
    return tuple(one for one in spec.produces if "://" in one and not (spec.engine == "ec2" and one.startswith("s3://")))


def lacks(url: str) -> str:
    """What is wrong with what should be there; empty where it is."""
    try:
        return Remote(url, "A hand-off").lacks()
    except FileNotFoundError:  # what it lies in: an archive
        return f"{url} is not there"


def check(spec: Spec, look: Callable[[str], str] = lacks) -> None:
    """Raises where nobody could look from here later, before anything runs for hours."""
    for url in (one for one in spec.produces if "://" in one):
        parts = urlsplit(url)
        if parts.scheme in ("file", "local"):
            raise BadInput(f"{url[:200]} is a file of some machine.", remedy="Write its path, without file://.")
        if "@" in parts.netloc:
            raise BadInput(
                f"What {spec.name} produces has a name or a password in its URL, and would be recorded with it.",
                remedy="Give credentials as settings of this machine instead.",
            )
    for url in urls(spec):
        look(url)


@dataclass(frozen=True, slots=True)
class _Answer:
    at: float
    lacks: str = ""
    trouble: str = ""  # why there is none


class HandOffs:
    """Of one controller."""

    def __init__(self, look: Callable[[str], str] = lacks, clock: Callable[[], float] = time.monotonic) -> None:
        self._look, self._clock = look, clock
        self._since: dict[Key, float] = {}
        self._answers: dict[Key, _Answer] = {}
        self._under_way: set[Key] = set()
        self._lock = threading.Lock()

    def checked(self, jobs: Sequence[Job], seen: Seen) -> Seen:
        """The same, but that what ended well is only done when all of it is there."""
        ended = {
            key: (job, sight)
            for job in jobs
            if job.spec.produces and urls(job.spec)
            and (sight := seen.attempts.get(key := (job.id, len(job.attempts)))) is not None
            and sight.state is State.EXITED and sight.code == 0
        }  # fmt: skip
        for key in self._since.keys() - ended.keys():
            self._since.pop(key)
            self._answers.pop(key, None)
        if not ended:
            return seen
        told = {key: self._told(key, job, sight) for key, (job, sight) in ended.items()}
        return replace(seen, attempts={**seen.attempts, **told})

    def _told(self, key: Key, job: Job, sight: Sight) -> Sight:
        now, answer = self._clock(), self._answers.get(key)
        since = self._since.setdefault(key, now)
        if answer is not None and not answer.trouble:
            return replace(sight, code=CODE, reason=f"it ended well, but {answer.lacks}") if answer.lacks else sight
        if answer is not None and (job.wish.stops or now - since > PATIENCE_S):
            return replace(sight, code=CODE, reason=f"it ended well, but nobody could look for all it made: {answer.trouble}")
        if answer is None or now - answer.at > AGAIN_S:
            self._ask(key, urls(job.spec))
        why = f"it ended well; looks for what it made: {answer.trouble}" if answer is not None else ""
        return replace(sight, state=State.RUNNING, code=None, reason=why, until=None, ended=True)

    def _ask(self, key: Key, wanted: Sequence[str]) -> None:
        with self._lock:
            if key in self._under_way or len(self._under_way) >= AT_ONCE:
                return
            self._under_way.add(key)
        # A daemon: one that hangs must not keep the controller from going.
        threading.Thread(target=self._asking, args=(key, wanted), name=f"hand-off of {key[0]}", daemon=True).start()

    def _asking(self, key: Key, wanted: Sequence[str]) -> None:
        try:
            found = next((told for one in wanted if (told := self._look(one))), "")
            answer = _Answer(self._clock(), lacks=found)
        except Exception as error:  # of a library too: a job of which nothing were said would look as if it ran for ever
            answer = _Answer(self._clock(), trouble=str(error) or type(error).__name__)
        with self._lock:
            self._answers[key] = answer
            self._under_way.discard(key)
