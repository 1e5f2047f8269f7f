"""Tests in several processes that are forked after one collection: importing and collecting takes as long as many tests do.

`pytest --forks 3`: the first process collects, hands out the tests of one file at a time and prints what workers report. When a
worker dies, the test that it ran has failed, and another takes its place. Each worker makes its own fixtures of the session.

In a fresh copy to collect means to compile all tests, one after another. A second process then collects from the end: the first
need only read what the second has compiled, which ends with the collection.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn

import pytest

PATIENCE_S = 10.0  # for workers that are to end
FEW = 20  # files that are compiled as fast as a process is forked


class Parent:
    """The plugin of the process that collected."""

    def __init__(self, count: int, prepare: Callable[[int], object]) -> None:
        self.count, self.prepare = count, prepare
        self.compiles: int | None = None  # a process that compiles tests from the end
        self.backwards = False  # in that process

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> Generator[None, object, object]:
        if not session.config.option.collectonly and _many_to_compile(session.config):
            self.compiles = forked(lambda: self.compile_from_the_end(session))
        try:
            return (yield)
        finally:
            if self.compiles is not None:
                os.kill(self.compiles, signal.SIGKILL)  # compiled files are written whole or not at all
                os.waitpid(self.compiles, 0)

    def compile_from_the_end(self, session: pytest.Session) -> None:
        self.backwards = True
        session.perform_collect()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if self.backwards and isinstance(collector, pytest.Directory) and report.result:
            report.result.reverse()
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        options = session.config.option
        if options.collectonly or options.usepdb or (session.testsfailed and not options.continue_on_collection_errors):
            return None  # pytest's own loop knows what to do
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.showfspath = False  # tests of several files are reported in turn
        self.prepare(len(session.items))
        run = Run(session)
        interrupt = True
        try:
            run.through(self.count)
        except KeyboardInterrupt:
            interrupt = False  # who typed it sent it to the workers too
            raise
        finally:
            run.end(interrupt)
        return True


def _many_to_compile(config: pytest.Config) -> bool:
    """Whether most tests were never compiled here. Each that was has a file of pytest's beside those of Python."""
    if sys.dont_write_bytecode:
        return False
    folders = [config.rootpath / path for path in config.getini("testpaths")]
    sources = sum(1 for folder in folders for _ in folder.rglob("test_*.py"))
    compiled = sum(1 for folder in folders for _ in folder.rglob(f"__pycache__/test_*-pytest-{pytest.__version__}.pyc"))
    return sources - compiled > max(FEW, sources // 2)


def forked(work: Callable[[], object]) -> int:
    """A process that does it without a word."""
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        return pid
    try:
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        work()
    finally:
        os._exit(0)


class Worker:
    """One of the processes, as the first one knows it."""

    def __init__(self, pid: int, pipe: Connection[Any, Any]) -> None:
        self.pid, self.pipe = pid, pipe
        self.given: deque[int] = deque()  # numbers of tests; the first may have begun
        self.begun = False

    def message(self) -> tuple[Any, ...]:
        try:
            message: tuple[Any, ...] = self.pipe.recv()
        except (EOFError, ConnectionError):
            return ("gone",)
        return message


class Run:
    def __init__(self, session: pytest.Session) -> None:
        self.session, self.hook = session, session.config.hook
        files: dict[Path, deque[int]] = {}
        for index, item in enumerate(session.items):
            files.setdefault(item.path, deque()).append(index)
        self.waiting = deque(files.values())  # in the order of collection
        self.workers: list[Worker] = []
        self.folder: Path = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        self.started = 0

    def through(self, count: int) -> None:
        for _ in range(min(count, len(self.waiting))):
            self.start()
        while self.workers:
            by_pipe = {worker.pipe: worker for worker in self.workers}
            for pipe in wait(list(by_pipe)):
                self.listen(by_pipe[pipe])  # type: ignore[index]
                if self.session.shouldfail:
                    raise self.session.Failed(self.session.shouldfail)
                if self.session.shouldstop:
                    raise self.session.Interrupted(self.session.shouldstop)

    def start(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        ours, theirs = Pipe()
        number, self.started = self.started, self.started + 1
        pid = os.fork()
        if pid == 0:
            for pipe in (ours, *(worker.pipe for worker in self.workers)):
                pipe.close()  # or a worker would not notice that the first process is gone
            _work(self.session, theirs, self.folder / f"worker-{number}")
        theirs.close()
        self.workers.append(Worker(pid, ours))

    def listen(self, worker: Worker) -> None:
        kind, *content = worker.message()
        match kind:
            case "gone":
                self.bury(worker)
            case "more":
                worker.given = self.waiting.popleft() if self.waiting else deque()
                worker.pipe.send(list(worker.given))
            case "begin":
                worker.begun = True
            case "report":
                config = self.session.config
                report = self.hook.pytest_report_from_serializable(config=config, data=content[0])
                self.hook.pytest_runtest_logreport(report=report)
            case "end":
                item = self.session.items[worker.given.popleft()]
                worker.begun = False
                self.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
            case "warning":
                self.hook.pytest_warning_recorded.call_historic(kwargs=content[0])
            case "stop":
                self.session.shouldstop = content[0]

    def bury(self, worker: Worker) -> None:
        worker.pipe.close()
        self.workers.remove(worker)
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.given and code == 0:
            return
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if not worker.begun:
            raise RuntimeError(f"a worker ended with {how} between two tests")
        item = self.session.items[worker.given.popleft()]
        text = f"The worker that ran this test ended with {how}."
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", text, "call")
        self.hook.pytest_runtest_logreport(report=report)
        if worker.given:
            self.waiting.appendleft(worker.given)
        if self.waiting:
            self.start()

    def end(self, interrupt: bool) -> None:
        """However the run ended, no worker is left, nor what it made."""
        for worker in self.workers if interrupt else ():
            os.kill(worker.pid, signal.SIGINT)
        until = monotonic() + PATIENCE_S
        for worker in self.workers:
            while os.waitpid(worker.pid, os.WNOHANG)[0] == 0:
                if monotonic() > until:
                    os.kill(worker.pid, signal.SIGKILL)
                sleep(0.02)


class Reports:
    """The plugin of a worker: what pytest would print goes to the first process."""

    def __init__(self, config: pytest.Config, pipe: Connection[Any, Any]) -> None:
        self.config, self.pipe = config, pipe

    def pytest_runtest_logstart(self) -> None:
        self.pipe.send(("begin",))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.pipe.send(("report", data))

    def pytest_runtest_logfinish(self) -> None:
        self.pipe.send(("end",))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any) -> None:
        said = warning_message
        known = (
            said.category if said.category.__module__ == "builtins" else UserWarning
        )  # others may not be found by their name
        plain = warnings.WarningMessage(known(str(said.message)), known, said.filename, said.lineno)
        self.pipe.send(("warning", {"warning_message": plain, "when": when, "nodeid": nodeid, "location": location}))


class Later(pytest.Item):
    """Whatever a worker gets after the last test of a file: what was made for the file ends, and what is for the run stays."""

    def runtest(self) -> None:
        raise NotImplementedError


def _work(session: pytest.Session, pipe: Connection[Any, Any], folder: Path) -> NoReturn:
    """All that a worker does."""
    code = 1
    atexit._clear()  # those of the first process are its own
    try:
        _separate(session.config, folder)
        session.config.pluginmanager.register(Reports(session.config, pipe))
        _run_files(session, pipe)
        code = 0
    except (KeyboardInterrupt, pytest.exit.Exception) as why:
        with suppress(OSError):  # nobody may listen any more
            pipe.send(("stop", str(why) or type(why).__name__))
    except BaseException:  # also where the first process is gone
        traceback.print_exc()
    finally:
        with suppress(Exception):
            session._setupstate.teardown_exact(None)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _separate(config: pytest.Config, folder: Path) -> None:
    """A worker prints nothing, and shares no files with the others."""
    config.pluginmanager.unregister(name="terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    folder.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]


def _run_files(session: pytest.Session, pipe: Connection[Any, Any]) -> None:
    later = Later.from_parent(session, name="later")
    last: pytest.Item | None = None
    while True:
        pipe.send(("more",))
        items: Sequence[pytest.Item] = [session.items[index] for index in pipe.recv()]
        if not items:
            break
        for item, following in zip(items, [*items[1:], later], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            last = item
            if session.shouldfail or session.shouldstop:  # the first process knows
                return
    if last is not None:
        _end_of_run(session, last, pipe)


def _end_of_run(session: pytest.Session, last: pytest.Item, pipe: Connection[Any, Any]) -> None:
    """What was made for the run ends; what goes wrong then is reported with the last test, as pytest does."""
    capture = session.config.pluginmanager.get_plugin("capturemanager")
    assert capture is not None
    with capture.item_capture("teardown", last):
        call = pytest.CallInfo.from_call(lambda: session._setupstate.teardown_exact(None), "teardown")
    if call.excinfo is not None:
        report = session.config.hook.pytest_runtest_makereport(item=last, call=call)
        session.config.hook.pytest_runtest_logreport(report=report)
