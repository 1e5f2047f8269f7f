"""What the feeds share: prices that may be believed, names of chips, reasons for what was skipped."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.adapters.wire.chips import find_chip
from chipwise.adapters.wire.options import service_address, whole_number, words
from chipwise.adapters.wire.parallel import Progress, run_parallel
from chipwise.adapters.wire.prices import spot_verdict, usable_price
from chipwise.adapters.wire.skipped import Skipped
from chipwise.catalog.offer import NEVER_WIN, Verdict
from chipwise.errors import BadInput, TryLater
from chipwise.spelling import fold
from chipwise.units import GIB

CHIP_OF = {fold(name): name for name in ("A100-40", "A100-80", "L4", "VU47P", "Cloud-AI-100")} | {"a100": "A100-40"}


@given(st.one_of(st.floats(), st.integers(), st.text(), st.none(), st.booleans(), st.lists(st.integers())))
def test_a_usable_price_is_finite_and_above_zero_whatever_comes(value: object) -> None:
    price = usable_price(value)
    assert price is None or 0 < price <= 100_000


@given(st.floats(1e-9, 1e5), st.floats(1e-9, 1e5))
def test_a_spot_price_below_one_percent_never_wins_and_each_verdict_has_a_reason(price: float, on_demand: float) -> None:
    verdict, why = spot_verdict(price, on_demand)
    assert (verdict in NEVER_WIN) == (price / on_demand < 0.01)
    assert bool(why) == (verdict is not Verdict.FINE)


def test_spot_without_an_on_demand_price_is_judged_by_itself() -> None:
    assert spot_verdict(0.00001, None)[0] is Verdict.EXCLUDE
    assert spot_verdict(0.02, None)[0] is Verdict.FINE


@pytest.mark.parametrize(
    ("name", "gib", "chip"),
    [
        ("A100", 80.0, "A100-80"),
        ("A100", 40.0, "A100-40"),
        ("A100", None, "A100-40"),
        ("A100", 160.0, None),
        ("A100-80GB", None, "A100-80"),
        ("l4", 22.35, "L4"),
        ("Virtex UltraScale+ (VU47P)", 80.0, "VU47P"),
        ("Cloud AI 100", 16.0, "Cloud-AI-100"),
        ("", None, None),
    ],
)
def test_a_chip_is_found_by_name_and_memory(name: str, gib: float | None, chip: str | None) -> None:
    assert find_chip(CHIP_OF, name, None if gib is None else gib * GIB) == chip


def test_many_skipped_rows_are_one_line_with_a_few_examples() -> None:
    skipped, other = Skipped(), Skipped()
    for number in range(10):
        skipped.note("no price", f"m{number}")
        skipped.note("no price", f"m{number}")
    other.note("no region", "x")
    skipped.add(other)
    assert skipped.lines() == ("no price: m0, m1, m2, m3 and 6 more", "no region: x")


def test_options_are_read_with_defaults_and_limits() -> None:
    assert words({"families": "p, g  trn"}, "families", ("c",)) == ("p", "g", "trn")
    assert words({}, "families", ("c",)) == ("c",)
    assert whole_number({}, "retries", 5, 1, 20) == 5
    for text in ("0", "21", "-1", "1.5", "9" * 5000, "٣٣"):
        with pytest.raises(BadInput):
            whole_number({"retries": text}, "retries", 5, 1, 20)
    assert service_address({"endpoint": "http://127.0.0.1:5000/"}, "endpoint", "https://x") == "http://127.0.0.1:5000"
    for text in ("x", "http://", "http://[::1", "http://a b"):
        with pytest.raises(BadInput):
            service_address({"endpoint": text}, "endpoint", "https://x")


def test_results_keep_the_order_of_their_keys_and_progress_counts_to_the_end() -> None:
    seen: list[tuple[int, int | None, str]] = []
    progress = Progress(lambda done, total, what: seen.append((done, total, what)))
    assert list(run_parallel(range(20), lambda n: n * n, progress, "squared")) == list(range(20))
    assert [done for done, _, _ in seen] == list(range(1, 21))
    assert seen[-1][:2] == (20, 20)


def test_the_first_failure_stops_what_has_not_begun() -> None:
    begun: list[int] = []
    gate = threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise TryLater("no")
        gate.wait(5)

    with pytest.raises(TryLater):
        run_parallel(range(100), work, Progress(lambda done, total, what: None), "x", workers=2)
    gate.set()
    assert len(begun) < 10
