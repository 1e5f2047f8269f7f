"""A feed has a time in all, whatever its server does with each answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date

import pytest

from chipwise.adapters.feeds import aws, azure, gcp
from chipwise.adapters.wire.deadline import within
from chipwise.adapters.wire.parallel import Progress, run_parallel
from chipwise.api.catalog import feeds
from chipwise.api.session.wiring import open_session
from chipwise.catalog.feed import FeedSettings, Report, Snapshot
from chipwise.catalog.machine import Machine
from chipwise.errors import NotAllowed, TryLater
from patience import deadline

LIMIT_S = 0.3


def quiet(done: int, total: int | None, what: str) -> None:
    pass


@contextmanager
def trickling() -> Iterator[str]:
    """A server that sends a little every few milliseconds and never ends, so that no time-out of a read helps."""
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{")
            while not over.wait(0.02):
                connection.sendall(b" ")

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("feed", ["aws", "azure", "gcp"])
def test_a_server_that_never_ends_an_answer_is_left_when_the_time_is_over(feed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "k")
    module = {"aws": aws, "azure": azure, "gcp": gcp}[feed]
    with trickling() as address:
        options = {"endpoint": address, "retries": "1"}
        options |= {"aws": {"pricing_endpoint": address}, "gcp": {"api_key": "k"}}.get(feed, {})
        settings = FeedSettings(
            date(2026, 11, 15), (), options, known=(Machine(provider=feed, name="m", chip=None, chips=None),)
        )
        latest = deadline(5)

        def fetch(step: Report) -> Snapshot:
            snapshot: Snapshot = module.fetch(settings, step)
            return snapshot

        with pytest.raises(TryLater, match=r"did not answer in full within 0\.3 s; nothing was changed"):
            within(LIMIT_S, feed, fetch, quiet)
        assert time.monotonic() < latest


@pytest.mark.parametrize("feed", feeds.refreshed())
def test_every_feed_that_asks_a_provider_has_half_an_hour_in_all_unless_more_is_given(
    feed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    def noted(limit_s: float, name: str, work: object, report: Report) -> Snapshot:
        limits.append(limit_s)
        raise TryLater("noted")

    monkeypatch.setattr("chipwise.adapters.wire.deadline.within", noted)
    session = open_session()
    for options in ({}, {"minutes": "2"}):
        with pytest.raises(TryLater, match="noted"):
            feeds.refresh(session, feed, (), options, quiet)
    assert limits == [1800.0, 120.0]


def test_work_that_goes_on_ends_at_its_next_step() -> None:
    steps: list[int] = []
    ended = threading.Event()

    def pages(step: Report) -> None:
        try:
            for number in range(10_000):
                steps.append(number)
                time.sleep(0.01)
                step(number, None, "page")
        finally:
            ended.set()

    with pytest.raises(TryLater):
        within(0.05, "azure", pages, quiet)
    assert ended.wait(deadline(5) - time.monotonic())
    assert len(steps) < 10_000


def test_what_comes_in_time_comes_as_it_is() -> None:
    seen: list[str] = []

    def pages(step: Report) -> int:
        step(1, 2, "a")
        return 7

    assert within(60, "azure", pages, lambda done, total, what: seen.append(what)) == 7
    assert seen == ["a"]
    with pytest.raises(NotAllowed, match="no key"):
        within(60, "gcp", _refused, quiet)


def _refused(step: Report) -> None:
    raise NotAllowed("no key")


def test_threads_that_hang_do_not_keep_the_process() -> None:
    gate = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            raise TryLater("no")
        gate.wait(deadline(10) - time.monotonic())

    with pytest.raises(TryLater):
        run_parallel(range(4), work, Progress(quiet), "x", workers=4)
    hanging = [thread for thread in threading.enumerate() if thread.name == "chipwise-feed"]
    assert all(thread.daemon for thread in hanging)
    gate.set()
