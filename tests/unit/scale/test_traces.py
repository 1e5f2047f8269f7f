"""Traces of spot availability: several forms of files, and one sentence for what is wrong with one."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from chipwise.errors import BadInput
from chipwise.scale.simulator.synthetic import SyntheticMarket, series
from chipwise.scale.trace_tables import NotASeries
from chipwise.scale.traces import Series, Window, cut, evaluated, read_series, read_windows

COUNTS = [0, 1, 4, 0]


def test_a_flag_per_tick_is_read_from_json_a_list_and_lines() -> None:
    documents = [
        json.dumps({"metadata": {"gap_seconds": 600}, "data": COUNTS}).encode(),
        json.dumps(COUNTS).encode(),
        b"0\n1\n4\n0\n",
        b"time,available\n0,0\n600,1\n1200,4\n1800,0\n",
    ]
    for document in [*documents, *map(gzip.compress, documents)]:
        read = read_series("trace", document, tick_s=600)
        assert read.available.tolist() == [False, True, True, False]
        assert read.tick_h == pytest.approx(1 / 6)


def test_regular_times_say_how_long_a_tick_is() -> None:
    for times in (("0", "600", "1200", "1800"), [f"2026-03-01T10:{minute:02d}:00" for minute in (0, 10, 20, 30)]):
        table = "time,available\n" + "".join(f"{time},{flag}\n" for time, flag in zip(times, COUNTS, strict=True))
        read = read_series("trace", table.encode())
        assert read.available.tolist() == [False, True, True, False]
        assert read.tick_h == pytest.approx(1 / 6)


def test_a_tick_between_irregular_times_is_available_where_every_number_in_it_is() -> None:
    table = b"2021-12-11, 10:00:00, 3\n2021-12-11, 10:12:00, 0\n2021-12-11, 10:13:00, 2\n2021-12-11, 10:40:00, 2\n"
    assert read_series("trace", table).available.tolist() == [True, False, True, True]
    assert read_series("trace", table, tick_s=720.0).available.tolist() == [True, False, True]


def test_machines_that_come_and_go_are_counted() -> None:
    moves = b"0,add,a\n600000,add,b\n1200000,remove,a\n1800000,remove,b\n3000000,add,c\n3600000,add,d\n"
    read = read_series("trace", moves)
    assert read.available.tolist() == [True, True, True, False, False, True]
    assert read.tick_h == pytest.approx(1 / 6)


def test_a_table_of_something_else_is_no_series() -> None:
    for table in (b"from,to,usd\na,b,0.08\n", b"a,b,c,d\n1,2,3,4\n", b'{"us-east-1a": [1.5, 1.6]}'):
        with pytest.raises(NotASeries):
            read_series("trace", table, tick_s=600.0)


def test_what_one_means_is_said_or_follows_from_prices() -> None:
    document = {"metadata": {"gap_seconds": 600}, "data": [0, 1]}
    assert read_series("trace", json.dumps(document).encode(), available_is=0).available.tolist() == [True, False]
    priced = json.dumps(document | {"prices": [1.0, 1.0]}).encode()
    assert read_series("trace", priced).available.tolist() == [True, False]
    assert read_series("trace", priced, available_is=1).available.tolist() == [False, True]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"[0, 1]", "how long a tick is"),
        (b"", "no ticks"),
        (b'{"metadata": {"gap_seconds": 600}}', 'no list "data"'),
        (b'{"metadata": {"gap_seconds": -1}, "data": [1]}', "above zero"),
        (b'{"metadata": {"gap_seconds": 1' + b"0" * 400 + b'}, "data": [1]}', "at most a day"),
        (b'{"metadata": {"gap_seconds": 1e308}, "data": [1]}', "at most a day"),
        (b"[0, 1" + b"0" * 400 + b"]", "tick 2 is '10000"),
        (b"[0, 1e308]", "tick 2 is '1e[+]308'"),
        (b"0\n" + b"1" * 200_000 + b"\n", "no table: field larger"),
        (b"[0, 1", "not JSON"),
        (b"2026-03-01 10:00:00,1\n2026-03-01 09:00:00,1\n", "row 2 is earlier"),
        (b"2026-03-01 10:00:00,1\n2026-03-01 10:01:00+01:00,1\n", "some times have a time zone"),
        (b"0,add,a\n9,gone,a\n", "line 2: '9,gone,a' is no time"),
        (b"0\n1\n-1\n", "tick 3 is '-1'"),
        (b"0\nspot\n", "tick 2 is 'spot'"),
        (b'[0, {"a": 1}]', "tick 2"),
        (b"\x1f\x8bnothing", "not a whole gzip file"),
        (b"\xff\xfe\x00", "not text"),
    ],
)
def test_what_is_wrong_with_a_trace_is_one_sentence(content: bytes, sentence: str) -> None:
    tick_s = None if content in (b"[0, 1]",) or b"gap" in content else 600.0
    with pytest.raises(BadInput, match=sentence):
        read_series("trace", content, tick_s=tick_s)


def test_windows_are_evenly_spaced_and_no_longer_than_the_series() -> None:
    trace = Series("trace", 1.0, np.arange(10) % 2 == 0)
    assert cut(trace, 4, 3).shape == (3, 4)
    assert cut(trace, 10, 5).shape == (1, 10)
    with pytest.raises(BadInput, match="the deadline needs 11"):
        cut(trace, 11, 1)


def test_the_evaluation_orders_its_windows_as_text() -> None:
    rows = "".join(f"us-west-2a_k80_8,{file},{file},554\n" for file in range(300))
    windows = read_windows("windows.csv", f"series,window_file,start_tick,length_ticks\n{rows}".encode())
    chosen = evaluated(windows)
    assert len(chosen) == 30
    assert chosen[:2] == [Window("us-west-2a_k80_8", 0, 554), Window("us-west-2a_k80_8", 107, 554)]
    with pytest.raises(BadInput, match="no table of series"):
        read_windows("windows.csv", b"a,b\n1,2\n")


def test_synthetic_spot_that_was_there_long_is_likely_to_stay() -> None:
    market = SyntheticMarket(spread=1.0)
    flags = series(market, count=400, ticks=400, tick_h=1 / 6, seed=1)
    assert (flags == series(market, count=400, ticks=400, tick_h=1 / 6, seed=1)).all()
    began = flags[:, 1:-25] & ~flags[:, :-26]
    young_lost = (began & ~flags[:, 2:-24]).sum() / began.sum()
    old = began & np.all([flags[:, 1 + age : flags.shape[1] - 25 + age] for age in range(24)], axis=0)
    old_lost = (old & ~flags[:, 25:-1]).sum() / old.sum()
    assert young_lost > 4 * old_lost
    with pytest.raises(BadInput, match="above zero"):
        SyntheticMarket(losses_per_hour=0.0)
