"""`chipwise load` against a stand-in of a model server that runs in a thread."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chipwise.serving.load_request import sent_requests
from chipwise.serving.load_values import LoadRequest
from chipwise.workload.demand import Trace, TraceFormat
from command import Chipwise
from token_server import TokenServer

WORKLOAD = """
kind: serve
name: chat
model: llama-3.1-8b
arrival: {rate: 60 req/s, burstiness: 1.5}
input_tokens: {mean: 40, p95: 90}
output_tokens: 5
goals: {ttft: {p95: 2s}, tpot: {p95: 1s}}
"""


@contextmanager
def serving(server: TokenServer) -> Iterator[str]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        port = asyncio.run_coroutine_threadsafe(server.start(), loop).result(5.0)
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(server.stop)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_a_workload_is_sent_and_held_against_its_goals_and_prediction(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(WORKLOAD)
    with serving(TokenServer(tokens=5, interval_s=0.001)) as url:
        done = chipwise("load", str(path), "--url", url, "--for", "500ms", "--on", "h100")
        assert done.code == 0, done
        assert "The goal for p95 of first token holds in this test, but" in done.out
        assert "p95 predicted" in done.out
        assert max(map(len, done.out.splitlines())) <= 80
        view = json.loads(chipwise("load", str(path), "--url", url, "--for", "300ms", "--json", "--on", "h100").out)
    assert view["answered"] == view["requests"] > 0
    assert view["arrivals"] == "bursty"
    assert view["predicted"]["ttft"]["p95"] > 0
    assert view["measured_over_predicted"]["ttft"]["p95"] > 0


def test_the_percentile_of_the_option_wins_and_is_predicted(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(WORKLOAD.replace("p95: 2s", "p99: 2s").replace("p95: 1s", "p90: 1s"))
    with serving(TokenServer(tokens=5, interval_s=0.001)) as url:
        words = ("load", str(path), "--url", url, "--for", "300ms", "--on", "h100")
        shown = chipwise(*words, "--percentile", "97").out
        view = json.loads(chipwise(*words, "--json").out)
    assert "p97 predicted" in shown
    assert all(not line.rstrip().endswith(" -") for line in shown.splitlines())
    assert {part for part in shown.split() if part.startswith("p9")} == {"p90", "p95", "p99", "p97"}
    assert "p97 of per token" in shown
    assert view["percentile"] == "p99"
    assert view["measured_over_predicted"]["tpot"]["p99"] > 0


def test_a_failed_request_counts_against_the_goals_and_words_fit_what_was_asked(chipwise: Chipwise) -> None:
    server = TokenServer(tokens=2)
    server.fails_each = 5
    with serving(server) as url:
        done = chipwise("load", url, "--rate", "400", "--for", "600ms", "--ttft", "2s", "--json")
        [goal] = json.loads(done.out)["goals"]
        assert (goal["holds"], goal["sure"]) == (False, True)
        assert goal["kept_share"] == pytest.approx(0.8, abs=0.01)
        server.fails_each = 0
        assert "goals" not in chipwise("load", url, "--rate", "40", "--for", "200ms").out


def test_a_missed_goal_and_failed_requests_exit_with_1(chipwise: Chipwise) -> None:
    server = TokenServer(prefill_s=0.05)
    with serving(server) as url:
        done = chipwise("load", url, "--rate", "40", "--for", "200ms", "--ttft", "1ms")
        assert done.code == 1
        assert "is missed" in done.out
        server.faults.refuse_status = 429
        done = chipwise("load", url, "--rate", "40", "--for", "200ms", "--no-stream")
        assert done.code == 1
        assert "status 429" in done.out


def test_a_trace_is_replayed_with_its_lengths(chipwise: Chipwise, tmp_path: Path) -> None:
    trace = tmp_path / "arrivals.csv"
    trace.write_text("arrival,input_tokens,output_tokens\n10,3,2\n12,4,2\n11,5,2\n")
    server = TokenServer(tokens=2)
    server.seen.keeps = True
    with serving(server) as url:
        done = chipwise("load", url, "--trace", str(trace), "--speed", "20", "--json")
        cut = chipwise("load", url, "--trace", str(trace), "--speed", "20", "--for", "80ms")
    view = json.loads(done.out)
    assert (view["answered"], view["seconds"]) == (3, 0.1)
    assert "for 0.05 s" in cut.out
    sent = [json.loads(body)["messages"][0]["content"] for body in server.seen.bodies]
    assert [len(text.split()) for text in sent] == [3, 5, 4, 3, 5]


def test_without_an_end_the_whole_trace_is_sent(tmp_path: Path) -> None:
    trace = tmp_path / "arrivals.csv"
    trace.write_text("arrival,input_tokens,output_tokens\n0,3,2\n7200,4,2\n")
    request = LoadRequest("http://127.0.0.1:9", trace=Trace(path=str(trace), format=TraceFormat.CSV))
    due, _, seconds = sent_requests(request)
    assert due.tolist() == [0.0, 7200.0]
    assert seconds == 7200.0


def test_a_search_ends_with_the_highest_rate_that_holds(chipwise: Chipwise) -> None:
    with serving(TokenServer(prefill_s=0.02)) as url:
        options = ("--rate", "20", "--for", "100ms", "--ttft", "1ms", "--search", "--json")
        view = json.loads(chipwise("load", url, *options).out)
    assert view["within_goals"] is False
    assert len(view["trials"]) == 12
    assert all(trial["within_goals"] is False for trial in view["trials"])
    assert view["highest_rate_per_s"] == [None, pytest.approx(20.0 / 2**11)]


def test_a_highest_rate_comes_with_the_next_that_failed_and_with_its_doubt(chipwise: Chipwise) -> None:
    with serving(TokenServer(tokens=1, prefill_s=0.02)) as url:
        options = ("--connections", "1", "--arrivals", "constant", "--rate", "20", "--for", "300ms")
        out = chipwise("load", url, *options, "--ttft", "45ms", "--search").out
    assert "requests/s kept the goals in too few requests to be sure;" in out
    assert "requests/s do not." in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ftp://x",), "is no address"),
        (("http://127.0.0.1:99999",), "is no address"),
        (("http://127.0.0.1:9", "--on", "h100"), "needs a workload"),
        (("http://127.0.0.1:9", "--url", "http://127.0.0.1:8"), "two addresses"),
        (("http://127.0.0.1:9", "--search"), "needs goals"),
        (("http://127.0.0.1:9", "--key-variable", "NOT_THERE"), "holds no API key"),
        (("http://127.0.0.1:9", "--trace", "nowhere.csv"), "cannot be read"),
        (("examples/train/workload.yaml",), "has no requests"),
    ],
)
def test_what_cannot_be_sent_says_why(chipwise: Chipwise, words: tuple[str, ...], message: str) -> None:
    done = chipwise("load", *words)
    assert done.code == 2, done
    assert message in done.err


def test_a_service_that_is_not_there_is_named(chipwise: Chipwise) -> None:
    done = chipwise("load", "http://127.0.0.1:9", "--for", "100ms", "--rate", "20")
    assert done.code == 3
    assert "Nothing answers" in done.err


def test_a_search_is_written_as_a_page_with_latency_against_the_rate(chipwise: Chipwise, tmp_path: Path) -> None:
    """Two trials at least: one that keeps a goal which any answer keeps, and one that none does would end at once."""
    page = tmp_path / "load.html"
    with serving(TokenServer(tokens=3, interval_s=0.001)) as url:
        words = ("load", url, "--search", "--rate", "400", "--for", "200ms", "--output", "3", "--html", str(page))
        done = chipwise(*words, "--ttft", "20ms", "--connections", "8")
        assert "Written: " in done.err
        written = page.read_text()
        for title in (
            "First token against the rate",
            "Rates that were tried",
            "Percentiles",
            "The dashed line is the goal, 20 ms.",
        ):
            assert title in written
        assert "<script src" not in written
        refused = chipwise(*words, "--ttft", "20ms")
    assert refused.code == 2
    assert "--force" in refused.err


def test_one_test_has_a_page_without_curves(chipwise: Chipwise, tmp_path: Path) -> None:
    path, page = tmp_path / "workload.yaml", tmp_path / "load.html"
    path.write_text(WORKLOAD)
    with serving(TokenServer(tokens=5, interval_s=0.001)) as url:
        chipwise("load", str(path), "--url", url, "--for", "300ms", "--on", "h100", "--html", str(page))
    written = page.read_text()
    assert "against the rate" not in written
    assert "p95 predicted" in written
    assert "p95 of first token" in written
