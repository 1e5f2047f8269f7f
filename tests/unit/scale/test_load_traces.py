"""Loads as people hand them in: what is read, and what is said of what cannot be."""

from __future__ import annotations

import gzip
import io
import tarfile

import numpy as np
import pytest

from chipwise.errors import BadInput
from chipwise.scale.load import RequestLoad
from chipwise.scale.load_traces import read_load


def load(text: str, gaps: bool = False) -> RequestLoad:
    return read_load("load.csv", text.encode(), gaps=gaps)


def test_columns_are_detected_by_their_names() -> None:
    heading = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    read = load(heading + "2023-11-16 18:15:46.6805900,400,50\n2023-11-16 18:15:50.6805900,0,100\n")
    np.testing.assert_allclose(read.times_s, [0.0, 4.0])
    np.testing.assert_allclose(read.work, [1.2, 0.8])  # 150 and 100
    assert read.clock_s == pytest.approx(18 * 3600 + 15 * 60 + 46.68, abs=0.01)


def test_units_of_time_are_understood() -> None:
    for text in (
        "5,10,20\n7.5,10,20\n",
        "time_ms,input_tokens\n5000,10\n7500,10\n",
        "timestamp\n1700000000\n1700000002.5\n",
        "timestamp\n1700000000000\n1700000002500\n",
        "arrival_time\n2026-01-01T00:00:00Z\n2026-01-01T00:00:02.5Z\n",
        '{"timestamp": 0, "input_length": 3, "output_length": 4}\n{"timestamp": 2500, "input_length": 3, "output_length": 4}\n',
    ):
        np.testing.assert_allclose(load(text).times_s, [0.0, 2.5], atol=1e-5, err_msg=text)


def test_requests_per_interval_are_spread_over_it() -> None:
    read = load("Time (min),Requests\n" + "".join(f"{minute},600\n" for minute in range(10)))
    assert read.duration_s == 600.0
    assert read.requests == pytest.approx(6000, rel=0.1)
    assert read.times_s.max() < 600.0


def test_seconds_of_work_say_how_fast_a_replica_is() -> None:
    read = load("created_at,exec_time_seconds,prompt_length\n1,10,4\n2,30,4\n")
    assert read.mean_s == 20.0
    np.testing.assert_allclose(read.work, [0.5, 1.5])


def test_rates_of_clients_are_summed() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for client, rate in enumerate((2, 3)):
            rows = "".join(f"{600 * window},{rate},1.5,Gamma,0,0\n" for window in range(3)).encode()
            member = tarfile.TarInfo(f"chunk-{client}-trace.csv")
            member.size = len(rows)
            archive.addfile(member, io.BytesIO(rows))
    read = read_load("rates.tar.gz", gzip.compress(packed.getvalue()))
    assert read.duration_s == 1800.0
    assert read.mean_per_s == pytest.approx(5.0, rel=0.1)
    by_second = np.bincount(read.times_s.astype(int), weights=read.counts, minlength=1800)
    assert by_second.var() / by_second.mean() == pytest.approx(2.25, rel=0.25)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("timestamp\n", "has a heading and no requests"),
        ("timestamp\n5\n", "has no two requests at different times"),
        ("timestamp\n5\n3\n", "row 2 is earlier than the row before it"),
        ("timestamp\n-5\n3\n", "line 2: time is -5"),
        ("timestamp\n5\nsoon\n", "line 3: time is no number"),
        ("timestamp,output_tokens\n1,5\n2,-3\n", "line 3: output_tokens is -3"),
        ("timestamp,output_tokens\n1,5\n2\n", "line 3 has 1 columns"),
        ("timestamp\n2026-01-01T00:00:00Z\n2026-01-01T01:00:00+02:00\n", "line 3 has the time zone +02:00, and the first Z"),
        ("timestamp\n2026-01-01T00:00:00Z\n2026-01-01T01:00:00\n", "line 3 has the time zone none"),
        ("timestamp\nyesterday\ntoday\n", "a time is not understood"),
        ("timestamp\n0\n1\n2\n9000\n", "after row 3 nothing comes for 8,998 s, 100% of the whole trace"),
        ("time,requests\n0,4\n60,4\n120,4\n240,4\n", "rows are 60 s apart, but after row 3 follow 120 s"),
        ("time,requests\n0,0\n60,0\n120,0\n", "has no requests"),
        ("size,weight\n1,2\n", "which are no load"),
        ("timestamp,value\n1,2\n3,4\n", "which are no load"),
        ('{"timestamp": 1}\n', "is not JSON lines"),
        ('{"timestamp": 1' + "0" * 400 + ', "input_length": 1, "output_length": 1}\n', "is not JSON lines"),
        ("timestamp\n0\n1e300\n", "covers more than 366 days"),
        ("time,requests\n0,4\n60,1e308\n", "line 3: requests is 1e+308"),
        ("timestamp," + "x" * 140_000 + "\n0,1\n", "is no table: field larger"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_file_is_said(text: str, sentence: str) -> None:
    with pytest.raises(BadInput) as raised:
        load(text)
    assert sentence in str(raised.value)


def test_a_pause_that_is_meant_is_accepted() -> None:
    assert load("timestamp\n0\n1\n2\n9000\n", gaps=True).duration_s == 9000.0
