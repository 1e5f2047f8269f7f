"""What is seen of one attempt, read from its Job or Deployment and its pods. Pure.

Nothing is called over while a pod of it may still run, whatever the Job says: one that is over may be followed by another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from chipwise.observe import device_summary
from chipwise.runner.engine import Sight, State
from chipwise.runner.job import Job, MachinePlace, Phase

from . import hand_off
from .kinds import JOB, NODE, Object, ObjectKind, each_alone
from .machines import NodeNotice, notice, place_of
from .objects import name_of
from .picture import FINAL_PHASES, Key, Picture, PodEnd, condition, ended, index_of, seconds, started, terminated
from .progress_reports import ProgressReport
from .story import commonest_reason, ends_again, short, stuck_image, troubled, why_waiting

LEAVE = "chipwise.dev/leave-by"  # an annotation: it was asked to go
NO_IMAGE = 127
TOO_LONG = 124


@dataclass(frozen=True, slots=True)
class AttemptView:
    """An attempt as the picture has it."""

    key: Key
    kind: ObjectKind
    main: Object | None
    pods: Sequence[Object]
    ends: Sequence[PodEnd]

    @property
    def living(self) -> list[Object]:
        return [one for one in self.pods if (one.get("status") or {}).get("phase") not in FINAL_PHASES]

    @property
    def running(self) -> list[Object]:
        return [one for one in self.pods if (one.get("status") or {}).get("phase") in ("Running", "Unknown")]

    @property
    def finished(self) -> list[PodEnd]:
        """How pods of it ended, the last one last."""
        ends = [*self.ends, *(ended(one) for one in self.pods if (one.get("status") or {}).get("phase") in FINAL_PHASES)]
        return sorted(ends, key=lambda one: (one.until or 0.0, one.name))

    @property
    def last_ends(self) -> list[PodEnd]:
        """How the last pod of each index ended."""
        return list({end.index or end.name: end for end in self.finished}.values())

    @property
    def since(self) -> float | None:
        times = [*(started(one) for one in self.pods), *(one.since for one in self.ends)]
        return min((at for at in times if at is not None), default=None)

    @property
    def begun(self) -> set[str]:
        """Indices of which a pod began: pods of one Job wait for each other."""
        return {index_of(one) for one in self.pods if started(one) is not None} | {one.index for one in self.ends if one.since}

    @property
    def report(self) -> ProgressReport | None:
        """How far it was when a pod of it ended last: the first of several, where rank 0 is, else whichever says so."""
        reports = [one for one in (*self.ends, *(ended(pod) for pod in self.pods)) if one.report is not None]
        last = max(reports, key=lambda one: (one.index in ("", "0"), one.until or 0.0, one.name), default=None)
        return last.report if last is not None else None

    @property
    def leave_requested(self) -> bool:
        return LEAVE in ((self.main or {}).get("metadata", {}).get("annotations") or {})


def part_of(picture: Picture, key: Key, kind: ObjectKind) -> AttemptView:
    return AttemptView(
        key=key, kind=kind, main=picture.by_name(kind, name_of(key)), pods=picture.pods(key), ends=picture.ends(key)
    )


@dataclass(frozen=True, slots=True)
class Times:
    now: float
    soon: float  # when a machine is taken for gone, where a notice does not say
    given_up: bool = False  # its image has been waited for long enough
    sick: Mapping[str, str] = field(default_factory=dict)  # nodes that the job must leave, with the words for it


def sight(picture: Picture, part: AttemptView, job: Job, times: Times) -> Sight | None:
    """None: there is nothing of it."""
    if part.main is None:
        if not part.living:
            return None
        state = State.RUNNING if part.running else State.PENDING
        return _under_way(picture, part, job, state, f"its {part.kind.name} is gone; its pods are ending")
    if part.kind is not JOB:
        return _of_service(picture, part, job, times)
    return with_steps(_of_job(picture, part, job, times), part)


def with_steps(seen: Sight, part: AttemptView) -> Sight:
    """As far as its pods told, which they do when they end: of one that runs it is what an earlier pod of it said."""
    if part.kind is not JOB:
        return seen
    if seen.state in (State.EXITED, State.LOST):
        seen = replace(seen, watched=device_summary.read([end.watched for end in part.last_ends]))
    progress = part.report
    if progress is None:
        return seen
    return replace(seen, step=progress.step, saved=progress.saved, rate=progress.rate, resumed=progress.resumed)


def _under_way(
    picture: Picture, part: AttemptView, job: Job, state: State, reason: str = "", going: NodeNotice | None = None
) -> Sight:
    leave_by = None if going is None else going.deadline
    return Sight(
        state=state,
        reason=going.reason if going is not None else reason,
        since=part.since,
        handle=name_of(part.key),
        leave_by=leave_by,
        place=_place(picture, part.living, job),
        held_since=_scheduled(part.pods),
    )


def _of_job(picture: Picture, part: AttemptView, job: Job, times: Times) -> Sight:
    main = part.main
    assert main is not None
    complete, failed = condition(main, "Complete"), condition(main, "Failed")
    if complete is not None or failed is not None:
        if part.running:
            return _under_way(picture, part, job, State.RUNNING, "its last pods are ending")
        return _finished(picture, part, job, failed)
    if (
        part.leave_requested
    ):  # also between the end of its pods and the word of the Job controller: ending it would lose how it left
        return _under_way(picture, part, job, State.RUNNING, "its pods are ending")
    if part.running:
        alone = each_alone(main.get("spec") or {})  # the Job replaces one; the others need not go
        suspended = (main.get("spec") or {}).get("suspend")  # Kueue takes it back, and will let it in again
        count = int((main.get("spec") or {}).get("completions") or 1)
        if job.phase is Phase.STARTING and not alone and not suspended and (ready := len(part.begun)) < count:
            reason = why_waiting(picture, main, [one for one in part.living if started(one) is None])
            pending = _under_way(picture, part, job, State.PENDING, f"{ready} of {count} pods run; {reason}")
            return replace(pending, machines_arrived=ready)
        going = None if alone or suspended else notice(picture, part.running, times.soon, times.sick)
        return _under_way(picture, part, job, State.RUNNING, "", going)
    if (refused := _without_image(picture, part, times)) is not None:
        return refused
    if part.pods and not part.living:
        last = part.finished[-1]
        if last.code == 0:  # the Job controller has not counted it yet
            return _under_way(picture, part, job, State.RUNNING)
        end = last.lost or f"{last.name} ended with {'an unknown code' if last.code is None else f'code {last.code}'}"
        rules = ((main.get("spec") or {}).get("podFailurePolicy") or {}).get("rules") or ()
        excused = bool(last.lost) and any(one.get("action") == "Ignore" for one in rules)
        final = (main.get("spec") or {}).get("backoffLimit") == 0 and not excused  # the Job is about to say that it failed
        after = "" if final else "; its Job starts another"
        return _under_way(picture, part, job, State.PENDING, f"{short(end)}{after}")
    return _under_way(picture, part, job, State.PENDING, why_waiting(picture, main, part.living))


def _finished(picture: Picture, part: AttemptView, job: Job, failed: object) -> Sight:
    """The Job is over and none of its pods runs."""
    main = part.main
    assert main is not None
    status, ends = main.get("status") or {}, part.finished
    begun = part.since if part.since is not None else seconds(status.get("startTime"))
    place = _place(picture, part.pods, job)
    handle = name_of(part.key)
    if failed is None:
        until = seconds(status.get("completionTime")) or max((one.until for one in ends if one.until is not None), default=None)
        return Sight(state=State.EXITED, code=0, reason="", since=begun, until=until, step=None, handle=handle, place=place)
    failure = condition(main, "Failed") or {}
    until = seconds(failure.get("lastTransitionTime"))
    reason, message = str(failure.get("reason", "")), short(failure.get("message", ""))
    if part.leave_requested and reason == "DeadlineExceeded":
        return Sight(
            state=State.EXITED,
            code=_left_with(main, ends),
            reason="",
            since=begun,
            until=until,
            step=None,
            handle=handle,
            place=place,
        )
    if reason == "DeadlineExceeded":
        return Sight(
            state=State.EXITED,
            code=TOO_LONG,
            reason=f"longer than its Job may take: {message}",
            since=begun,
            until=until,
            step=None,
            handle=handle,
            place=place,
        )
    failed_pods = [one for one in ends if one.code != 0]
    # When one has failed, its Job removes the others, which then end too: they are not why.
    bad = [one for one in failed_pods if one.lost or not one.removed] or failed_pods
    own = [one for one in bad if not one.lost and one.code is not None]
    if bad and bad[-1].lost:
        return Sight(
            state=State.LOST,
            code=bad[-1].code,
            reason=short(bad[-1].lost),
            since=begun,
            until=until,
            step=None,
            handle=handle,
            place=place,
        )
    if own:
        return Sight(
            state=State.EXITED,
            code=own[-1].code,
            reason=_failure_reason(part, own, job),
            since=begun,
            until=until,
            step=None,
            handle=handle,
            place=place,
        )
    return Sight(
        state=State.EXITED,
        code=1,
        reason=message or "its Job failed",
        since=begun,
        until=until,
        step=None,
        handle=handle,
        place=place,
    )


def _left_with(main: Object, ends: Sequence[PodEnd]) -> int | None:
    """Of pods that were asked to go together: a code that says something before one that does not. 0 where each of them ended
    so: of one that went without a word nobody knows whether it was done."""
    codes = [one.code for one in {one.index or one.name: one for one in ends}.values()]  # of each the last
    if (bad := next((code for code in reversed(codes) if code), None)) is not None:
        return bad
    count = int((main.get("spec") or {}).get("completions") or 1)
    succeeded = max(codes.count(0), int((main.get("status") or {}).get("succeeded") or 0))
    return 0 if succeeded >= count else None


def _failure_reason(part: AttemptView, own: Sequence[PodEnd], job: Job) -> str:
    """Which of several failed, what is not there, and that memory was short; nothing where the exit code says it all."""
    lacks = next((one.lacks for one in own if one.lacks), "")
    if lacks:
        return short(lacks)
    last, count = own[-1], int(((part.main or {}).get("spec") or {}).get("completions") or 1)
    pod = next((one for one in part.pods if one["metadata"]["name"] == last.name), None)
    ends = terminated(pod) if pod is not None else []
    if ends and ends[0].get("reason") == "OOMKilled":
        return f"{last.name} used more memory than its limit"
    if last.code == NO_IMAGE and ends and ends[0].get("message") and last.report is None:
        if shell := hand_off.without_shell(job.spec, ends[0]["message"]):
            return shell
        return f"the command was not found: {short(ends[0]['message'])}"
    if count <= 1 or not last.index:
        return ""
    failed = sorted({one.index for one in own if one.index}, key=lambda text: (len(text), text))
    return f"pod {last.index} of {count} ended with code {last.code}" + (
        f"; failed were {', '.join(failed[:10])}" if len(failed) > 1 else ""
    )


def lacks_image(part: AttemptView) -> bool:
    """Whether its image is what it waits for: told meanwhile, and at some time given up."""
    return not part.running and any(stuck_image(one) for one in part.living)


def _without_image(picture: Picture, part: AttemptView, times: Times) -> Sight | None:
    if not times.given_up or part.main is None or not lacks_image(part):
        return None
    reason = why_waiting(picture, part.main, [one for one in part.living if stuck_image(one)])
    return Sight(
        state=State.EXITED,
        code=NO_IMAGE,
        reason=reason,
        since=None,
        until=times.now,
        step=None,
        handle=name_of(part.key),
        held_since=_scheduled(part.pods),
    )


def _of_service(picture: Picture, part: AttemptView, job: Job, times: Times) -> Sight:
    main = part.main
    assert main is not None
    status, meta = main.get("status") or {}, main["metadata"]
    if part.leave_requested:
        seen = int(status.get("observedGeneration") or 0) >= int(meta.get("generation") or 0)
        if part.living or not seen or status.get("replicas"):
            return _under_way(picture, part, job, State.RUNNING, "its replicas are ending")
        until = max((one.until for one in part.finished if one.until is not None), default=None)
        return Sight(
            state=State.EXITED,
            code=_left_with(main, part.finished) or 0,
            reason="",
            since=part.since,
            until=until,
            step=None,
            handle=name_of(part.key),
        )
    troubles = [troubled(picture, one) for one in part.living]
    if (serve := int(status.get("availableReplicas") or 0)) >= 1:
        count = max(int((main.get("spec") or {}).get("replicas") or 1), serve)
        shortage = f"{serve} of {count} replicas serve: {commonest_reason(troubles)}" if serve < count and any(troubles) else ""
        return _under_way(picture, part, job, State.RUNNING, shortage)
    if (refused := _without_image(picture, part, times)) is not None:
        return refused
    if (trouble := condition(main, "ReplicaFailure")) is not None and not part.living:
        return _under_way(picture, part, job, State.PENDING, f"its pods are refused: {short(trouble.get('message', ''))}")
    waiting = [one for one in part.living if one not in part.running]
    reason = (
        why_waiting(picture, main, waiting) if waiting or not part.running else "started; it does not pass its health check yet"
    )
    return _under_way(picture, part, job, State.PENDING, commonest_reason([ends_again(one) for one in part.running]) or reason)


def _place(picture: Picture, pods: Sequence[Object], job: Job) -> MachinePlace | None:
    names = sorted({str((one.get("spec") or {}).get("nodeName", "")) for one in pods} - {""})
    places = (place_of(picture.by_name(NODE, name), job.spec.places) for name in names)
    return next((place for place in places if place is not None), None)


def _scheduled(pods: Sequence[Object]) -> float | None:
    """Since when a node is there for it: from then on somebody pays."""
    times = [seconds((condition(one, "PodScheduled") or {}).get("lastTransitionTime")) for one in pods]
    return min((at for at in times if at is not None), default=None)
