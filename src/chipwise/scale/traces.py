"""Traces of spot availability from the bytes of files: one flag, or a number of instances, per tick.

Read are JSON (`{"metadata": {"gap_seconds": 600}, "data": [...]}`, or a plain list) and tables (`trace_tables`), of which the
last column counts; a first line of words is a heading. Each may be packed with gzip. What 1 means differs between
publishers: `available_is` says it, and a file that also has prices (`"prices"`) is of those in which 1 means unavailable.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.spot import Flags
from chipwise.scale.trace_tables import NotASeries, in_ticks, is_number, read_table

MOST_BYTES = 200_000_000  # of a file, unpacked
_MOST_TICKS = 10_000_000
_LONGEST_TICK_S = 86_400.0
_MOST = 1e9  # machines of a tick


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    tick_h: float
    available: Flags


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a series, by the name of its file."""

    series: str
    start: int
    ticks: int


def unpacked(name: str, content: bytes) -> bytes:
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as packed:
            plain = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BadInput(f"{name} is not a whole gzip file: {error}.") from error
    if len(plain) > MOST_BYTES:
        raise BadInput(f"{name} is larger than {MOST_BYTES // 10**6} MB when it is unpacked.")
    return plain


def read_series(name: str, content: bytes, *, tick_s: float | None = None, available_is: int | None = None) -> Series:
    """`tick_s` and `available_is` as the user says; None: as the file says, and 1 means available."""
    text = text_of(name, content)
    has_prices, times_s = False, None
    if text.lstrip()[:1] in ("{", "["):
        numbers, gap_s, has_prices = _of_json(name, text)
        tick_s = tick_s if tick_s is not None else gap_s
    else:
        table = read_table(name, text, has_tick=tick_s is not None)
        numbers, times_s = _numbers(name, table.cells), table.times_s
    if not len(numbers) and tick_s is not None:
        raise BadInput(f"{name} has no ticks.")
    inverted = available_is == 0 if available_is is not None else has_prices
    available = numbers == 0.0 if inverted else numbers > 0.0
    if times_s is not None:
        available, tick_s = in_ticks(name, times_s, available, tick_s)
    if tick_s is None:
        raise NotASeries(f"{name} does not say how long a tick is.", remedy="Add --tick, for example --tick 600s.")
    return Series(name, tick_s / 3600.0, available)


def text_of(name: str, content: bytes) -> str:
    try:
        return unpacked(name, content).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not text.", remedy="Give JSON or one number per line.") from error


def _of_json(name: str, text: str) -> tuple[np.typing.NDArray[np.float64], float | None, bool]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is not JSON: {str(error)[:120]}.") from error
    if isinstance(document, list):
        return _numbers(name, document), None, False
    data, metadata = document.get("data"), document.get("metadata")
    if not isinstance(data, list):
        raise NotASeries(f'{name} has no list "data".', remedy='Write {"metadata": {"gap_seconds": 600}, "data": [0, 1, ...]}.')
    gap = metadata.get("gap_seconds") if isinstance(metadata, Mapping) else None
    if gap is not None and not (isinstance(gap, int | float) and 0 < gap <= _LONGEST_TICK_S):
        raise BadInput(f'{name}: "gap_seconds" must be above zero and at most a day, not {str(gap)[:40]}.')
    return _numbers(name, data), gap, "prices" in document


def _numbers(name: str, values: Sequence[object]) -> np.typing.NDArray[np.float64]:
    if len(values) > _MOST_TICKS:
        raise BadInput(f"{name} has more than {_MOST_TICKS:,} ticks.")
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(1, np.nan)
    if numbers.ndim != 1 or not ((numbers >= 0) & (numbers <= _MOST)).all():
        wrong = next((place for place, value in enumerate(values) if not _counts(value)), 0)
        raise BadInput(f"{name}: tick {wrong + 1} is {str(values[wrong])[:40]!r}, and must be a number from zero to {_MOST:g}.")
    return numbers


def _counts(value: object) -> bool:
    return (
        isinstance(value, int | float | str) and len(text := str(value)) < 400 and is_number(text) and 0 <= float(text) <= _MOST
    )


def read_windows(name: str, content: bytes) -> list[tuple[str, Window]]:
    """Of a table series,window_file,start_tick,length_ticks: the number of each window's own file, and the window."""
    rows = csv.DictReader(io.StringIO(text_of(name, content)))
    try:
        return [(row["window_file"], Window(row["series"], int(row["start_tick"]), int(row["length_ticks"]))) for row in rows]
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise BadInput(f"{name} is no table of series, window_file, start_tick and length_ticks.") from error


# The public evaluation: of each of these series 30 windows, evenly spaced over the names of their files as text.
EVALUATED = (
    "us-west-2a_k80_8",
    "us-west-2b_k80_1",
    "us-west-2b_k80_8",
    "us-west-2a_v100_1",
    "us-west-2a_v100_8",
    "us-west-2b_v100_1",
)
_PER_SERIES = 30


def evaluated(windows: Sequence[tuple[str, Window]]) -> list[Window]:
    chosen = []
    for series in EVALUATED:
        by_file = {f"{file}.json": window for file, window in windows if window.series == series}
        ordered = [by_file[file] for file in sorted(by_file)]
        if ordered:
            chosen += [ordered[round(place * (len(ordered) - 1) / (_PER_SERIES - 1))] for place in range(_PER_SERIES)]
    return chosen


def cut(series: Series, ticks: int, count: int) -> Flags:
    """Windows of so many ticks, evenly spaced from the first tick to the last: window x tick."""
    length = len(series.available)
    if length < ticks:
        raise BadInput(
            f"{series.name} has {length} ticks of {series.tick_h * 3600:g} s, and the deadline needs {ticks}.",
            remedy="Set a shorter --deadline-hours, or give a longer trace.",
        )
    starts = np.unique(np.linspace(0, length - ticks, count).astype(np.int64))
    return np.stack([series.available[start : start + ticks] for start in starts])
