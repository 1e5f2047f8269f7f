"""Latency of requests that are batched as they wait, against a simulation of such a server, event by event."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from chipwise.predictor.batching import Curve

# Seconds of a pass: fixed, of each sample, and the largest batch.
SERVERS = {
    "one at a time": (0.0, 1.0, 1),
    "batches save nothing": (0.02, 1.0, 8),
    "batches save half": (0.5, 0.5, 16),
    "batches save nearly all": (1.0, 0.05, 64),
}
SHARES = (0.5, 0.9, 0.99)
FEW = ((1.0, 0.6), (3.0, 0.6))  # burstiness, load
ALL = tuple(product((1.0, 3.0, 6.0), (0.3, 0.6, 0.85)))


def curve(fixed: float, each: float, largest: int) -> Curve:
    batches = np.exp2(np.arange(np.log2(largest) + 1))
    return Curve(batches, fixed + each * batches, 1.0)


def simulated(fixed: float, each: float, largest: int, rate: float, burstiness: float, requests: int) -> list[float]:
    """The seconds that shares of the requests stay below; whoever waits when a pass ends is in the next, if there is room."""
    shape = burstiness**-2
    arrivals = np.cumsum(np.random.default_rng(7).gamma(shape, 1 / (rate * shape), requests))
    seconds, begun, now = np.empty(requests), 0, 0.0
    while begun < requests:
        now = max(now, arrivals[begun])
        end = min(int(np.searchsorted(arrivals, now, side="right")), begun + largest)
        now += fixed + each * (end - begun)
        seconds[begun:end] = now - arrivals[begun:end]
        begun = end
    return [float(np.quantile(seconds[requests // 10 :], share)) for share in SHARES]


def ratios(server: str, burstiness: float, load: float, requests: int) -> list[float]:
    passes = curve(*SERVERS[server])
    rate = load * passes.max_rate
    expected = simulated(*SERVERS[server], rate, burstiness, requests)
    return [(passes.latency(rate, share, burstiness) or 0.0) / seconds for share, seconds in zip(SHARES, expected, strict=True)]


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(("burstiness", "load"), FEW)
def test_it_is_near_the_simulation(server: str, burstiness: float, load: float) -> None:
    found = ratios(server, burstiness, load, 12_000)
    assert min(found) > 0.75, found
    assert max(found) < 1.55, found


@pytest.mark.e2e
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(("burstiness", "load"), ALL)
def test_it_is_near_a_long_simulation(server: str, burstiness: float, load: float) -> None:
    low, high = (0.82, 1.45) if burstiness == 1.0 else (0.75, 1.6)
    found = ratios(server, burstiness, load, 100_000)
    assert min(found) > low, found
    assert max(found) < high, found


def test_a_server_that_batching_does_not_help_is_never_full() -> None:
    passes = curve(0.0, 6.0, 1)
    assert passes.highest_rate({0.9: 60.0}) < 0.9 * passes.max_rate


@pytest.mark.parametrize("server", SERVERS)
def test_samples_on_a_clock_do_not_wait_for_each_other(server: str) -> None:
    fixed, each, largest = SERVERS[server]
    found = curve(fixed, each, largest)
    for load in (0.3, 0.6, 0.95):
        assert found.latency(load / (fixed + each), 0.99, burstiness=0.0) == pytest.approx(fixed + each)
