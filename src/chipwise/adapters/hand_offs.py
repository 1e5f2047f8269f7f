"""What jobs leave at a URL, looked for when they have ended well. Files are looked for where they lie, by each engine.

A store answers when it likes, or never: threads ask it, and a turn of the controller never waits for one. Until there is an
answer the job counts as running, but its devices are free for others. A store that cannot be asked, or does not answer, is
asked again for a while, and then the job has failed: its work may be done, but nobody should build on what nobody has seen.

Stores are named by whoever submits, and one that hangs costs a thread: owners come in turn, each with a few places, and threads
that never come back count against the owner who lost them. While a job waits for a place its patience has not begun.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, urlsplit

from chipwise.errors import BadInput, TryLater
from chipwise.job.remote import Remote
from chipwise.runner.engine import Seen, Sight, State
from chipwise.runner.hand_off import CODE, LOOKS, PATIENCE_S, TOLD_AFTER_S, by_controller, failure_reason
from chipwise.runner.job import Job, Spec

STORES = (  # that outlive a job and can be seen from several machines, as fsspec calls them
    "s3",
    "s3a",
    "gs",
    "gcs",
    "abfs",
    "abfss",
    "az",
    "oci",
    "oss",
    "hf",
    "http",
    "https",
    "ftp",
    "sftp",
    "ssh",
    "smb",
    "hdfs",
    "webhdfs",
    "webdav",
    "lakefs",
    "dbfs",
)
AT_ONCE = 8  # looks under way; others wait for their turn
OF_ONE_OWNER = 3  # of these
OF_ONE_STORE = 2  # of one owner, that are under way there or never came back: one that hangs must not take those of others
LOST_OF_ONE_OWNER = 16  # threads that never came back, after which no other is begun for that owner
ANSWERS_WITHIN_S = 60.0
AGAIN_S = 15.0
Key = tuple[str, int]


def lacks(url: str) -> str:
    """What is wrong with what should be there; empty where it is."""
    return Remote(url, "A hand-off").lacks()


def check(
    spec: Spec,
    look: Callable[[str], str] = lacks,
    say: Callable[[str], None] = lambda line: None,
    limit_s: float = 30.0,
    looks_at: tuple[str, ...] = (),
) -> None:
    """Raises where nobody could look from here later, before anything runs for hours. Each store is asked once."""
    stores: dict[tuple[str, str], str] = {}
    visible = by_controller(spec, looks_at)
    for url in (one for one in spec.produces if "://" in one):
        parts = _checked(url, spec.name)
        if url in visible:
            stores.setdefault((parts.scheme, parts.netloc), url)
    for url in stores.values():
        _answered(url, look, say, limit_s)


def _checked(url: str, name: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadInput(
            f"What {name} produces is no URL: {url.rpartition('@')[2][:200]!r}.", remedy="Write s3://bucket/key."
        ) from None
    if parts.scheme in ("file", "local"):
        raise BadInput(f"{url.rpartition('@')[2][:200]} is a file of some machine.", remedy="Write its path, without file://.")
    if parts.scheme not in STORES or "::" in url or not parts.netloc:
        raise BadInput(
            f"{url.rpartition('@')[2][:200]!r} is at no store that others could read.",
            remedy=f"Write a path, or a URL of one of {', '.join(STORES[:3])}, ... {STORES[-1]}, such as s3://bucket/key.",
        )
    if "@" in parts.netloc or parts.query:
        raise BadInput(
            f"What {name} produces has a password or a signature in its URL, and would be recorded with it.",
            remedy="Give credentials as settings of this machine instead.",
        )
    return parts


def _refused(url: str) -> str:
    """Why nobody looks there; empty: somebody may. Whoever writes to the record itself passes by `check`, and a
    controller looks with its own rights: it would say which files are on its machine."""
    try:
        _checked(url, "it")
    except BadInput as error:
        return str(error).rstrip(".")
    return ""


def _store_of(url: str) -> str:
    try:
        return "://".join(urlsplit(url)[:2])
    except ValueError:  # it was written into the record; no turn may fail by it
        return ""


def _answered(url: str, look: Callable[[str], str], say: Callable[[str], None], limit_s: float) -> None:
    """Whatever is there now, somebody could look."""
    raised: list[BaseException] = []

    def asks() -> None:
        try:
            look(url)
        except BaseException as error:  # told to whoever waits
            raised.append(error)

    thread = threading.Thread(target=asks, name="looks whether a hand-off could be seen", daemon=True)
    thread.start()
    thread.join(TOLD_AFTER_S)
    if thread.is_alive():
        say(f"waits for {url} to answer, where what it makes is to be looked for")
        thread.join(limit_s)
    if thread.is_alive():
        raise TryLater(f"{url} did not answer within {limit_s:.0f} s.", remedy="Check the address, or name a path.")
    if raised:
        raise raised[0]


@dataclass(frozen=True, slots=True)
class _Answer:
    moment: float
    lacks: str = ""
    trouble: str = ""  # why there is none


@dataclass(frozen=True, slots=True)
class _StoreLook:
    begun: float
    owner: str
    store: str


class HandOffs:
    """Of one controller."""

    def __init__(
        self,
        look: Callable[[str], str] = lacks,
        clock: Callable[[], float] = time.monotonic,
        looks_at: tuple[str, ...] = (),
    ) -> None:
        """`looks_at`: what machines of its engine look at themselves."""
        self._look, self._clock, self._looks_at = look, clock, looks_at
        self._since: dict[Key, float] = {}
        self._tried: dict[Key, float] = {}  # since when its store is asked, or is not for a reason of its owner's own
        self._refused: dict[Key, str] = {}  # why nobody asks
        self._answers: dict[Key, _Answer] = {}
        self._begun: dict[Key, _StoreLook] = {}
        self._lost: Counter[tuple[str, str]] = Counter()  # by owner and store
        self._served: dict[str, float] = {}  # owners, and when a look was begun for each
        self._lock = threading.Lock()

    def checked(self, jobs: Sequence[Job], seen: Seen) -> Seen:
        """The same, but that what ended well is only done when all of it is there."""
        ended = {
            key: (job, sight)
            for job in jobs
            if job.spec.produces
            and by_controller(job.spec, self._looks_at)
            and (sight := seen.attempts.get(key := (job.id, len(job.attempts)))) is not None
            and sight.state is State.EXITED
            and sight.code == 0
        }
        for key in self._since.keys() - ended.keys():
            for by_key in (self._since, self._tried, self._refused, self._answers):
                by_key.pop(key, None)
        if self._begun:
            self._abandon()
        if not ended:
            return seen
        self._ask({key: job for key, (job, _) in ended.items()})
        checked = {key: self._checked(key, job, sight) for key, (job, sight) in ended.items()}
        return replace(seen, attempts={**seen.attempts, **checked})

    def _checked(self, key: Key, job: Job, sight: Sight) -> Sight:
        now, answer = self._clock(), self._answers.get(key)
        since = self._since[key]
        if answer is not None and not answer.trouble:
            return replace(sight, code=CODE, reason=failure_reason(answer.lacks)) if answer.lacks else sight
        refused = f"its store was not asked: {self._refused[key]}" if key in self._refused else ""
        trouble = answer.trouble if answer is not None else refused
        if now - since > TOLD_AFTER_S if job.wish.stops else now - self._tried.get(key, now) > PATIENCE_S:
            unasked = "its store was not asked: others are looked at before it"
            reason = trouble or ("its store does not answer" if key in self._tried else unasked)
            return replace(sight, code=CODE, reason=failure_reason(f"its output could not be checked: {reason}"))
        reason = "" if now - since < TOLD_AFTER_S and not trouble else LOOKS
        return replace(
            sight, state=State.RUNNING, code=None, reason=f"{reason}: {trouble}" if trouble else reason, until=None, ended=True
        )

    def _ask(self, ended: Mapping[Key, Job]) -> None:
        """One look after the other where there is a place, for the owner for whom the fewest are under way and who was
        served longest ago, at what was asked for longest ago."""
        now = self._clock()
        waiting: dict[str, list[tuple[Key, _StoreLook, tuple[str, ...]]]] = {}
        with self._lock:
            for key, job in sorted(ended.items(), key=lambda item: self._asked(item[0])):
                answer, _ = self._answers.get(key), self._since.setdefault(key, now)
                if key in self._begun or (answer is not None and (not answer.trouble or now - answer.moment <= AGAIN_S)):
                    continue
                wanted = by_controller(job.spec, self._looks_at)
                look = _StoreLook(now, job.spec.owner, _store_of(wanted[0]))
                waiting.setdefault(look.owner, []).append((key, look, wanted))
            lost: Counter[str] = Counter()
            for (owner, _), count in self._lost.items():
                lost[owner] += count
            begun: list[tuple[Key, _StoreLook, tuple[str, ...]]] = []
            for owner in waiting:
                waiting[owner] = [look for look in waiting[owner] if not self._refuse(look[0], look[1], lost[owner])]
            while len(self._begun) < AT_ONCE:
                of_owner = Counter(look.owner for look in self._begun.values())
                of_store = Counter((look.owner, look.store) for look in self._begun.values()) + self._lost
                fit = {
                    owner: next((item for item in looks if of_store[owner, item[1].store] < OF_ONE_STORE), None)
                    for owner, looks in waiting.items()
                    if of_owner[owner] < OF_ONE_OWNER and of_owner[owner] + lost[owner] < LOST_OF_ONE_OWNER
                }
                able = [(of_owner[owner], self._served.get(owner, -1.0), item) for owner, item in fit.items() if item]
                if not able:
                    break
                _, _, chosen = min(able, key=lambda item: item[:2])
                key, look, _ = chosen
                waiting[look.owner].remove(chosen)
                begun.append(chosen)
                self._begun[key], self._served[look.owner] = look, now
                self._tried.setdefault(key, now)
        for key, look, wanted in begun:  # daemons: one that hangs must not keep the controller from going
            threading.Thread(target=self._asking, args=(key, wanted, look), name=f"hand-off of {key[0]}", daemon=True).start()

    def _asked(self, key: Key) -> float:
        return self._answers[key].moment if key in self._answers else -1.0

    def _refuse(self, key: Key, look: _StoreLook, lost: int) -> bool:
        """Whether nobody will ask until some of the looks that its own owner lost come back."""
        there = self._lost[look.owner, look.store]
        if lost >= LOST_OF_ONE_OWNER:
            self._refused[key] = f"{lost} earlier looks at what jobs of {look.owner or 'this owner'} made never came back"
        elif there >= OF_ONE_STORE:
            self._refused[key] = f"{there} earlier looks at {look.store} never came back"
        else:
            self._refused.pop(key, None)
            return False
        self._tried.setdefault(key, look.begun)
        return True

    def _asking(self, key: Key, wanted: Sequence[str], look: _StoreLook) -> None:
        try:
            problem = next((wrong for one in wanted if (wrong := _refused(one) or self._look(one))), "")
            answer = _Answer(self._clock(), lacks=problem)
        except Exception as error:  # of a library too: a job of which nothing were said would look as if it ran for ever
            answer = _Answer(self._clock(), trouble=str(error) or type(error).__name__)
        with self._lock:
            if self._begun.get(key) is not look:  # it came back after all, and somebody else was asked since
                self._lost -= Counter({(look.owner, look.store): 1})  # without what is none then
                return
            self._answers[key] = answer
            del self._begun[key]

    def _abandon(self) -> None:
        """A look that never comes back must not keep others from being begun."""
        now = self._clock()
        with self._lock:
            for key in [key for key, look in self._begun.items() if now - look.begun > ANSWERS_WITHIN_S]:
                look = self._begun.pop(key)
                self._lost[look.owner, look.store] += 1
                self._answers[key] = _Answer(now, trouble=f"no answer within {ANSWERS_WITHIN_S:.0f} s")
