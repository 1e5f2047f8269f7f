"""Options of the test run."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from hypothesis import settings
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers

import forked_workers
from effort import LONG as LONG_RUN
from effort import cases
from pinned_day import TODAY
from tables import as_one_test

# Matrices are small: a second thread of the linear algebra takes longer to be waited for than it helps. Nobody imported it yet.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Prices age by the day: what passed yesterday must pass tomorrow. `CHIPWISE_TODAY=2027-03-01 make test` shows what rests on it.
os.environ.setdefault("CHIPWISE_TODAY", TODAY)
# Machines are noisy: a law is not broken because a neighbour was busy.
settings.register_profile("chipwise", deadline=None, max_examples=cases(100))
settings.load_profile("chipwise")
if not LONG_RUN:  # Hypothesis would read thousands of modules for constants to draw, in every worker: a tenth of all the time
    providers._get_local_constants = lambda: providers._local_constants


ALLOWED = Path(__file__).parent / "allowed_skips.txt"
SLOW = Path(__file__).parent / "e2e"
LONG = Path(__file__).parent / "long_tests.txt"
MANY = 100  # tests
OFTEN_ENOUGH = (200_000, 20, 20)  # objects until garbage is looked for: as the command sets it for itself


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; read the diff before you commit it")
    parser.addoption(
        "--no-other-skips", action="store_true", help="fail when a test is skipped for a reason that is not allowed"
    )
    parser.addoption("--forks", type=int, default=0, help="run tests in so many processes, forked after one collection")


def allowed_skips() -> list[str]:
    """Beginnings of reasons, one a line."""
    lines = ALLOWED.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def skipped_in(reporter: pytest.TerminalReporter) -> list[tuple[str, str]]:
    """Each as (test, reason)."""
    found = []
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found.append((report.nodeid, reason.removeprefix("Skipped: ")))
    return found


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What was skipped, counted by reason: a missing tool must not look like a proof."""
    reasons = [reason for _, reason in skipped_in(terminalreporter)]
    if reasons:
        terminalreporter.section("not proven here")
        for reason in sorted(set(reasons)):
            terminalreporter.line(f"{reasons.count(reason)} x {reason}")


class SkippedFiles:
    """A worker of xdist keeps to itself which files were skipped as a whole; this sends it with the worker's last words."""

    def __init__(self, last_words: dict[str, Any]) -> None:
        self.found: list[tuple[str, str, int, str]] = last_words.setdefault("skipped files", [])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped and isinstance(report.longrepr, tuple):
            self.found.append((report.nodeid, *report.longrepr))


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell that runs us in the background; some tests send interrupts
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # until all tests are collected
    gc.set_threshold(*OFTEN_ENOUGH)
    if hasattr(config, "workeroutput"):
        config.pluginmanager.register(SkippedFiles(config.workeroutput))
    if config.option.forks:
        config.pluginmanager.register(forked_workers.Parent(config.option.forks, _read_before))


def _read_before(tests: int) -> None:
    """What nearly every worker would read, where there are many tests."""
    if tests < MANY:
        return
    if not charmap.charmap_file().exists():
        forked_workers.forked(_fill_caches)
    from chipwise.perf import model as speed
    from chipwise.workload.model import registry
    from small_catalog import small_catalog

    small_catalog()
    registry.load()
    speed.packaged()
    providers._get_local_constants()


def _fill_caches() -> None:
    """In a new environment this takes seconds, and without these files every worker would do it: which characters text has, and
    the grammar of Terraform.
    """
    charmap.intervals_from_codec("utf-8")
    from hcl2 import parser

    parser.parser()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker skips the same files: each counts once, as without workers."""
    reporter = node.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.setdefault("skipped", [])
    known = {report.nodeid for report in skipped}
    for nodeid, *where in getattr(node, "workeroutput", {}).get("skipped files", []):
        if nodeid not in known:
            skipped.append(pytest.CollectReport(nodeid, "skipped", tuple(where), []))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not session.config.getoption("--no-other-skips"):
        return
    known = tuple(allowed_skips())
    for test, reason in skipped_in(reporter):
        if not reason.startswith(known):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            reporter.line(f"\nskipped, and the reason is not in {ALLOWED.name}: {test}: {reason}", red=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Who wants no slow proofs need not import them either, and who wants them alone not the hundreds of files without one."""
    if collection_path == SLOW and "not e2e" in config.option.markexpr:
        return True
    without = config.option.markexpr == "e2e" and collection_path.match("test_*.py") and not _speaks_of_proofs(collection_path)
    return True if without else None


@cache
def _speaks_of_proofs(path: Path) -> bool:
    return path.is_relative_to(SLOW) or b"e2e" in path.read_bytes()


def _worker(config: pytest.Config) -> int | None:
    """Its number; None: tests run in this process."""
    found = getattr(config, "workerinput", None)
    return int(found["workerid"].removeprefix("gw")) if found else None


def _in_workers(config: pytest.Config) -> bool:
    """Whether tests are shared among processes, of xdist or our own."""
    return _worker(config) is not None or bool(config.option.forks)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every second worker collects from the end: in a fresh copy each compiles half of the files and reads the other half."""
    report = yield
    if isinstance(collector, pytest.Directory) and report.result and (_worker(collector.config) or 0) % 2:
        report.result.reverse()
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers must agree on the order; and no proof is in a file that a run of proofs would not open."""
    for item in items:
        if not _speaks_of_proofs(item.path) and item.get_closest_marker("e2e") is not None:
            raise pytest.UsageError(f"{item.nodeid} is a slow proof by a mark of another file: name the mark e2e in its own.")
    if _worker(config) is not None:
        items.sort(key=lambda item: item.nodeid.partition("::")[0])


@cache
def long_tests() -> frozenset[str]:
    """File and function of tests that take long, and nothing of what outside parts do: `make long` runs them."""
    lines = LONG.read_text(encoding="utf-8").splitlines() if LONG.exists() else []  # a copy of some tests has none
    return frozenset(line.split()[-1] for line in lines if line.strip() and not line.startswith("#"))


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> pytest.Item | None:
    """What pytest does around each of thousands of cases takes longer than the case: workers try those of a law in one test."""
    if not name.startswith("test_") or not isinstance(obj, FunctionType) or not isinstance(collector, pytest.Module):
        return None
    if not _in_workers(collector.config) or collector.path.is_relative_to(SLOW):
        return None
    return None if f"{collector.nodeid}::{name}" in long_tests() else as_one_test(collector, name, obj)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A file of that folder that forgot its mark would otherwise run nowhere; what chance decides is run longer there."""
    if item.path.is_relative_to(SLOW):
        item.add_marker("e2e")
    if item.nodeid.partition("[")[0] in long_tests() or _on_a_database_server(item):
        item.add_marker("long")
    if _by_chance(item):
        item.add_marker("chance")


def _on_a_database_server(item: pytest.Item) -> bool:
    """A real PostgreSQL takes a tenth of the time of all tests; a record in a file keeps the same contract in every run."""
    chosen = getattr(getattr(item, "callspec", None), "params", {})
    kinds = (chosen.get(name) for name in ("url", "record"))
    return "postgres" in getattr(item, "fixturenames", ()) or "postgresql" in kinds


def _by_chance(item: pytest.Item) -> bool:
    """A law tried on drawn values, or a case that a seed makes."""
    drawn = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return drawn or "seed" in getattr(getattr(item, "callspec", None), "params", ())


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: to look again and again whether they are garbage takes seconds."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """Plans that were kept for other tests are no garbage either: pytest looks five times at the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _made_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plans by each worker, deployments by one of them; and YAML is read by libyaml, ten times as fast as by Python."""
    from once_in_run import share_in
    from plans_once import plans_made_once

    if _in_workers(request.config):
        share_in(tmp_path_factory.getbasetemp().parent / "made-once")
    with plans_made_once(), patch.object(yaml, "SafeLoader", getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test that replaces a part of the program, or is a slow proof of the whole, wants plans made by what it has then."""
    from plans_once import each_plan_anew

    proof = item.get_closest_marker("e2e") is not None and item.get_closest_marker("plans_once") is None
    each_plan_anew(proof or "monkeypatch" in getattr(item, "fixturenames", ()))


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session", autouse=True)
def _no_proxy() -> Iterator[None]:
    """Servers under test are on the loopback; a developer's proxy must not stand between."""
    with pytest.MonkeyPatch.context() as environment:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            environment.delenv(name, raising=False)
            environment.delenv(name.lower(), raising=False)
        yield
