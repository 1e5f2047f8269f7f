"""Recorded arrivals as a planner needs them: rates over time, how bursty they are, and how long requests are.

The file is read once, row by row; what is kept grows with the minutes that have arrivals, not with the rows. A file that cannot
be read is refused with its name, its line and what to do.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from chipwise.errors import BadInput
from chipwise.files.handed import opened
from chipwise.text import plural
from chipwise.units import DAY, HOUR
from chipwise.workload.demand import Trace, TraceFormat

Floats = NDArray[np.float64]
WINDOW_S = 60.0  # in which arrivals are counted
MOST_ROWS = 5_000_000
LONGEST_LINE = 4096  # characters; three columns need fifty
LONGEST_SPAN_S = 400 * DAY
SHORTEST_SPAN_S = 1.0  # below, a rate says nothing
LATEST_S = 1e11  # since 1970: the year 5138. Beyond, it is milliseconds that somebody wrote
MOST_TOKENS = 1e8
MOST_PAIRS = 20_000  # of prompt and answer that are kept to tell how sizes are spread
_COLUMNS = {
    TraceFormat.CSV: ("arrival", "input_tokens", "output_tokens"),
    TraceFormat.AZURE_LLM: ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
}


@dataclass(frozen=True, slots=True)
class Lengths:
    mean: float
    longest: float


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """`rates` are requests per second of equal steps, in order of time."""

    rates: Floats
    step_s: float
    burstiness: float
    requests: int
    span_s: float
    input_tokens: Lengths | None  # None: not recorded
    output_tokens: Lengths | None
    cut: bool  # only the first MOST_ROWS rows were read
    pairs: Floats  # prompt and answer of requests, evenly thinned to MOST_PAIRS at most; none where one is not recorded

    @property
    def mean(self) -> float:
        return float(self.rates.mean())


class _Sum:
    """Of one column: so many values, their sum, the greatest, and some of them at even distances."""

    def __init__(self) -> None:
        self.count, self.total, self.most = 0, 0.0, 0.0
        self.kept: list[float] = []
        self.stride = 1

    def add(self, value: float) -> None:
        if self.count % self.stride == 0:
            self.kept.append(value)
            if len(self.kept) > MOST_PAIRS:
                del self.kept[1::2]
                self.stride *= 2
        self.count, self.total, self.most = self.count + 1, self.total + value, max(self.most, value)

    def lengths(self) -> Lengths | None:
        return Lengths(max(self.total / self.count, 1.0), max(self.most, 1.0)) if self.count and self.most > 0 else None


def read_trace(trace: Trace, workload_path: str) -> Recording:
    file = trace.path_from(workload_path)
    names = _COLUMNS[trace.format]
    windows: dict[int, int] = {}
    first, last, origin, rows, cut = math.inf, -math.inf, 0.0, 0, False
    sums = (_Sum(), _Sum())
    try:
        with opened(file) as stream, TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(_bounded(lines, file))
            positions = _header(next(reader, []), names, file)
            for cells in reader:
                if not cells:
                    continue
                moment = _read(cells, positions, names, sums, file, reader.line_num)
                origin = moment if not rows else origin  # windows start with the first row, so that the first one is whole
                window = math.floor((moment - origin) / WINDOW_S)
                windows[window] = windows.get(window, 0) + 1
                first, last, rows = min(first, moment), max(last, moment), rows + 1
                if rows >= MOST_ROWS:
                    cut = True
                    break
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.", remedy=_REMEDY) from error
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{file} is no text: byte {error.start:,} cannot be read.", remedy="Unpack it first (gunzip), or save it as UTF-8."
        ) from error
    except csv.Error as error:
        raise BadInput(f"{file}, line {reader.line_num + 1}: {error}.", remedy=_REMEDY) from error
    if rows < 2 or last <= first:
        problem = "has no arrivals" if not rows else "has one moment only"
        raise BadInput(f"{file} {problem}, and a rate needs two moments.", remedy=_REMEDY)
    if last - first < SHORTEST_SPAN_S:
        raise BadInput(
            f"{file} spans {last - first:.2g} seconds, too little for a rate.",
            remedy=f"Give at least {SHORTEST_SPAN_S:g} second; {names[0]} is in seconds or ISO time.",
        )
    if last - first > LONGEST_SPAN_S:
        raise BadInput(
            f"{file} spans {plural((last - first) / DAY, 'day')}, from {first:g} to {last:g} seconds.",
            remedy=f"Give at most {plural(LONGEST_SPAN_S / DAY, 'day')}; {names[0]} is in seconds or ISO time.",
        )
    rates, step_s, burstiness = _steps(windows, first - origin, last - origin, rows)
    return Recording(
        rates=rates,
        step_s=step_s,
        burstiness=burstiness,
        requests=rows,
        span_s=last - first,
        input_tokens=sums[0].lengths(),
        output_tokens=sums[1].lengths(),
        cut=cut,
        pairs=_pairs(*sums),
    )


def read_requests(trace: Trace, workload_path: str, most_rows: int) -> Floats:
    """The first requests of a trace in order of time, to be sent again: rows of seconds and of tokens, of the prompt and of the
    answer; NaN where they are not recorded."""
    file, names = trace.path_from(workload_path), _COLUMNS[trace.format]
    rows: list[tuple[float, float, float]] = []
    try:
        with opened(file) as stream, TextIOWrapper(stream, encoding="utf-8-sig", newline="") as lines:
            reader = csv.reader(_bounded(lines, file))
            positions = _header(next(reader, []), names, file)
            for cells in reader:
                if not cells:
                    continue
                sums = (_Sum(), _Sum())
                moment = _read(cells, positions, names, sums, file, reader.line_num)
                prompt, answer = (total.most if total.count else math.nan for total in sums)
                rows.append((moment, prompt, answer))
                if len(rows) >= most_rows:
                    break
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}.", remedy=_REMEDY) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{file} is no trace: {error}.", remedy=_REMEDY) from error
    if not rows:
        raise BadInput(f"{file} has no arrivals.", remedy=_REMEDY)
    table = np.array(rows, dtype=np.float64)
    return table[np.argsort(table[:, 0], kind="stable")]


def _pairs(prompts: _Sum, answers: _Sum) -> Floats:
    """Both columns were read row by row, so that what is kept of them stands side by side."""
    if prompts.count != answers.count or not (prompts.most and answers.most):
        return np.zeros((0, 2))
    return np.maximum(np.array([prompts.kept, answers.kept], dtype=np.float64).T, 1.0)


_REMEDY = (
    "A trace is a CSV file with the columns arrival (seconds or ISO time), input_tokens, output_tokens; or format: azure-llm."
)


def _bounded(lines: IO[str], file: Path) -> Iterator[str]:
    """Lines, none of which may be so long that it fills the memory."""
    number = 0
    while line := lines.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise BadInput(f"{file}, line {number} has more than {LONGEST_LINE:,} characters.", remedy=_REMEDY)
        yield line


def _header(cells: list[str], names: tuple[str, ...], file: Path) -> tuple[int | None, ...]:
    """Where the columns stand; only that of the arrival must be there."""
    header = [cell.strip() for cell in cells]
    if not header:
        raise BadInput(f"{file} is empty.", remedy=_REMEDY)
    if names[0] not in header:
        listing = ", ".join(header)[:80]
        raise BadInput(f"{file}, line 1: there is no column {names[0]} among {listing!r}.", remedy=_REMEDY)
    return tuple(header.index(name) if name in header else None for name in names)


def _read(
    cells: list[str], positions: tuple[int | None, ...], names: tuple[str, ...], sums: tuple[_Sum, _Sum], file: Path, line: int
) -> float:
    moment = 0.0
    for place, name, total in zip(positions, names, (None, *sums), strict=True):
        if place is None:
            continue
        if place >= len(cells):
            raise BadInput(
                f"{file}, line {line} is cut off: it has {len(cells)} columns and no {name}.", remedy="Complete or delete it."
            )
        text = cells[place].strip()
        try:
            value = _moment(text) if total is None else float(text)
        except (ValueError, OverflowError):
            value = math.nan
        if not (-LATEST_S <= value <= LATEST_S if total is None else 0 <= value <= MOST_TOKENS):  # refuses what is no number
            allowed = f"seconds up to {LATEST_S:.0e}, or an ISO time" if total is None else f"0 to {MOST_TOKENS:,.0f} tokens"
            raise BadInput(f"{file}, line {line}: {name} is {text[:40]!r}.", remedy=f"Allowed: {allowed}.")
        if total is None:
            moment = value
        else:
            total.add(value)
    return moment


def _moment(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        moment = datetime.fromisoformat(text[:26] if len(text) > 26 and "+" not in text and not text.endswith("Z") else text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _steps(windows: dict[int, int], first: float, last: float, rows: int) -> tuple[Floats, float, float]:
    """Rates of steps of five minutes, or of an hour where the trace is longer than two days, and the burstiness within them.

    The last step counts by the time that it covers, and not at all where that is less than half a step. A trace shorter than
    two steps is one step.
    """
    span = last - first
    step_s = 5 * WINDOW_S if span <= 2 * DAY else HOUR
    if span < 2 * step_s:
        counted = np.array([windows[key] for key in sorted(windows)], dtype=np.float64)
        widths = np.array([max(span / WINDOW_S, 1.0)])
        bursts = dispersion(counted, np.zeros(len(counted), dtype=np.intp), widths) if widths[0] >= 3 else 1.0
        return np.array([(rows - 1) / span]), span, bursts
    start = math.floor(first / WINDOW_S)
    per_step = round(step_s / WINDOW_S)
    keys = np.array(sorted(windows), dtype=np.int64)
    counts = np.array([windows[key] for key in keys.tolist()], dtype=np.float64)
    step = ((keys - start) // per_step).astype(np.intp)
    step_count = int(step[-1]) + 1
    width = np.full(step_count, float(per_step))
    width[-1] = max(last / WINDOW_S - start - (step_count - 1) * per_step, 1.0)
    width[0] -= first / WINDOW_S - start  # nothing where rows are in order; else windows began with a later row
    if width[-1] < per_step / 2:
        step_count -= 1
        counts, step, width = counts[step < step_count], step[step < step_count], width[:step_count]
    return np.bincount(step, counts, step_count) / (width * WINDOW_S), step_s, dispersion(counts, step, width)


def dispersion(counts: Floats, group: NDArray[np.intp], windows: Floats) -> float:
    """Burstiness of counts in equal windows: math.sqrt(variance / mean) within groups of them, 1 for arrivals by chance.

    `group` tells for each window that is not empty to which step it belongs, `windows` how many windows a step has.
    """
    total, square = np.bincount(group, counts, len(windows)), np.bincount(group, counts**2, len(windows))
    spread = float(np.sum(square - total**2 / windows))
    free = float(np.sum(total / windows * (windows - 1.0)))
    return math.sqrt(spread / free) if free > 0 and spread > 0 else 1.0
