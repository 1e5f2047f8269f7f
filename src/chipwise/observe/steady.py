"""The part of a recording in which a program does what it does all day: start-up and end are cut off.

Importing, compiling and filling caches look unlike the steps that follow, in activity, power or processor use. The start is
where two levels, one before and one after, explain these signals much better than one does; the same from behind for the end. A
program with phases that repeat is explained no better by two levels, and is kept whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from chipwise.observe.readings import Floats, Track

SIGNALS = ("graphics_active", "sm_active", "busy", "power", "cpu", "cpu_wait", "disk_read", "pcie_received", "step")
POINTS = 240  # the recording is looked at as so many equal pieces
EXPLAINED = 0.5  # of the spread, which a cut must explain
STEP = 0.12  # of a signal's range over all its readings: smaller changes are none
LONGEST_START, LONGEST_END = 0.7, 0.4  # of the recording
SHORTEST_PIECES = 6
ROUNDS = 3  # importing, compiling, warming up


def window(tracks: Sequence[Mapping[str, Track]]) -> tuple[float, float]:
    """From, to, on the clock of the samples."""
    all_tracks = [track for levels in tracks for track in levels.values()]
    if not all_tracks:
        return 0.0, 0.0
    start, end = min(float(one.at_s[0]) for one in all_tracks), max(float(one.at_s[-1]) for one in all_tracks)
    signals = [levels[name] for levels in tracks for name in SIGNALS if name in levels]
    first = _first_step(tracks)
    if end <= start or not signals:
        return start, end
    edges = np.linspace(start, end, POINTS + 1)
    table = np.array([_pieces(signal, edges) for signal in signals])
    table = table[[bool(np.ptp(row) > 0) for row in table]]
    begin, stop = 0, POINTS
    for _ in range(ROUNDS):
        cut = _cut(table[:, begin:stop])
        if begin + cut > LONGEST_START * POINTS:
            break
        begin += cut
        if not cut:
            break
    for _ in range(ROUNDS):
        cut = _cut(table[:, begin:stop][:, ::-1])
        if POINTS - stop + cut > LONGEST_END * POINTS:
            break
        stop -= cut
        if not cut:
            break
    opening = max(float(edges[begin]), min(first, end)) if first is not None else float(edges[begin])
    closing = float(edges[stop])
    return (opening, closing) if closing - opening >= 0.1 * (end - start) else (float(edges[begin]), closing)


def _first_step(tracks: Sequence[Mapping[str, Track]]) -> float | None:
    """When the program first reported a finished step: what came before was start-up."""
    moved = [levels["step"].at_s[levels["step"].values > 0] for levels in tracks if "step" in levels]
    times = [float(at_s[0]) for at_s in moved if len(at_s)]
    return min(times) if times else None


def _pieces(signal: Track, edges: Floats) -> Floats:
    """The signal in every piece, as a share of its highest."""
    middles = (edges[:-1] + edges[1:]) / 2
    values = np.interp(middles, signal.at_s, signal.values)
    high = float(np.percentile(signal.values, 98))
    return np.asarray(np.clip(values / high, 0, 1.2)) if high > 0 else np.zeros(len(middles))


def _cut(table: Floats) -> int:
    """Pieces before the change of level, 0 where there is none that matters."""
    count = table.shape[1]
    if not table.size or count < 2 * SHORTEST_PIECES:
        return 0
    sums, squares = np.cumsum(table, axis=1), np.cumsum(table**2, axis=1)
    before = np.arange(1, count)
    total, total_squares = sums[:, -1:], squares[:, -1:]
    left = squares[:, :-1] - sums[:, :-1] ** 2 / before
    right = (total_squares - squares[:, :-1]) - (total - sums[:, :-1]) ** 2 / (count - before)
    single_level = total_squares[:, 0] - total[:, 0] ** 2 / count
    inside = slice(SHORTEST_PIECES // 2 - 1, count - SHORTEST_PIECES)
    spread = (left + right).sum(axis=0)[inside]
    place = int(np.argmin(spread)) + inside.start + 1
    means = sums[:, place - 1] / place, (total[:, 0] - sums[:, place - 1]) / (count - place)
    moved = np.abs(means[0] - means[1]).max() > STEP
    return place if moved and spread.min() < (1 - EXPLAINED) * single_level.sum() else 0
