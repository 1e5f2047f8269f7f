"""Loads from the bytes of files: requests with their times, requests per interval, or rates of clients.

Read are CSV (a time, and as far as there are any: tokens in and out, seconds of work, or how many requests came in that
interval; a heading names them, without one they stand in this order), JSON lines in the format of Mooncake (milliseconds), and
archives of client rates in that of ServeGen (600 s windows with the variation of gaps). Each may be packed with gzip.
"""

from __future__ import annotations

import csv
import io
import json
import re
import tarfile
from collections.abc import Sequence

import numpy as np

from chipwise.errors import BadInput
from chipwise.scale.load import Floats, RequestLoad, load_of
from chipwise.scale.simulator.synthetic_load import of_rates
from chipwise.scale.traces import text_of, unpacked

INPUT_WEIGHT = 0.25  # of a token in, where one out is 1
MOST_ROWS = 20_000_000
LONGEST_S = 366 * 86_400.0  # of a trace: each second of it is a number
_MOST = 1e12  # requests of an interval, or tokens
_WINDOW_S = 600.0
_LONGEST_GAP = 0.2  # of the whole trace
_SHORTEST_GAP_S = 600.0  # pauses up to this long are no gaps
_COLUMNS = {  # by what their names contain, the first that fits
    "input": ("context", "input", "prompt"),
    "output": ("generated", "output", "completion", "answer"),
    "seconds": ("exec", "duration", "serviceseconds"),
    "count": ("requests", "count", "invocations"),
    "time": ("timestamp", "time", "arriv", "gmtcreate", "created", "date", "minute", "second"),
}
_NOT_TOKENS = ("negative", "id")  # of columns named like tokens
_FORMAT = "A load needs a column of times (timestamp), and may have input and output tokens, or requests per interval."
_ZONE = re.compile(r"(Z|[+-]\d\d:?\d\d)$")
_EPOCHS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # numbers so large count from 1970 in parts of a second


class NotALoad(BadInput):
    """A table of something else."""


def read_load(
    name: str, content: bytes, *, seed: int = 0, input_weight: float = INPUT_WEIGHT, gaps: bool = False
) -> RequestLoad:
    """`gaps`: long pauses are meant."""
    plain = unpacked(name, content)
    if plain[257:262] == b"ustar":
        return _of_clients(name, plain, seed)
    text = text_of(name, plain)
    if not text.strip():
        raise BadInput(f"{name} is empty.", remedy=_FORMAT)
    columns = _json_columns(name, text) if text.lstrip()[:1] == "{" else _csv_columns(name, text)
    times, clock_s = columns.pop("time")[0], float(columns.pop("clock")[0][0])
    _check_times(name, times, gaps)
    if "count" in columns:
        return _of_counts(name, times, columns["count"][0], clock_s, seed)
    work, mean_s, tokens = None, None, None
    if "seconds" in columns:
        work = np.maximum(columns["seconds"][0], 1e-3)
        mean_s = float(work.mean())
    elif "input" in columns or "output" in columns:
        tokens_in, tokens_out = (columns.get(key, [np.zeros(len(times))])[0] for key in ("input", "output"))
        work = np.maximum(tokens_out + input_weight * tokens_in, 1e-3)
        tokens = (tokens_in, tokens_out) if "input" in columns and "output" in columns else None
    return load_of(name, times - times[0], work=work, clock_s=clock_s, mean_s=mean_s, tokens=tokens)


Columns = dict[str, list[Floats]]


def _json_columns(name: str, text: str) -> Columns:
    try:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        table = np.array([[row["timestamp"], row["input_length"], row["output_length"]] for row in rows], np.float64)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BadInput(f"{name} is not JSON lines with timestamp, input_length and output_length.") from error
    for column in (1, 2):
        _check_numbers(name, "tokens", table[:, column], 1, _MOST)
    return {"time": [table[:, 0] / 1000.0], "clock": [np.zeros(1)], "input": [table[:, 1]], "output": [table[:, 2]]}


def _csv_columns(name: str, text: str) -> Columns:
    try:
        rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise BadInput(f"{name} is no table: {str(error)[:120]}.", remedy=_FORMAT) from error
    if len(rows) > MOST_ROWS:
        raise BadInput(f"{name} has more than {MOST_ROWS:,} rows.")
    places, first_line = _places(name, rows[0])
    rows = rows[first_line - 1 :]
    if not rows:
        raise BadInput(f"{name} has a heading and no requests.", remedy=_FORMAT)
    width = max(place for place, _ in places.values())
    short = next((line for line, row in enumerate(rows) if len(row) <= width), None)
    if short is not None:
        raise BadInput(f"{name}: line {short + first_line} has {len(rows[short])} columns, and needs {width + 1}.")
    place, heading = places.pop("time")
    times, clock_s = _times(name, [row[place].strip() for row in rows], heading, first_line)
    columns: Columns = {"time": [times], "clock": [np.array([clock_s])]}
    for key, (place, heading) in places.items():
        values = _floats([row[place].strip() or "0" for row in rows])
        _check_numbers(name, heading, values, first_line, _MOST)
        columns[key] = [values]
    return columns


def _places(name: str, heading: Sequence[str]) -> tuple[dict[str, tuple[int, str]], int]:
    """Where each column stands and what it is called; the line on which the values begin."""
    if not re.search(r"[A-Za-z_]{3}", "".join(heading)):
        return {key: (place, key) for place, key in zip(range(len(heading)), ("time", "input", "output"), strict=False)}, 1
    places: dict[str, tuple[int, str]] = {}
    for key, words in _COLUMNS.items():
        for place, cell in enumerate(heading):
            plain = re.sub(r"[^a-z]", "", cell.lower())
            used = place in {position for position, _ in places.values()}
            if not used and any(word in plain for word in words) and not any(word in plain for word in _NOT_TOKENS):
                places[key] = (place, cell.strip())
                break
    if "time" not in places or any(cell.strip().lower() == "value" for cell in heading):
        raise NotALoad(f"{name} has the columns {', '.join(heading)[:120]}, which are no load.", remedy=_FORMAT)
    return places, 2


def _times(name: str, cells: list[str], heading: str, first_line: int) -> tuple[Floats, float]:
    """In seconds, and the time of day of the first."""
    numbers = _floats(cells)
    if np.isfinite(numbers[0]):
        _check_numbers(name, "time", numbers, first_line)
        scale = next((parts for above, parts in _EPOCHS if numbers[0] > above), 1.0)
        words = re.split(r"[^a-z]+", heading.lower())
        scale = 1000.0 if {"ms", "millis", "milliseconds"} & set(words) else scale
        seconds = numbers / scale * (60.0 if {"min", "minute", "minutes"} & set(words) else 1.0)
        return seconds, float(seconds[0] % 86_400.0)
    zones = [match[0] if (match := _ZONE.search(cell)) else "" for cell in cells]
    odd_line = next((line for line, zone in enumerate(zones) if zone != zones[0]), None)
    if odd_line is not None:
        differs, usual = zones[odd_line] or "none", zones[0] or "none"
        raise BadInput(
            f"{name}: line {odd_line + first_line} has the time zone {differs}, and the first {usual}.",
            remedy="Write all times in one time zone.",
        )
    try:
        stamps = np.array([cell[: len(cell) - len(zone)] for cell, zone in zip(cells, zones, strict=True)], "datetime64[us]")
    except ValueError as error:
        raise BadInput(
            f"{name}: a time is not understood: {str(error)[:100]}.", remedy="Write 2026-01-31T12:00:00, or seconds."
        ) from error
    seconds = stamps.astype(np.int64) / 1e6
    return seconds, float(seconds[0] % 86_400.0)


def _floats(cells: list[str]) -> Floats:
    """NaN where a cell is no number."""
    try:
        return np.array(cells, np.float64)
    except ValueError:
        return np.array([_float(cell) for cell in cells])


def _float(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def _check_numbers(name: str, heading: str, values: Floats, first_line: int, most: float = np.inf) -> None:
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0.0) & (values <= most)))
    if len(wrong):
        value = "no number" if np.isnan(values[wrong[0]]) else f"{values[wrong[0]]:g}"
        allowed = "of zero or more" if np.isinf(most) else f"from zero to {most:g}"
        raise BadInput(f"{name}: line {wrong[0] + first_line}: {heading} is {value}, and must be a number {allowed}.")


def _check_times(name: str, times: Floats, gaps: bool) -> None:
    steps = np.diff(times)
    back = np.flatnonzero(steps < 0.0)
    if len(back):
        raise BadInput(f"{name}: row {back[0] + 2} is earlier than the row before it.", remedy="Sort the rows by time.")
    if not len(steps) or times[-1] <= times[0]:
        raise BadInput(f"{name} has no two requests at different times.", remedy=_FORMAT)
    if times[-1] - times[0] > LONGEST_S:
        raise BadInput(f"{name} covers more than {LONGEST_S / 86_400:g} days.", remedy="Give a part of it.")
    longest = int(np.argmax(steps))
    limit_s = max(_LONGEST_GAP * float(times[-1] - times[0]), _SHORTEST_GAP_S)
    if not gaps and steps[longest] > limit_s:
        raise BadInput(
            f"{name}: after row {longest + 1} nothing comes for {steps[longest]:,.0f} s, "
            f"{steps[longest] / (times[-1] - times[0]):.0%} of the whole trace.",
            remedy="Cut the trace there, or add --gaps where the pause is meant.",
        )


def _of_counts(name: str, times: Floats, counts: Floats, clock_s: float, seed: int) -> RequestLoad:
    """Requests of intervals, spread over their seconds by chance."""
    steps = np.diff(times)
    step_s = float(np.median(steps))
    odd = np.flatnonzero(np.abs(steps - step_s) > 0.01 * step_s)
    if len(odd):
        raise BadInput(
            f"{name}: rows are {step_s:g} s apart, but after row {odd[0] + 1} follow {steps[odd[0]]:g} s.",
            remedy="Write a row for every interval, with 0 where nothing came.",
        )
    if not counts.any():
        raise BadInput(f"{name} has no requests.")
    chance = np.random.default_rng(seed)
    cells = max(round(step_s), 1)
    drawn = chance.poisson(np.repeat(counts / cells, cells)).astype(np.float64)
    busy = np.flatnonzero(drawn)
    spread = busy.astype(np.float64) * (step_s / cells)
    return load_of(name, spread, counts=drawn[busy], duration_s=len(counts) * step_s, clock_s=clock_s)


def _of_clients(name: str, plain: bytes, seed: int) -> RequestLoad:
    """The sum of all clients; requests of a second vary as the variation of their gaps says."""
    rates: dict[float, float] = {}
    variances: dict[float, float] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                for row in csv.reader(io.TextIOWrapper(file, "utf-8")) if file is not None else ():
                    start, rate, variation = (float(cell or 0.0) for cell in row[:3])
                    rates[start] = rates.get(start, 0.0) + rate
                    variances[start] = variances.get(start, 0.0) + rate * variation**2
    except (tarfile.TarError, ValueError, OSError) as error:
        raise BadInput(f"{name} is no archive of client rates: window start, requests per second, variation.") from error
    if not any(rates.values()):
        raise BadInput(f"{name} has no requests.")
    starts = np.array(sorted(rates))
    total = np.array([rates[start] for start in starts])
    bunching = np.maximum([variances[start] / max(rates[start], 1e-9) for start in starts], 1.0)
    duration_s = float(starts[-1] - starts[0]) + _WINDOW_S
    middles = starts - starts[0] + _WINDOW_S / 2.0
    return of_rates(
        name, middles, total, bunching, np.random.default_rng(seed), duration_s=duration_s, clock_s=float(starts[0])
    )
