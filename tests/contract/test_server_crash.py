"""A PostgreSQL server that crashes gives out numbers of transactions again whose end it had not written to its disk: what was
read or written under such a number before says nothing about the one that has it now."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.runner.events import Told
from chipwise.runner.job import Job, Spec
from chipwise.runner.record import Change, MarkLost, Record, Wanted
from cutting_proxy import Proxy, cutting
from patience import deadline
from postgres_server import MISSING, Server, programs, running

psycopg = pytest.importorskip("psycopg")
SPEC = Spec(("true",), "a", place="here")


@pytest.fixture
def server() -> Iterator[Server]:
    """Its own, since it crashes. What nobody waits for stays in its memory for long."""
    found = programs()
    if found is None:
        pytest.skip(MISSING)
    with running(found, "wal_writer_delay=10s") as one:
        yield one


def _crash(server: Server) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGQUIT)
    server.process.wait(20)
    server.start()


def _lose_a_session(server: Server) -> None:
    """As the out-of-memory killer does: the server begins anew, and its first process goes on."""
    with psycopg.connect(server.url("postgres")) as victim:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
    late = deadline(30)
    while time.monotonic() < late:
        try:
            psycopg.connect(server.url("postgres")).close()
            return
        except psycopg.OperationalError:
            time.sleep(0.05)


def _read_all(record: Record, mark: int | str) -> tuple[set[str], int | str]:
    ids: set[str] = set()
    while True:
        jobs, mark = record.changed(mark, "here", 2)
        ids |= {job.id for job in jobs}
        if len(jobs) < 2:
            return ids, mark


@pytest.mark.parametrize("crash", [_crash, _lose_a_session])
def test_a_reader_misses_nothing_when_numbers_are_given_out_again(server: Server, crash: object) -> None:
    reader, writer = connect(server.url("postgres")), connect(server.url("postgres"))
    _, mark = _read_all(reader, 0)
    writer.submit([("before", SPEC)], 1.0)
    with psycopg.connect(server.url("postgres")) as other:
        for _ in range(300):
            other.execute("SELECT pg_current_xact_id()")
            other.rollback()
    seen, mark = _read_all(reader, mark)
    assert seen == {"before"}
    assert callable(crash)
    crash(server)
    later = {f"after{number}" for number in range(5)}
    for id in sorted(later):
        writer.submit([(id, SPEC)], 1.0)
    with pytest.raises(MarkLost):
        _read_all(reader, mark)
    seen, mark = _read_all(reader, 0)
    assert seen == {"before", *later}
    writer.submit([("last", SPEC)], 1.0)
    assert _read_all(reader, mark)[0] == {"last"}
    reader.close()
    writer.close()


def test_a_reader_whose_connection_was_cut_reads_all_anew(server: Server) -> None:
    """It may have been another server that took over, with fewer transactions than the first."""
    with cutting(server.port, b"never said") as proxy:
        reader = connect(server.url("postgres", port=proxy.port))
        reader.submit([("one", SPEC)], 1.0)
        _, mark = _read_all(reader, 0)
        proxy.cut_all()
        with pytest.raises(MarkLost):
            _read_all(reader, mark)
        assert _read_all(reader, 0)[0] == {"one"}
        reader.close()


def test_a_write_that_a_crash_undid_is_done_again_whoever_has_its_number(server: Server) -> None:
    others = connect(server.url("postgres"))
    [job] = others.submit([("job", SPEC)], 1.0)
    with cutting(server.port, b"COMMIT\0") as proxy:
        proxy.hears = False
        record = connect(server.url("postgres", port=proxy.port))
        assert record.job("job") == job  # over a connection that is open when it is cut

        submitted: list[Job] = []
        _while_it_crashes(server, proxy, others, "a", lambda: submitted.extend(record.submit([("new", SPEC)], 1.0)))
        assert [one.id for one in submitted] == ["new"]
        assert others.job("new") == submitted[0]

        record.rows(Wanted())
        answers: list[object] = []
        _while_it_crashes(server, proxy, others, "b", lambda: answers.extend(record.write([Change(job, (Told(0, "x"),))], 2.0)))
        assert isinstance(answers[0], Job)
        assert others.job("job") == answers[0]
        assert len(others.events("job")) == 2
        record.close()
    others.close()


def _while_it_crashes(server: Server, proxy: Proxy, others: Record, name: str, work: object) -> None:
    """The commit of `work` is not heard, and after the crash others are the first to write."""
    proxy.made, proxy.cuts, proxy.refuses = 0, 1, True
    assert callable(work)
    worker = threading.Thread(target=work)
    worker.start()
    late = deadline(30)
    while not proxy.made and time.monotonic() < late:
        time.sleep(0.005)
    _crash(server)
    for number in range(3):
        others.submit([(f"{name}{number}", SPEC)], 1.0)
    proxy.refuses = False
    worker.join(60)
    assert not worker.is_alive()
