"""The controller: cut off anywhere, deposed, answered with errors, it loses nothing and starts nothing twice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chipwise.adapters.engines.simulated.world import Exit, Fails, Loss, Outage, Program, World
from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.errors import BadInput, ChipwiseError, NotAllowed, OutsideFailed, TryLater
from chipwise.runner import loop
from chipwise.runner.events import Ended, Over, Told, Wished
from chipwise.runner.job import Job, Needs, Outcome, Phase, Spec, Wish
from chipwise.runner.loop import LEASE_S, Controller
from chipwise.runner.queue import Rules
from chipwise.runner.record import Change, Lease, MarkLost, Stale
from effort import cases
from run_jobs import Died, Fuse, MortalEngine, MortalRecord, queued, shared_devices, spec, twice_at_once

PLACE = "simulated"
QUICK = Program(6, 10.0, 2)


def here(name: str = "train", **asked: object) -> Spec:
    return replace(spec(name, **asked), engine="simulated", place=PLACE)


def pair(world: World, deaths: frozenset[int] = frozenset()) -> tuple[MortalRecord, MortalEngine]:
    fuse = Fuse(deaths)
    return MortalRecord(fuse=fuse), MortalEngine(world, fuse=fuse)


def play(controller: Controller, until: float, tick: float = 10.0, since: float = 0.0) -> float:
    now = since
    while now < until:
        turn = controller.turn(now)
        now += tick
        if turn.leads and not turn.live and not turn.behind:
            break
    return now


def job(record: MemoryRecord, id: str = "j1") -> Job:
    found = record.job(id)
    assert found is not None
    return found


def test_a_job_is_led_to_its_end() -> None:
    record, engine = pair(World(other=QUICK))
    record.submit([("j1", here())], 0.0)
    play(Controller(record, engine, "a"), 200.0)
    assert job(record).phase is Phase.DONE
    assert engine.look([], 300.0).strays == ()


fates = st.fixed_dictionaries(
    {
        "deaths": st.frozensets(st.integers(1, 60), max_size=12),
        "losses": st.lists(st.tuples(st.floats(0, 300), st.sampled_from([0.0, 15.0]), st.booleans()), max_size=3),
        "outages": st.lists(st.tuples(st.floats(0, 300), st.floats(1, 40), st.sampled_from(list(Fails))), max_size=3),
        "stop": st.none() | st.floats(0, 200),
        "code": st.sampled_from([0, 0, 1]),
        "tick": st.sampled_from([3.0, 10.0, 20.0]),
    }
)


def world(fate: dict[str, object], gpus: int | None = None) -> World:
    return World(
        gpus=gpus,
        cpus=gpus and 8,
        other=replace(QUICK, exits=(Exit(1, 3, attempts=frozenset({1})),) if fate["code"] else ()),
        losses=tuple(Loss(at, notice, announced=told) for at, notice, told in fate["losses"]),  # type: ignore[attr-defined]
        outages=tuple(Outage(at, at + lasts, of) for at, lasts, of in fate["outages"]),  # type: ignore[attr-defined]
    )


@settings(max_examples=cases(50))
@given(fates)
def test_no_two_attempts_of_a_job_at_once_wherever_the_controller_dies(fate: dict[str, object]) -> None:
    record, engine = pair(world(fate, gpus=4), fate["deaths"])  # type: ignore[arg-type]
    record.submit([(f"j{n}", here(f"t{n}", needs=Needs(2, 1), grace_s=15.0)) for n in range(3)], 0.0)
    controller, now, born, stop = Controller(record, engine, "c0"), 0.0, 0, fate["stop"]
    while now < 2000.0:
        try:
            if stop is not None and stop <= now:  # type: ignore[operator]
                record.write([Change(job(record, "j1"), (Wished(Wish.STOP),))], now)
                stop = None
            turn = controller.turn(now)
            if turn.leads and not turn.live and stop is None:
                break
        except Died:
            born += 1
            controller = Controller(record, engine, f"c{born}")
        now += fate["tick"]  # type: ignore[operator]
    assert twice_at_once(engine.history) == []
    assert shared_devices(engine.history) == []
    assert all(job(record, f"j{n}").phase.over for n in range(3)), "nothing is forgotten"
    assert not any(stay.lives for stay in engine.history), "nothing runs on"
    if fate["stop"] is None and not fate["code"]:
        assert all(job(record, f"j{n}").phase is Phase.DONE for n in range(3))


@settings(max_examples=cases(30))
@given(fates, st.lists(st.tuples(st.integers(0, 1), st.booleans(), st.booleans(), st.floats(1, 25)), min_size=20, max_size=80))
def test_two_controllers_never_run_a_job_twice_however_late_their_orders_come(
    fate: dict[str, object], moves: list[tuple[int, bool, bool, float]]
) -> None:
    """One of them sleeps between writing and doing, and wakes up when the other leads."""
    record, engine = pair(world(fate, gpus=4))
    record.submit([(f"j{n}", here(f"t{n}", needs=Needs(2, 1), grace_s=15.0)) for n in range(3)], 0.0)
    two, now = [Controller(record, engine, name) for name in "ab"], 0.0
    for which, sleeps, wakes, passes in moves:
        engine.delayed = sleeps
        two[which].turn(now)
        engine.delayed = False
        if wakes:
            with suppress(TryLater):
                engine.deliver()
        if fate["stop"] is not None and now > 100.0 and job(record).wish is Wish.RUN and not job(record).phase.over:
            record.write([Change(job(record), (Wished(Wish.STOP),))], now)
        now += passes
    play(two[0], now + 2000.0, since=now + LEASE_S)
    assert twice_at_once(engine.history) == []
    assert shared_devices(engine.history) == []
    assert all(job(record, f"j{n}").phase.over for n in range(3))


def test_without_the_lease_a_controller_only_watches() -> None:
    record, engine = pair(World(other=QUICK))
    record.submit([("j1", here())], 0.0)
    first, second = Controller(record, engine, "a"), Controller(record, engine, "b")
    assert first.turn(0.0).leads
    assert not second.turn(1.0).leads
    assert second.turn(LEASE_S + 1.0).leads
    assert not first.turn(LEASE_S + 2.0).leads


def test_who_resigned_is_followed_at_once() -> None:
    record, engine = pair(World(other=QUICK))
    first, second = Controller(record, engine, "a"), Controller(record, engine, "b")
    first.turn(0.0)
    first.resign()
    assert second.turn(1.0).leads


def test_who_is_deposed_in_the_middle_of_a_turn_writes_nothing() -> None:
    class Usurped(MortalRecord):
        def write(self, changes, at, lease=None):  # type: ignore[no-untyped-def]
            self.lead(PLACE, "b", at + LEASE_S + 1, LEASE_S)
            return MortalRecord.write(self, changes, at, lease)

    record, engine = Usurped(), MortalEngine(World(other=QUICK))
    record.submit([("j1", here())], 0.0)
    assert not Controller(record, engine, "a").turn(0.0).leads
    assert job(record).phase is Phase.QUEUED
    assert engine.history == []


@pytest.mark.parametrize(("paused_s", "replaced"), [(2.0, False), (40.0, False), (40.0, True)])
def test_who_was_stopped_in_a_turn_orders_nothing_once_another_leads(paused_s: float, replaced: bool) -> None:
    """It goes on where it was, between what it wrote and what it would order."""
    elapsed = [0.0]
    leads: list[bool] = []

    class Stopped(MortalRecord):
        def write(self, changes, at, lease=None):  # type: ignore[no-untyped-def]
            answers = MortalRecord.write(self, changes, at, lease)
            if lease is not None and lease.holder == "a":
                elapsed[0] += paused_s
                if replaced:
                    leads.append(Controller(self, other, "b").turn(paused_s).leads)
            return answers

    record, engine, other = Stopped(), MortalEngine(World(other=QUICK)), MortalEngine(World(other=QUICK))
    record.submit([("j1", here())], 0.0)
    turn = Controller(record, engine, "a", elapsed=lambda: elapsed[0]).turn(0.0)
    assert leads == ([True] if replaced else [])
    assert turn.leads is not replaced
    assert len(engine.history) == (0 if replaced else 1)
    assert len(other.history) == (1 if replaced else 0)


def test_an_engine_that_cannot_see_changes_nothing() -> None:
    record, engine = pair(World(other=QUICK, outages=(Outage(5.0, 35.0),)))
    record.submit([("j1", here())], 0.0)
    controller = Controller(record, engine, "a")
    controller.turn(0.0)
    before = job(record)
    for now in (10.0, 20.0, 30.0):
        turn = controller.turn(now)
        assert "does not answer" in turn.trouble[0]
        assert turn.leads
        assert not turn.looked
    assert job(record) == before
    assert controller.turn(36.0).looked
    play(controller, 300.0, since=40.0)
    assert job(record).phase is Phase.DONE
    assert len(job(record).attempts) == 1


def test_a_start_whose_answer_was_lost_is_not_done_twice() -> None:
    record, engine = pair(World(other=QUICK, outages=(Outage(0.0, 25.0, Fails.ANSWER),)))
    record.submit([("j1", here())], 0.0)
    play(Controller(record, engine, "a"), 300.0)
    assert len(engine.history) == 1
    assert job(record).phase is Phase.DONE


def test_what_an_engine_complains_of_is_told_once() -> None:
    record, engine = pair(World(other=QUICK, outages=(Outage(0.0, 55.0, Fails.DO),)))
    record.submit([("j1", here())], 0.0)
    play(Controller(record, engine, "a"), 300.0)
    told = [one for one in record.events("j1") if isinstance(one.event, Told)]
    assert len(told) == 1
    assert job(record).phase is Phase.DONE


def test_a_start_that_is_refused_is_final_and_says_why() -> None:
    record, engine = pair(World(refuses={"train": "The account may not start machines."}))
    record.submit([("j1", here())], 0.0)
    play(Controller(record, engine, "a"), 100.0)
    assert job(record).phase is Phase.FAILED
    assert job(record).reason == "The account may not start machines."
    assert engine.history == []


def test_a_controller_that_has_not_read_all_jobs_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would take the attempts of those that it has not read for strays, and their devices for free."""
    record, engine = pair(World(other=QUICK, gpus=4, cpus=20))
    record.submit([(f"j{n}", here(f"t{n}", needs=Needs(1, 1))) for n in range(10)], 0.0)
    Controller(record, engine, "a").turn(0.0)
    monkeypatch.setattr(loop, "AT_ONCE", 3)
    second = Controller(record, engine, "b")
    behind = 0
    while (turn := second.turn(20.0)).behind:
        assert turn.ordered == turn.written == 0
        behind += 1
    assert behind == 3
    play(second, 2000.0, since=30.0)
    assert shared_devices(engine.history) == []
    assert all(len(job(record, f"j{n}").attempts) == 1 for n in range(10))


def test_a_stage_starts_when_the_one_before_is_done_at_another_place() -> None:
    record, engine = pair(World(other=QUICK))
    record.submit([("far", replace(here("prepare"), place="elsewhere")), ("near", here("train", after=("far",)))], 0.0)
    away = MortalEngine(World(other=QUICK, place="elsewhere"))
    controller, other = Controller(record, engine, "a"), Controller(record, away, "b")
    for tick in range(5):
        controller.turn(10.0 * tick)
    assert engine.history == []
    assert job(record, "near").phase is Phase.QUEUED
    play(other, 300.0, since=50.0)
    play(controller, 600.0, since=300.0)
    assert [stay.job for stay in engine.history] == ["near"]
    assert [stay.job for stay in away.history] == ["far"]
    assert job(record, "near").phase is Phase.DONE


def test_a_job_that_changed_since_it_was_read_is_left_for_the_next_turn() -> None:
    class Wishing(MortalRecord):
        def changed(self, after, place, most):  # type: ignore[no-untyped-def]
            found = MortalRecord.changed(self, after, place, most)
            if after == 0:
                MemoryRecord.write(self, [Change(queued("j1", here()), (Wished(Wish.STOP),))], 0.0)
            return found

    record, engine = Wishing(), MortalEngine(World(other=QUICK))
    record.submit([("j1", here())], 0.0)
    controller = Controller(record, engine, "a")
    assert controller.turn(0.0).written == 0
    assert engine.history == []
    controller.turn(1.0)
    assert job(record).phase is Phase.STOPPED


def test_a_controller_whose_mark_is_lost_reads_all_jobs_anew() -> None:
    """One was called over by another and a new one came, both while nobody could say what changed."""

    class Restarting(MortalRecord):
        lost = False

        def changed(self, after, place, most):  # type: ignore[no-untyped-def]
            if self.lost and after != 0:
                raise MarkLost("x")
            return MortalRecord.changed(self, after, place, most)

    record, engine = Restarting(), MortalEngine(World(gpus=0, cpus=1, other=QUICK))
    record.submit([("j1", here())], 0.0)
    controller = Controller(record, engine, "a")
    controller.turn(0.0)
    controller.turn(1.0)
    assert job(record).phase is Phase.RUNNING
    ended = (Ended(1, Outcome.LOST), Over(Phase.FAILED, "given up"))
    MemoryRecord.write(record, [Change(job(record), ended)], 2.0)
    record.submit([("j2", here())], 2.0)
    record.lost = True
    assert controller.turn(3.0).behind
    record.lost = False
    play(controller, 200.0, since=4.0)
    assert [stay.job for stay in engine.history] == ["j1", "j2"]
    assert engine.look([], 300.0).strays == ()
    assert job(record, "j2").phase is Phase.DONE


def test_the_time_of_the_next_try_is_told() -> None:
    record, engine = pair(World(other=replace(QUICK, exits=(Exit(1, 1, attempts=frozenset({1})),))))
    record.submit([("j1", here())], 0.0)
    controller = Controller(record, engine, "a", Rules())
    for now in (0.0, 5.0):
        controller.turn(now)
    assert controller.turn(12.0).next_at == 17.0


def test_orders_that_take_long_are_spread_over_turns_so_that_the_lease_is_renewed() -> None:
    record, engine = pair(World(other=QUICK))
    record.submit([(f"j{n}", here(f"t{n}")) for n in range(10)], 0.0)
    ticks = iter(range(0, 10_000, 2))
    controller = Controller(record, engine, "a", elapsed=lambda: float(next(ticks)))
    first = controller.turn(0.0)
    assert 0 < first.ordered < 10
    assert first.behind
    assert first.written == 10  # all are decided on; what was not ordered follows again
    while controller.turn(0.0).behind:
        pass
    assert len(engine.history) == 10
    play(controller, 300.0)
    assert all(job(record, f"j{n}").phase is Phase.DONE for n in range(10))
    assert len(engine.history) == 10


class Particular(MemoryRecord):
    """Takes nothing that is said of one job, as a record does with a number that is none."""

    def write(self, changes: Sequence[Change], at: float, lease: Lease | None = None) -> list[Job | Stale]:
        if any(change.job.id == "bad" for change in changes):
            raise BadInput("An event of job 'bad' holds a value that cannot be recorded.")
        return super().write(changes, at, lease)


def test_what_the_record_does_not_take_of_one_job_does_not_stop_the_others() -> None:
    record = Particular()
    record.submit([("bad", here("bad")), ("good", here("good"))], 0.0)
    controller = Controller(record, pair(World(other=QUICK))[1], "me")
    turn = controller.turn(0.0)
    assert any("cannot be recorded" in told for told in turn.trouble)
    play(controller, 1000.0, since=10.0)
    assert job(record, "good").phase is Phase.DONE
    assert job(record, "bad").phase is Phase.QUEUED


@settings(max_examples=cases(50))
@given(st.frozensets(st.integers(1, 40), max_size=10), st.floats(20, 50), st.booleans())
def test_one_that_is_ended_at_once_is_over_soon_wherever_the_controller_dies(
    deaths: frozenset[int], at: float, stopped_before: bool
) -> None:
    """Its grace is an hour, and its program would use all of it."""
    record, engine = pair(World(other=Program(10_000, 10.0, 2, heeds=False)), deaths)
    record.submit([("j1", here(grace_s=3600.0))], 0.0)
    controller, now, born = Controller(record, engine, "c0"), 0.0, 0
    wish = [Wish.STOP, Wish.END] if stopped_before else [Wish.END]
    while now < at + 400.0 and not job(record).phase.over:
        try:
            if wish and now >= at:
                record.write([Change(job(record), (Wished(wish[0]),))], now)
                wish.pop(0)
            controller.turn(now)
        except Died:
            born += 1
            controller = Controller(record, engine, f"c{born}")
        now += 10.0
    assert job(record).phase is Phase.STOPPED
    assert not any(stay.lives for stay in engine.history)
    assert len(engine.history) <= 1


@pytest.mark.parametrize("kind", [NotAllowed, BadInput, OutsideFailed])
def test_a_job_of_which_the_record_takes_nothing_takes_nobodys_turn(kind: type[ChipwiseError]) -> None:
    class Refusing(MemoryRecord):
        def write(self, changes: Sequence[Change], moment: float, lease: Lease | None = None) -> list[Job | Stale]:
            if any(change.job.id == "odd" for change in changes):
                raise kind("not that one")
            return super().write(changes, moment, lease)

    record = Refusing()
    _, engine = pair(World(gpus=1, cpus=1, other=QUICK))
    record.submit([("odd", here())], 0.0)
    record.submit([("hers", here()), ("his", here())], 1.0)
    controller = Controller(record, engine, "a")
    assert "odd: not that one" in " ".join(controller.turn(2.0).trouble)
    play(controller, 500.0, since=3.0)
    assert [job(record, id).phase for id in ("odd", "hers", "his")] == [Phase.QUEUED, Phase.DONE, Phase.DONE]
