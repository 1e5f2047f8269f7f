"""What becomes of a job whose attempt ended: done, again, or over. Its own bugs are told from lost machines.

A machine that goes away is nobody's fault, and the job is started again, up to a large number of times. A job that ends with an
error is started again a few times, after a wait that doubles; when it failed again without having come a step further, it will
fail for ever, and is not started any more. One that is killed from outside (SIGKILL, mostly by the out-of-memory killer) and
has saved something goes on from there a few times, unless it is killed again at the same step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from chipwise.observe.summary import sentence
from chipwise.runner.engine import Sight, State
from chipwise.runner.events import Again, Begun, Ended, Event, Measured, Over, Told, after
from chipwise.runner.job import LEAST_WAIT_S, Attempt, Job, LeaveReason, Outcome, Phase
from chipwise.text import spent

NEARLY = 0.99  # of the amount, since the last step is often smaller
FEWER_STEPS = "CHIPWISE_STEPS"  # a setting by which a program is told to do fewer steps than its workload says
REFUSED_S = 60.0  # between attempts of a job in a hurry that got no machine: each is a request, and a line of its story
UNBEGUN = 5  # attempts in a row that ended with their supervisor before they began; chance kills a few
WATCHED_S = 10.0  # below which what devices did is not worth a line
LEFT = 75  # EX_TEMPFAIL: "saved; start me again"
KILLED = 137  # by SIGKILL, which no program sends to itself
_KILLED_REASON = "killed (SIGKILL), usually by the out-of-memory killer"
NO_USE = {126: "the command may not be executed", 127: "the command was not found"}
SIGNALS = {
    1: "HUP",
    2: "INT",
    3: "QUIT",
    4: "ILL",
    6: "ABRT",
    7: "BUS",
    8: "FPE",
    9: "KILL",
    11: "SEGV",
    13: "PIPE",
    15: "TERM",
}


def after_end(job: Job, sight: Sight, now: float) -> tuple[Event, ...]:
    """The attempt is over and nothing of it runs: how it ended, and what follows."""
    attempt = job.attempt
    assert attempt is not None
    outcome = outcome_of(job, sight)
    reason = _exit_reason(outcome, sight)
    ended = Ended(
        number=attempt.number,
        outcome=outcome,
        code=sight.code,
        reason=reason,
        step=sight.step,
        at=sight.until,
        saved=sight.saved,
        held=sight.held_since,
    )
    events: tuple[Event, ...] = (ended,)
    since = attempt.begun
    if since is None and sight.since is not None:  # begun and over between two looks
        since = sight.since
        events = (Begun(number=attempt.number, handle=sight.handle, at=since, held=sight.held_since, where=sight.place), ended)
    events = (*events[:-1], *resumed(job, sight), *_watched(job, sight), ended)
    following = _next(job, ended, since, now)
    if isinstance(following, Over) and (outcome is Outcome.DONE or since is not None):
        measurement = _measured(job, events, sight.rate, now, outcome is Outcome.DONE)
        if sight.watched:
            measurement.measured["watched"] = dict(sight.watched)
        events = (*events, measurement)
    if isinstance(following, Over):
        following = replace(following, at=ended.at)
    return (*events, following)


def resumed(job: Job, sight: Sight) -> tuple[Event, ...]:
    """What its program really loaded, once: what was expected may be damaged or gone."""
    attempt = job.attempts[-1]
    if sight.resumed is None or attempt.resumed is not None or (not sight.resumed and attempt.number == 1):
        return ()
    expected = next((one.saved for one in reversed(job.attempts[:-1]) if one.saved is not None), None)
    text = f"its program loaded the checkpoint of step {sight.resumed}"
    if not sight.resumed:
        text = "its program began at step 0: no checkpoint was found"
    elif expected not in (None, sight.resumed):
        text += f", not of step {expected}"
    return (Told(attempt.number, text, sight.resumed),)


def _watched(job: Job, sight: Sight) -> tuple[Event, ...]:
    """What its devices did while it ran, where they were watched for long enough to say something."""
    seconds = sight.watched.get("seconds")
    words = sentence(sight.watched) if isinstance(seconds, int | float) and seconds >= WATCHED_S else ""
    return (Told(len(job.attempts), f"its devices (median): {words}"),) if words else ()


def salvage(job: Job, events: tuple[Event, ...], trouble: str) -> Iterator[tuple[Event, ...]]:
    """Less and less of what happened, for a record that does not take all of it: without what only tells, and at last that it
    is over. Nothing for one that may still run."""
    lesser = tuple(event for event in events if not isinstance(event, Measured | Told))
    if lesser and lesser != events:
        yield lesser
    failed = Over(Phase.FAILED, f"what happened to it cannot be recorded: {trouble[:300]}")
    if job.phase is Phase.QUEUED:
        yield (failed,)
    elif any(isinstance(event, Ended) for event in events):
        yield (Ended(len(job.attempts), Outcome.FAILED), failed)


def _measured(job: Job, events: tuple[Event, ...], rate: float | None, now: float, finished: bool) -> Measured:
    """What happened, beside what was predicted: a run is a measurement, whoever looks at it later. `rate`: steps per second of
    the last attempt, once it was warm."""
    for event in events:
        job = after(job, event, now)
    interruptions = [one for one in job.attempts if one.outcome in (Outcome.LOST, Outcome.LEFT)]
    seconds, steps, work = job.runtime_s(now), job.attempts[-1].step, job.spec.work
    measured: dict[str, object] = {
        "seconds": round(seconds, 3),
        "interruptions": len(interruptions),
        "attempts": len(job.attempts),
    }
    complete = finished and FEWER_STEPS not in job.spec.env  # a program that tells no steps may have done only so many
    if steps is not None:
        measured["steps"] = steps
        if work.per_step and work.amount:  # it may have been told to do fewer, or the file speaks of more than it does
            complete = finished and steps * work.per_step >= NEARLY * work.amount
    if rate is not None:
        measured["steps_per_s"] = rate
        if work.per_step:
            measured["throughput"] = rate * work.per_step
    elif complete and (steps is None or not work.per_step) and work.amount and seconds > 0:  # start, loading and all
        measured["throughput"] = work.amount / seconds
    if "throughput" in measured:
        measured["unit"] = work.unit
    if usd := job.usd(now):
        measured["usd"] = round(usd, 6)
    share = min((job.share_of(one) for one in job.attempts if one.begun is not None), default=1.0)
    if share < 1.0:  # the prediction speaks of all of them
        measured["least_share_of_workers"], complete = round(share, 3), False
        if job.share_of(job.attempts[-1]) < 1.0:
            for name in ("throughput", "unit", "steps_per_s"):
                measured.pop(name, None)
    return Measured(dict(job.spec.predicted), measured, complete)


def outcome_of(job: Job, sight: Sight) -> Outcome:
    if _finished(job, sight):
        return Outcome.DONE  # whatever was asked of it in the meantime: its work is done
    if job.wish.stops:
        return Outcome.STOPPED
    if job.leaving is LeaveReason.OVERDUE:
        return Outcome.OVERDUE
    if job.leaving is LeaveReason.BUDGET:
        return Outcome.STOPPED
    if sight.state in (State.LOST, State.ABSENT):
        return Outcome.LOST
    requested = job.leaving is not None or sight.leave_by is not None
    return Outcome.LEFT if requested or sight.code == LEFT else Outcome.FAILED


def _finished(job: Job, sight: Sight) -> bool:
    """Whether exit code 0 means that its work is done. Many programs also end with 0 when they were asked to save and go;
    those that tell their steps say so with a code of its own."""
    if sight.state is not State.EXITED or sight.code != 0 or sight.reason or job.spec.service:
        return False
    requested = job.leaving is not None or sight.leave_by is not None
    return not requested or sight.step is not None


def _next(job: Job, ended: Ended, begun: float | None, now: float) -> Event:
    retry = job.spec.retry
    until = now if ended.at is None else ended.at
    last = replace(
        job.attempts[-1], outcome=ended.outcome, code=ended.code, step=ended.step, begun=begun, ended=until, saved=ended.saved
    )
    tries = (*job.counted[:-1], last)
    match ended.outcome:
        case Outcome.DONE:
            return Over(Phase.DONE, "")
        case Outcome.STOPPED:
            budget = job.leaving is LeaveReason.BUDGET and not job.wish.stops
            return Over(Phase.FAILED if budget else Phase.STOPPED, _over_budget(job, now) if budget else "on request")
        case Outcome.OVERDUE:
            return Over(Phase.FAILED, f"longer than the {job.spec.longest_s or 0:g} s that one attempt may take")
        case Outcome.LOST | Outcome.LEFT:
            interruptions = [one for one in tries if one.outcome in (Outcome.LOST, Outcome.LEFT) and one.begun is not None]
            if len(interruptions) > retry.losses:
                return Over(Phase.FAILED, f"interrupted {_often(len(interruptions))}, more than the {retry.losses} allowed")
            if (in_vain := _never_begun(tries)) > UNBEGUN:
                return Over(Phase.FAILED, f"{ended.reason}; {_often(in_vain)} in a row")
            stuck = 0 if job.leaving is LeaveReason.MOVE else _in_a_row(job, tries, (Outcome.LOST, Outcome.LEFT)) - 1
            hurry = retry.wait_s if begun is not None else max(retry.wait_s, REFUSED_S)
            wait = min(_wait(job, stuck), hurry) if job.spec.deadline is not None else _wait(job, stuck)
            cause = "was lost" if ended.outcome is Outcome.LOST else "left"
            return Again(now + wait, f"{cause}: {ended.reason}" if ended.reason else cause)
    if ended.code in NO_USE:
        return Over(Phase.FAILED, ended.reason)
    excused = _excused(tries, retry.kills)
    failures = [one for one in tries if one.outcome is Outcome.FAILED and one not in excused]
    spent = len(failures) + len(excused) > max(retry.failures, retry.kills)
    if last in excused and not spent and not job.spec.service:
        wait = _wait(job, _in_a_row(job, tries, (Outcome.FAILED,)))
        cause = "was" if ended.reason == _KILLED_REASON else "was killed:"
        return Again(now + wait, f"{cause} {ended.reason}; last reported checkpoint: step {ended.saved}")
    stuck = _at_one_step(tries)
    if (spent or len(failures) > retry.failures) and not job.spec.service:
        count = len(failures) + len(excused)
        place = f" after step {_reached(last)}" if ended.code == KILLED and stuck > 1 else ""
        times = f"; failed {_often(stuck if place else count)}{place}" if count > 1 else ""
        return Over(Phase.FAILED, f"{ended.reason}{times}")
    if stuck > retry.same_step and not job.spec.service:
        word = "after" if ended.code == KILLED else "at"  # of one that was killed the last report counts
        return Over(Phase.FAILED, f"{ended.reason}; {_often(stuck)} {word} step {_reached(last)}: a bug in the program")
    return Again(now + _wait(job, _in_a_row(job, tries, (Outcome.FAILED,))), f"{ended.outcome}: {ended.reason}")


def _never_begun(tries: Sequence[Attempt]) -> int:
    """Attempts at the end of the row that were lost on devices of our own before they began. Elsewhere machines may not come
    for long, and that is nobody's fault."""
    count = 0
    for attempt in reversed(tries):
        if attempt.outcome is not Outcome.LOST or attempt.begun is not None or not (attempt.devices or attempt.cpus):
            break
        count += 1
    return count


def _excused(tries: Sequence[Attempt], most: int) -> list[Attempt]:
    """Attempts that were killed, had saved something, and failed at no step at which one before them failed."""
    excused: list[Attempt] = []
    steps: set[int | None] = set()
    for attempt in tries:
        if attempt.outcome is Outcome.FAILED:
            further = attempt.saved is not None and _reached(attempt) not in steps
            if attempt.code == KILLED and further and len(excused) < most:
                excused.append(attempt)
            steps.add(_reached(attempt))
    return excused


def _reached(attempt: Attempt) -> int | None:
    """How far it came: a program that saves by hand reports only what it saved."""
    return attempt.saved if attempt.step is None else attempt.step


def _often(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def _at_one_step(tries: Sequence[Attempt]) -> int:
    """Failures at the end of the row, machines lost in between aside, that came no further than the first of them."""
    failed = [_reached(one) for one in tries if one.outcome is Outcome.FAILED]
    count = 0
    for step in reversed(failed):
        if step is None or step != failed[-1]:
            break
        count += 1
    return count


def _in_a_row(job: Job, tries: Sequence[Attempt], outcomes: tuple[Outcome, ...]) -> int:
    """Attempts at the end of the row that ended so and came no further: neither in steps nor by lasting long."""
    count = 0
    for attempt in reversed(tries):
        if attempt.outcome not in outcomes or attempt.step != tries[-1].step:
            break
        count += 1
        if _lasted_s(attempt) > job.spec.retry.longest_wait_s:  # it worked for long: what was before does not count
            break
    return count


def _lasted_s(one: Attempt) -> float:
    return 0.0 if one.begun is None or one.ended is None else one.ended - one.begun


def _wait(job: Job, times: int) -> float:
    """Nothing before the first time; then doubled, and never nothing: each attempt costs all others of the place some time."""
    if times < 1:
        return 0.0
    wait_s = min(job.spec.retry.wait_s * 2.0 ** min(times - 1, 30), job.spec.retry.longest_wait_s)
    return max(float(wait_s), LEAST_WAIT_S)


def _exit_reason(outcome: Outcome, sight: Sight) -> str:
    if sight.reason:
        return sight.reason
    if sight.code is None:
        return "its machine or supervisor is gone" if outcome is Outcome.LOST else ""
    if sight.code == 0 and outcome is Outcome.FAILED:
        return "a service exited"
    if sight.code in NO_USE:
        return NO_USE[sight.code]
    if outcome is Outcome.DONE or (outcome is Outcome.LEFT and sight.code in (LEFT, 0)):
        return ""
    signal = sight.code - 128 if sight.code > 128 else 0
    if signal == 9 and outcome in (Outcome.FAILED, Outcome.LOST):  # of others we ended it ourselves
        return _KILLED_REASON
    return (
        f"killed by {f'SIG{SIGNALS[signal]}' if signal in SIGNALS else f'signal {signal}'}"
        if signal
        else f"exit code {sight.code}"
    )


def _over_budget(job: Job, now: float) -> str:
    return f"{spent(job.usd(now))} spent, and {spent(job.spec.budget_usd or 0)} are allowed"
