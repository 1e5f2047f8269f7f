"""A Kubernetes cluster: attempts are Jobs and Deployments from the renderer; watches keep a picture, and looking reads it.

The cluster queues (Kueue), brings machines (Karpenter) and retries pods (the Job controller); an attempt of ours ends when its
Job is complete, failed or gone. To leave, a Job is given a deadline that has passed: its controller then ends the pods with
their grace and marks the Job failed, which is final, with and without Kueue. Suspending it would not do: Kueue starts a
suspended Job again. Ending is deleting, with a second for each pod. Assumes Kubernetes 1.29 or later, and the rights of
`rights.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from chipwise.errors import BadInput, OutsideFailed, TryLater
from chipwise.observe.health.decide import Cordon
from chipwise.runner.engine import Clear, End, Leave, Order, Seen, Sight, Start, State
from chipwise.runner.job import Job, Phase

from . import NAME, gate, trying
from .connection import SERVING_ROLE, Connection, Exists, opened
from .health import NodeHealth, SickNode, avoiding
from .kinds import CONFIG_MAP, DEPLOYMENT, JOB, JOB_LABEL, MAIN, POD, WATCHED, Object, ObjectKind
from .logs import Logs
from .objects import (
    HANDLE,
    ID,
    RECORD,
    attempt_objects,
    key_of_job,
    kind_of,
    name_of,
    owned_by,
    owned_names,
    slug,
)
from .picture import ATTEMPT, FINAL_PHASES, Key, Picture, condition, key_of, seconds
from .reading import LEAVE, Times, lacks_image, part_of, sight, with_steps
from .services import Services
from .story import WaitMessage, next_message
from .watching import Watch

REASON = "chipwise.dev/leave-reason"
PASSED_S = 1  # a deadline that any Job that runs has passed
END_GRACE_S = 1  # the shortest that still waits for the kubelet: nothing runs when the pod is gone
GATE_S = 3600.0  # after the last change, when no late order can come any more
FIRST_LIST_S = 10.0
CLOSES_WITHIN_S = 3.0  # or with a request that is still under way
NOTICES_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Config:
    kubeconfig: Path | None = None  # None: as kubectl finds it
    context: str = ""  # empty: the current one
    namespace: str = ""  # empty: the context's
    manager: str = "chipwise"  # of fields, as the server notes who set them
    record: str = ""  # whose jobs these are: what is left over is only looked for among them, and nowhere where it is empty
    logs: Path | None = None  # where the end of what pods wrote is kept when they go; None: nowhere
    clock: Callable[[], float] = time.time
    stray_after_s: float = 60.0  # of age; what is younger may belong to a controller that we do not know of yet
    image_patience_s: float = 180.0  # with an image that is not there: somebody may push it a moment after the job


def connect(config: Config) -> Kubernetes:
    """Reads the kubeconfig, and asks the cluster nothing yet."""
    return Kubernetes(config, opened(config.kubeconfig, config.context, config.namespace, config.manager))


@dataclass(slots=True)
class Kubernetes:
    config: Config
    connection: Connection
    name: str = NAME
    picture: Picture = field(default_factory=Picture)
    watches: tuple[Watch, ...] = ()
    _noticed: dict[Key, float] = field(default_factory=dict)  # when a notice without a time was first seen
    _messages: dict[Key, WaitMessage] = field(default_factory=dict)  # of those that wait
    _imageless: dict[Key, float] = field(default_factory=dict)  # since when its image is not there
    _health: NodeHealth = field(default_factory=NodeHealth)
    _sick: dict[str, SickNode] = field(default_factory=dict)  # by name, as of the last look

    @property
    def place(self) -> str:
        return f"{NAME}:{self.connection.server.partition('://')[2].rstrip('/')}/{self.connection.namespace}"

    def close(self) -> None:
        for watch in self.watches:
            watch.stop()
        until = time.monotonic() + CLOSES_WITHIN_S
        while any(one.lives for one in self.watches) and time.monotonic() < until:
            self.connection.cut()
            time.sleep(0.01)
        self.connection.close()

    def _gate(self) -> gate.Gate:
        return gate.Gate(self.connection, self.config.record, self.config.clock)

    # Looking

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        self._watching()
        with self.picture.reading():
            self._sick = self._health.sick(self.picture, now)
            sights = {(job.id, len(job.attempts)): self._sight(job, now) for job in jobs}
            strays = tuple(self._strays({key_of_job(job) for job in jobs}, now)) if self.config.record else ()
            cordons = self._health.cordons(self._sick.values())
        # One that runs, and that the picture does not have: only the server itself can say that it is gone.
        missing = [job for job in jobs if sights[(job.id, len(job.attempts))] is None and job.phase is not Phase.STARTING]
        for job in missing:
            sights[(job.id, len(job.attempts))] = self._fresh_sight(job, now)
        return Seen(now, {key: one or Sight(State.ABSENT) for key, one in sights.items()}, strays=strays, cordons=cordons)

    def _watching(self) -> None:
        """Back when the picture is whole and kept; else it says what is in the way."""
        if not self.watches:
            self.watches = tuple(Watch(self.connection, what, self.picture) for what in WATCHED)
            for watch in self.watches:
                watch.start()
        until = time.monotonic() + FIRST_LIST_S
        needed = [one for one in self.watches if one.watched.needed]
        while not all(one.is_listed or one.trouble is not None for one in self.watches) and time.monotonic() < until:
            if any(one.trouble is not None for one in needed):
                break
            time.sleep(0.02)
        for watch in needed:  # what is in the way of one tells more than that another has not answered yet
            if isinstance(watch.trouble, OutsideFailed):
                raise watch.trouble
        for watch in needed:
            if watch.trouble is not None or not watch.is_listed:
                detail = f": {watch.trouble}" if watch.trouble is not None else " in time"
                raise TryLater(f"{self.connection.server} did not list its {watch.watched.kind.plural}{detail}.")

    def _sight(self, job: Job, now: float) -> Sight | None:
        key = key_of_job(job)
        part = part_of(self.picture, key, kind_of(job))
        if any(self._is_of_another(job, item) for item in (part.main, *part.pods)):
            return None
        given_up = False
        if lacks_image(part):
            given_up = now - _first(self._imageless, key, now) >= self.config.image_patience_s
        else:
            self._imageless.pop(key, None)
        soon = self._noticed.get(key, now) + job.spec.grace_s
        sick = {name: node.words for name, node in self._sick.items() if node.concerns(job.spec.needs.gpus)}
        status = sight(self.picture, part, job, Times(now, soon, given_up, sick))
        if status is not None and status.leave_by is not None:
            _first(self._noticed, key, now)
        if (
            status is None
            or status.state not in (State.PENDING, State.RUNNING)
            or not status.reason
            or status.leave_by is not None
        ):
            self._messages.pop(key, None)
            return status
        self._messages[key] = next_message(self._messages.get(key), status.reason, now)
        return replace(status, reason=self._messages[key].text)

    def _fresh_sight(self, job: Job, now: float) -> Sight:
        key, kind = key_of_job(job), kind_of(job)
        main = self.connection.get(kind, name_of(key))
        pods = self._pods(key)
        with self.picture.reading():
            if main is not None:
                self.picture.put(kind, main)
            for pod in pods:
                self.picture.put(POD, pod)
            requested = job.phase is Phase.LEAVING  # and then ended, since it had nothing to save or took too long
            reason = "it was stopped, as requested" if requested else f"its {kind.name} is gone from the cluster"
            lost = Sight(State.LOST, reason=reason, handle=name_of(key))
            return self._sight(job, now) or with_steps(lost, part_of(self.picture, key, kind))

    def _strays(self, live: set[Key], now: float) -> Iterator[str]:
        """What is ours and of no attempt that is under way; the gate of a job when all else of it is gone for a while."""
        live_jobs = {key[0] for key in live}
        for kind in (*MAIN, POD):
            for item in self.picture.all(kind):
                key = key_of(item)
                if key is None or not self._is_own(item):
                    continue
                live_jobs.add(key[0])
                orphan = kind is not POD or all(self.picture.by_name(other, name_of(key)) is None for other in MAIN)
                if key not in live and orphan and self._old(item, now) and not item["metadata"].get("deletionTimestamp"):
                    yield name_of(key)
        for config_map in self.picture.all(CONFIG_MAP):
            job = str((config_map["metadata"].get("labels") or {}).get(JOB_LABEL, ""))
            if (
                job not in live_jobs
                and self._is_own(config_map)
                and now - gate.changed_at(config_map) > max(GATE_S, self.config.stray_after_s)
            ):
                yield f"{job}-gate"

    def _is_own(self, item: Object) -> bool:
        return (item["metadata"].get("labels") or {}).get(RECORD) == self.config.record

    def _is_of_another(self, job: Job, item: Object | None) -> bool:
        """Whether it was made for another id, which gives the same name, or by another record, whose job has the same id. One
        that ran for us once is ours whatever its label says: a record may have been given another address since."""
        meta = (item or {}).get("metadata", {})
        if (meta.get("annotations") or {}).get(ID, job.id) != job.id:
            return True
        label = (meta.get("labels") or {}).get(RECORD)
        unknown = all(attempt.begun is None for attempt in job.attempts)
        return bool(label and self.config.record and label != self.config.record and unknown)

    def _old(self, one: Object, now: float) -> bool:
        return now - (seconds(one["metadata"].get("creationTimestamp")) or now) >= self.config.stray_after_s

    def logs(self, job: Job, number: int, *, follow: bool = False, rank: int | None = None) -> Iterator[bytes]:
        """What an attempt wrote: asked of the cluster, or of what was kept when it left or was cleared. Who follows gets one
        pod, the first unless another is named, until the attempt is over."""
        key, logs = (slug(job.id), number), Logs(self.connection, self.config.logs)
        if not follow:
            return logs.of(key, self._own_pods(job, key), rank)

        def look() -> tuple[Sequence[Object], bool]:
            main = self.connection.get(kind_of(job), name_of(key))  # first: whoever is over makes no more pods
            finished = main is None or condition(main, "Complete") or condition(main, "Failed") or LEAVE in _notes(main)
            pods = self._own_pods(job, key)
            return pods, bool(finished) and all((one.get("status") or {}).get("phase") in FINAL_PHASES for one in pods)

        return logs.follow(key, look, rank)

    def _pods(self, key: Key) -> list[Object]:
        return self.connection.list(POD, f"{JOB_LABEL}={key[0]},{ATTEMPT}={key[1]}")[0]

    def _own_pods(self, job: Job, key: Key) -> list[Object]:
        return [pod for pod in self._pods(key) if not self._is_of_another(job, pod)]

    # Asking beforehand

    def queue_for(self, team: str, asked: str = "") -> str:
        """The queue of Kueue for `Spec.objects`; empty where there is none."""
        return trying.queue_for(self.connection, team, asked)

    def services(self) -> Services:
        return Services(replace(self.connection, role=SERVING_ROLE), self.config.record, self.place)

    def check(self, job: Job) -> None:
        """Raises what the cluster would refuse its attempt for, and makes nothing. Where fewer machines will do, they are
        what must be to be had: the quota may hold no more, and grow."""
        job = replace(job, attempts=(*job.attempts[:-1], replace(job.attempts[-1], machines=job.spec.needs.fewest_machines)))
        objects = attempt_objects(job, self.connection.namespace, self.config.record)
        trying.try_out(self.connection, job.spec.name, objects)

    # Doing

    def do(self, order: Order) -> None:
        match order:
            case Start(job):
                self._start(job)
            case Leave(job, deadline, reason):
                self._leave(job, deadline, reason)
            case End(job):
                self._end(job)
            case Clear(handle):
                self._clear(handle)
            case Cordon(machine, reason):
                self._health.cordon(self.connection, self.picture, machine, reason)

    def _start(self, job: Job) -> None:
        key = key_of_job(job)
        objects = attempt_objects(job, self.connection.namespace, self.config.record)
        kind, main = objects.main
        with self.picture.reading():
            present = self.picture.by_name(kind, name_of(key))
        if present is not None:
            self._refuse_of_another(job, present)
            return
        entry = self._gate().enter(key)
        if entry is not gate.Entry.FIRST:
            self._refuse_of_another(job, self.connection.get(CONFIG_MAP, gate.gate_name(key[0])))
        if entry is gate.Entry.SHUT:
            return
        applied = self.connection.get(kind, name_of(key)) if entry is gate.Entry.AGAIN else None
        if applied is None:
            # What pods need comes before them, so that whoever is cut off in between, and finds the Job, finds all of it.
            for extra, body in objects.persistent:
                self._create(extra, body)
            for extra, body in objects.owned:
                self.connection.apply(extra, body)
            applied = self.connection.apply(kind, main if self._health.may_cordon else avoiding(main, self._sick.values()))
        for extra, body in objects.owned:
            self.connection.apply(extra, owned_by(body, kind, applied))
        self.picture.put(kind, applied)  # the watch will say the same, a moment later

    def _refuse_of_another(self, job: Job, item: Object | None) -> None:
        if self._is_of_another(job, item):
            raise BadInput(
                f"Another job has the name of {job.id} in the namespace {self.connection.namespace}: of another database,"
                " or one whose id gives the same name.",
                remedy="Submit it again: it gets another id.",
            )

    def _create(self, kind: ObjectKind, body: Object) -> None:
        with suppress(Exists):
            self.connection.create(kind, body)

    def _leave(self, job: Job, deadline: float, reason: str) -> None:
        key, kind = key_of_job(job), kind_of(job)
        main = self._main(kind, key)
        if main is None or condition(main, "Complete") or condition(main, "Failed") or self._is_of_another(job, main):
            return
        if LEAVE in _notes(main):
            return
        if kind is JOB and (main.get("spec") or {}).get("suspend"):  # it waits in a queue and has nothing to save
            self._end(job)
            return
        change = {"spec": {"replicas": 0} if kind is DEPLOYMENT else {"activeDeadlineSeconds": PASSED_S}}
        notes = {LEAVE: f"{deadline:.0f}", REASON: reason[:200]}
        with self.picture.reading():
            pods = self.picture.pods(key)
        logs = Logs(self.connection, self.config.logs)
        logs.keep(key, pods)  # before: the cluster removes those that go at once
        self.picture.put(kind, self.connection.merge(kind, name_of(key), {"metadata": {"annotations": notes}, **change}))
        logs.keep(key, pods)  # and what they say while they save

    def _main(self, kind: ObjectKind, key: Key) -> Object | None:
        """As the picture has it; the server is asked where it has none."""
        with self.picture.reading():
            main = self.picture.by_name(kind, name_of(key))
        return main if main is not None else self.connection.get(kind, name_of(key))

    def _end(self, job: Job) -> None:
        """The gate first: whoever would start it now finds it shut."""
        key, kind = key_of_job(job), kind_of(job)
        main = self._main(kind, key)
        if main is not None and (condition(main, "Complete") or condition(main, "Failed")) and not self._living(key):
            return
        if self._is_of_another(job, main):
            return
        with self.picture.reading():
            shut = gate.stand(self.picture.by_name(CONFIG_MAP, gate.gate_name(key[0]))).newest_over >= key[1]
        if not shut:
            self._gate().shut(key, make=True)
        if main is not None:
            self.connection.delete(kind, name_of(key))
        left = [
            pod
            for pod in self._own_pods(job, key)
            if pod["metadata"].get("deletionGracePeriodSeconds", END_GRACE_S + 1) > END_GRACE_S
        ]
        Logs(self.connection, self.config.logs).keep(key, left)
        for pod in left:
            self.connection.delete(POD, pod["metadata"]["name"], uid=pod["metadata"]["uid"], grace_s=END_GRACE_S)

    def _living(self, key: Key) -> bool:
        with self.picture.reading():
            return any((one.get("status") or {}).get("phase") not in FINAL_PHASES for one in self.picture.pods(key))

    def _clear(self, handle: str) -> None:
        """The Job or Deployment with what it owns. Claims stay: checkpoints lie there."""
        match = HANDLE.fullmatch(handle)
        if match is None:
            return
        if match[3]:
            self._gate().remove(match[1])
            return
        key = (match[1], int(match[2]))
        self._gate().shut(key, make=False)
        with self.picture.reading():
            kinds: Iterable[ObjectKind] = [kind for kind in MAIN if self.picture.by_name(kind, handle) is not None] or MAIN
            pods = self.picture.pods(key)
            mains = [main for kind in MAIN if (main := self.picture.by_name(kind, handle)) is not None]
        Logs(self.connection, self.config.logs).keep(key, pods)
        deletions = [self.connection.delete(kind, handle) for kind in kinds]
        for extra, name in (found for main in mains for found in owned_names(main)):  # those that it never came to own too
            self.connection.delete(extra, name)
        if not any(deletions):  # pods whose Job is gone go by themselves, unless somebody keeps them
            for pod in pods:
                self.connection.delete(POD, pod["metadata"]["name"], uid=pod["metadata"]["uid"])
        self.picture.forget(key)
        self._noticed.pop(key, None)
        self._imageless.pop(key, None)
        self._messages.pop(key, None)


def _first(seen: dict[Key, float], key: Key, now: float) -> float:
    """When it was seen first; the oldest are forgotten where there are very many."""
    first = seen.setdefault(key, now)
    if len(seen) > NOTICES_KEPT:
        seen.pop(next(iter(seen)))
    return first


def _notes(one: Object) -> Mapping[str, str]:
    found: Mapping[str, str] = one["metadata"].get("annotations") or {}
    return found
