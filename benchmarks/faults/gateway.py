"""The gateway while replicas are killed, stopped and sick and it is itself restarted; and what a million requests leave behind.

python benchmarks/run.py faults/gateway [--long]

Short: 60 s at 60 requests a second, and 50,000 requests in a row. Long: 10 minutes at 200 a second, and 1,000,000. Replicas are
stand-ins that are real processes (`tests/support/token_server.py`); one at a time is in trouble. Requests that were cut in the
middle of their answer are told so and counted; any other error is a lost request.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from figure import ROOT, Figure

sys.path.insert(0, str(ROOT / "tests" / "support"))

from gateway_storm import CUT, leaks, storm

ALONE_S = 0.0625  # a stream of the stand-in that nothing disturbs: prefill and ten tokens


def figures(long: bool) -> Iterator[Figure]:
    per_s, duration_s, requests = (200.0, 600.0, 1_000_000) if long else (60.0, 60.0, 50_000)
    with tempfile.TemporaryDirectory() as folder:
        seen = storm(Path(folder), per_s, duration_s)
    lost = sum(count for kind, count in seen.errors.items() if kind != CUT)
    yield Figure("gateway_storm_requests", float(seen.requests), "requests", {})
    yield Figure("gateway_storm_troubles", float(seen.killed + seen.stopped + seen.faults + seen.restarts), "events", {})
    yield Figure("gateway_storm_lost", float(lost), "requests", {"max": 0.0})
    yield Figure("gateway_storm_cut", float(seen.errors[CUT]), "requests", {})
    yield Figure("gateway_storm_p99_over_undisturbed", seen.p99_s / ALONE_S, "times", {"max": 50.0})
    left = leaks(requests, per_s=1000.0)
    yield Figure("gateway_leak_requests", float(left.requests), "requests", {})
    yield Figure("gateway_leak_failed", float(left.failed), "requests", {"max": 0.0})
    yield Figure("gateway_leak_memory", left.grown_bytes / 1e6, "MB", {"max": 4.0})
    yield Figure("gateway_leak_sockets", float(left.sockets), "sockets", {"max": 0.0})
