"""Streams on processors: figures that were measured, cores that add up, a path through the host."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.perf.kernels import paths, software
from chipwise.workload.kinds import Stream

TLS = Stream(name="tls", operations=("tcp-receive", "aes-256-gcm", "tcp-send"), bandwidth=1.25e9)


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("aes-256-gcm", "aes-256-gcm"),
        ("AES_256_GCM encrypt", "aes-256-gcm"),
        ("sha-256", "sha256"),
        ("gzip", "deflate"),
        ("crc32-check", "crc32"),
        ("tcp-receive", "tcp-receive"),
        ("parse-fix", None),
        ("aes", None),
        ("aes-256", None),
    ],
)
def test_an_operation_is_known_by_its_name_or_not_at_all(name: str, operation: str | None) -> None:
    found = software.find(name)
    assert (found.name if found else None) == operation


def test_every_figure_says_how_and_when_it_was_measured() -> None:
    for row in software.measured().values():
        assert row.bytes_per_s > 1e7
        assert row.call_s >= 0
        assert row.basis
        assert row.date.startswith("2026-11-")


def test_ten_gigabits_of_aes_are_a_third_of_a_core() -> None:
    flow = software.flow(TLS)
    assert isinstance(flow, software.SoftwareFlow)
    assert 0.25 < float(flow.message["aes-256-gcm"][0]) * 1.25e6 < 0.45
    assert 1.0 < software.cores_needed(TLS, flow) < 4.0


def test_an_operation_that_nobody_measured_is_named() -> None:
    work = TLS.model_copy(update={"operations": ("udp-receive", "parse-fix", "filter")})
    assert software.unknown(work) == ("parse-fix", "filter")


@given(st.floats(32, 1e5), st.floats(1.01, 10))
def test_larger_messages_take_longer_and_fewer_cores_for_the_same_bytes(size: float, more: float) -> None:
    small, large = (TLS.model_copy(update={"message_size": one}) for one in (size, size * more))
    flows = [software.flow(work) for work in (small, large)]
    assert flows[0].latency.total[0] <= flows[1].latency.total[0]
    assert software.cores_needed(small, flows[0]) >= software.cores_needed(large, flows[1]) * (1 - 1e-9)


def test_a_repeated_operation_counts_each_time() -> None:
    once, twice = (TLS.model_copy(update={"operations": ("sha256",) * n}) for n in (1, 2))
    first, second = (software.flow(work).message.total[0] for work in (once, twice))
    assert second == pytest.approx(2 * first)


def test_a_path_through_the_host_takes_tens_of_microseconds_and_is_unsure() -> None:
    latency = software.flow(TLS).latency
    assert 20e-6 < latency["host"][0] < 60e-6
    assert latency.high[0] / latency.low[0] > 3


@pytest.mark.parametrize(("percentile", "factor"), [(50, 1.0), (20, 1.0), (99, 3.0)])
def test_the_tail_of_a_host_is_a_few_times_its_median(percentile: float, factor: float) -> None:
    assert paths.tail(percentile) == pytest.approx(factor, rel=0.01)
    assert paths.tail(99.9) > paths.tail(99) > paths.tail(90) > 1
