"""The contract that every engine keeps. A new folder in `adapters/engines/` is found here by itself, and needs a harness."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from _pytest.mark.structures import ParameterSet

from chipwise.adapters import engines
from chipwise.runner.abilities import Configurable, RunsHere
from chipwise.runner.engine import Clear, End, Leave, Sight, Start, State
from chipwise.runner.events import Ended, Placed, Submitted, after, first
from chipwise.runner.job import Attempt, Job, MachinePlace, Outcome, Phase, Spec
from chipwise.runner.recovery import LEFT
from engine_harness import Harness, folder_of

NAMES = [module.name for module in pkgutil.iter_modules(engines.__path__)]
ROOT = Path(__file__).parents[2]
OVER = (State.EXITED, State.LOST, State.ABSENT)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"engines.{name}")


def able(what: str = "") -> list[ParameterSet]:
    """Engines to which this can be done here. Those whose harness needs real outside parts are proven by `make e2e`, some in a
    file of their own."""
    found = [name for name in NAMES if (folder_of() / f"{name}.py").exists() and not hasattr(_module(name), "PROVEN_IN")]
    return [
        pytest.param(name, marks=[pytest.mark.e2e] if getattr(_module(name), "E2E", False) else [])
        for name in found
        if not what or what in _module(name).CAN
    ]


@pytest.fixture(params=able())
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    harness: Harness = _module(request.param).harness(tmp_path)
    try:
        yield harness
    finally:
        harness.close()


@pytest.mark.parametrize("name", NAMES)
def test_every_engine_has_a_harness(name: str) -> None:
    assert (folder_of() / f"{name}.py").exists(), f"write tests/support/engines/{name}.py as engine_harness.py says"


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_that_is_left_out_here_is_proven_elsewhere_by_the_same_suite(name: str) -> None:
    if (elsewhere := getattr(_module(name), "PROVEN_IN", None)) is not None:
        assert Path(__file__).name in (ROOT / elsewhere).read_text()


def placed(bench: Harness, behaviour: str, id: str = "j1") -> Job:
    job = first(id, Submitted(bench.spec(behaviour)), bench.now())
    return after(job, Placed(1, bench.where), bench.now())


def see(bench: Harness, job: Job) -> Sight:
    return bench.engine.look([job], bench.now()).attempts.get((job.id, len(job.attempts)), Sight(State.ABSENT))


def until(bench: Harness, job: Job, wanted: Callable[[Sight], bool]) -> Sight:
    end = bench.now() + bench.patience_s
    while not wanted(sight := see(bench, job)):
        assert bench.now() < end, f"still {sight}"
        bench.wait(0.05 if bench.patience_s < 45 else 1.0)
    return sight


def started(bench: Harness, behaviour: str, id: str = "j1") -> Job:
    job = placed(bench, behaviour, id)
    bench.engine.do(Start(job))
    until(bench, job, lambda sight: sight.state is State.RUNNING and bench.ready(job))
    return job


def over(bench: Harness, job: Job) -> Sight:
    return until(bench, job, lambda sight: sight.state in (State.EXITED, State.LOST))


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_is_a_folder_that_says_what_it_is_and_how_to_connect(name: str) -> None:
    package = importlib.import_module(f"{engines.__name__}.{name}")
    assert list(inspect.signature(package.connect).parameters) == ["config"]
    assert package.__doc__
    assert (ROOT / package.TRAITS.page).is_file()
    assert isinstance(package, RunsHere | Configurable) is not package.TRAITS.plays


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_an_engine_knows_its_parts_by_where_they_lie(name: str) -> None:
    """So that a copy of it is another engine, and not a second door to the same."""
    for path in (Path(engines.__path__[0]) / name).rglob("*.py"):
        assert "adapters.engines" not in path.read_text(), path


@pytest.mark.parametrize("name", NAMES)
def test_what_an_engine_says_of_itself_takes_no_sdk(name: str) -> None:
    code = (
        f"import sys; from chipwise.api.running import installed; installed.traits({name!r}); installed.choices()\n"
        "print([one for one in ('pydantic', 'lightkube', 'boto3', 'botocore', 'psutil', 'httpx') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_an_engine_has_the_name_that_the_user_types_and_a_place(bench: Harness) -> None:
    assert bench.engine.name.replace("-", "_") in NAMES
    assert bench.engine.place


def test_an_engine_is_closed_and_its_jobs_do_not_notice(bench: Harness) -> None:
    """Whoever opens one closes it, without asking of which kind it is; twice does no harm."""
    job = started(bench, "long")
    other = bench.again()
    assert other.look([job], bench.now()).attempts[(job.id, 1)].state is State.RUNNING
    other.close()
    other.close()
    assert see(bench, job).state is State.RUNNING
    assert bench.lives(job) == 1


def test_a_job_of_which_only_its_id_is_left_is_seen_is_no_stray_and_can_be_ended(bench: Harness) -> None:
    """As a controller asks for one whose record is damaged: nobody knows what it was to run, or on what."""
    job = started(bench, "long")
    left = Job(
        job.id,
        Spec((), "?", job.spec.engine, job.spec.place),
        0.0,
        phase=Phase.STARTING,
        attempts=(Attempt(1, MachinePlace()),),
    )
    seen = bench.engine.look([left], bench.now())
    assert seen.attempts[(job.id, 1)].state is State.RUNNING
    assert not seen.strays

    def ended(sight: Sight) -> bool:
        bench.engine.do(End(left))
        return sight.state in OVER

    until(bench, left, ended)
    assert bench.lives(job) == 0


def test_a_job_that_was_never_started_is_absent(bench: Harness) -> None:
    assert see(bench, placed(bench, "steps")).state is State.ABSENT


def test_what_was_started_is_not_absent(bench: Harness) -> None:
    """Not even for a moment: a controller that is to stop it would take it for one that never was."""
    job = placed(bench, "long")
    bench.engine.do(Start(job))
    assert see(bench, job).state in (State.PENDING, State.RUNNING)
    assert bench.again().look([job], bench.now()).attempts[(job.id, 1)].state in (State.PENDING, State.RUNNING)


def test_what_is_started_runs_and_ends_with_its_exit_code(bench: Harness) -> None:
    job = started(bench, "steps")
    assert bench.lives(job) == 1
    sight = over(bench, job)
    assert (sight.state, sight.code) == (State.EXITED, 0)
    assert bench.lives(job) == 0
    assert sight.since is not None
    assert sight.until is not None
    assert sight.since <= sight.until <= bench.now()
    assert sight.handle


def test_a_failure_is_told_with_its_code(bench: Harness) -> None:
    job = placed(bench, "fails")
    bench.engine.do(Start(job))
    sight = over(bench, job)
    assert (sight.state, sight.code) == (State.EXITED, 3)


def test_a_command_that_does_not_exist_ends_with_127(bench: Harness) -> None:
    job = placed(bench, "missing")
    bench.engine.do(Start(job))
    assert over(bench, job).code == 127


def test_a_start_that_is_ordered_again_starts_nothing(bench: Harness) -> None:
    job = placed(bench, "long")
    for _ in range(3):
        bench.engine.do(Start(job))
    until(bench, job, lambda sight: sight.state is State.RUNNING)
    bench.again().do(Start(job))
    bench.wait(1.0)
    assert bench.lives(job) == 1


def test_a_start_of_one_that_is_over_starts_nothing(bench: Harness) -> None:
    job = started(bench, "steps")
    before = over(bench, job)
    bench.engine.do(Start(job))
    bench.wait(1.0)
    assert see(bench, job) == before
    assert bench.lives(job) == 0


def test_who_is_asked_to_leave_saves_and_goes(bench: Harness) -> None:
    job = started(bench, "long")
    bench.engine.do(Leave(job, bench.now() + 20.0, "a test"))
    bench.engine.do(Leave(job, bench.now() + 20.0, "a test"))
    sight = over(bench, job)
    assert sight.state is State.EXITED
    assert sight.code in (LEFT, 0)
    assert bench.lives(job) == 0


def test_who_heeds_nothing_is_ended_and_nothing_of_it_is_left(bench: Harness) -> None:
    job = started(bench, "deaf")
    bench.engine.do(Leave(job, bench.now() + 300.0, "a test"))
    bench.wait(1.0)
    assert see(bench, job).state is State.RUNNING
    assert bench.lives(job) == 1

    def ended(sight: Sight) -> bool:
        bench.engine.do(End(job))
        return sight.state in OVER

    until(bench, job, ended)
    assert bench.lives(job) == 0
    bench.engine.do(End(job))
    assert see(bench, job).state in OVER


def test_one_that_is_ended_before_it_was_started_never_starts(bench: Harness) -> None:
    """An order to start that was given before, and comes late, finds that it has no say any more."""
    job = placed(bench, "long")
    bench.engine.do(End(job))
    bench.engine.do(Start(job))
    bench.wait(1.0)
    assert see(bench, job).state in OVER
    assert bench.lives(job) == 0


def test_an_older_attempt_is_not_started_beside_a_newer_one(bench: Harness) -> None:
    old = placed(bench, "long")
    new = after(after(old, Ended(1, Outcome.LOST), bench.now()), Placed(2, bench.where), bench.now())
    bench.engine.do(Start(new))
    until(bench, new, lambda sight: sight.state is State.RUNNING)
    bench.engine.do(Start(old))
    bench.wait(1.0)
    assert bench.lives(old) == 0
    assert bench.lives(new) == 1


def test_orders_for_one_that_is_over_do_nothing(bench: Harness) -> None:
    job = started(bench, "steps")
    before = over(bench, job)
    bench.engine.do(Leave(job, bench.now() + 5.0, "a test"))
    bench.engine.do(End(job))
    assert see(bench, job) == before


def test_orders_for_one_that_never_was_do_nothing(bench: Harness) -> None:
    job = placed(bench, "steps")
    bench.engine.do(Leave(job, bench.now() + 5.0, "a test"))
    bench.engine.do(Clear("nothing/here"))
    assert see(bench, job).state is State.ABSENT


def test_what_is_cleared_is_not_in_the_way_and_does_not_come_back(bench: Harness) -> None:
    job = started(bench, "steps")
    handle = over(bench, job).handle
    bench.engine.do(Clear(handle))
    bench.engine.do(Clear(handle))
    assert handle not in bench.engine.look([], bench.now()).strays
    bench.engine.do(Start(job))
    bench.wait(1.0)
    assert bench.lives(job) == 0


def test_what_is_asked_for_is_what_is_told(bench: Harness) -> None:
    one, other = started(bench, "long", "one"), started(bench, "long", "other")
    seen = bench.engine.look([one], bench.now())
    assert set(seen.attempts) == {("one", 1)}
    both = bench.engine.look([one, other], bench.now())
    assert {sight.state for sight in both.attempts.values()} == {State.RUNNING}
    assert both.strays == ()


def test_another_view_of_the_place_sees_the_same(bench: Harness) -> None:
    job = started(bench, "long")
    sight = bench.again().look([job], bench.now()).attempts[(job.id, 1)]
    assert sight.state is State.RUNNING
    assert sight.since == see(bench, job).since


@pytest.mark.parametrize("bench", able("lose"), indirect=True)
def test_a_loss_is_told_when_nothing_runs_any_more(bench: Harness) -> None:
    job = started(bench, "deaf")
    bench.lose(job)
    sight = over(bench, job)
    assert sight.state is State.LOST
    assert bench.lives(job) == 0


@pytest.mark.parametrize("bench", able("notice"), indirect=True)
def test_a_notice_is_told_with_its_time(bench: Harness) -> None:
    job = started(bench, "long")
    bench.notice(job)
    sight = until(bench, job, lambda sight: sight.leave_by is not None)
    assert sight.state is State.RUNNING
    assert sight.leave_by is not None
    assert sight.leave_by > bench.now()
