"""Requests that arrive on their own, from the times that factors give: how many are in flight, and how a burst ends.

At a rate r the number in flight follows from the scaled work itself, B = r o s(B) / (1 - r p) (Little's law,
`queueing.Service.fluid`), at most the slots: below its capacity a replica answers as often as it is asked. (`serving.in_flight`
counts them before any factor.)
A burst of N is served by steps of B = min(N, slots) while others wait, and then by fewer and fewer. Where all answers have the
same length those in flight are half done on average when nobody waits any more: half an answer longer than the work, nothing
where none ever waited. Lengths that vary as by chance (exponential) forget what is done: with n in flight the next ends after
o / n steps, so that the end takes o times the sum of s(n) / n over n = 1 ... B.
Steps of other numbers of sequences are known at `GRID` numbers from one to the slots, and straight between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array, Index, cut
from chipwise.perf.inference import Serving, decode
from chipwise.perf.queueing import GRID, Service
from chipwise.perf.serving import Load, prompt_beside_s, step_s


@dataclass(frozen=True, slots=True)
class StepsByCount:
    rows: Index  # those whose requests arrive on their own
    counts: Array  # rows x GRID: sequences
    times: Mapping[str, Array]  # rows x GRID: how many times the work of a step of the sequences in flight, by kind


def steps_by_count(run: Serving, load: Load, work: Mapping[str, Array], sequences: Array) -> StepsByCount | None:
    """None where nothing arrives on its own. `work` is that of steps of `sequences`."""
    count = max(len(sequences), len(load.rate))
    rows = np.flatnonzero(np.broadcast_to((load.weights.open > 0) & ((load.rate > 0) | (load.weights.tail > 0)), (count,)))
    if not len(rows):
        return None
    busiest = np.maximum(np.minimum(load.capacity, load.requests), 1.0)
    counts = [busiest ** (at / (GRID - 1)) for at in range(GRID)]
    middle = load.input_len + load.output_len / 2
    decoded = [decode(run, number * load.beams, middle, load.checked) for number in counts]
    times = {
        name: np.stack([_rows(step[name] / np.where(work[name] > 0, work[name], np.inf), rows) for step in decoded], axis=1)
        for name in decoded[0]
    }
    return StepsByCount(rows, np.stack([_rows(number, rows) for number in counts], axis=1), times)


def settled(steps: StepsByCount | None, load: Load, sequences: Array, base: dict[str, Array]) -> tuple[Array, dict[str, Array]]:
    """The sequences in flight, and the work of a step of so many; of a burst, that of a step on average."""
    if steps is None:
        return sequences, base
    rows, count = steps.rows, max(len(sequences), len(load.rate))
    scaled = {name: _rows(base[name], rows)[:, None] * times for name, times in steps.times.items()}
    seconds = [step_s({name: values[:, at] for name, values in scaled.items()}) for at in range(GRID)]
    server = Service(
        prompt_s=_rows(prompt_beside_s(base), rows),
        batches=steps.counts,
        steps_s=np.maximum.accumulate(np.stack(seconds, axis=1), axis=1),
        prompt_tokens=_rows(load.fresh, rows),
        answer_tokens=_rows(load.out / load.accepted, rows),
        fixed_s=np.zeros(1),
        extra_prompt_s=np.zeros(1),
    )
    burst = np.broadcast_to(load.burst, (count,))[rows]
    running = np.where(burst, steps.counts[:, -1], np.maximum(server.fluid(_rows(load.rate, rows)), 1.0))
    first, alike = np.where(burst, running / _rows(load.requests, rows), 0.0), _rows(load.alike, rows)

    def put(values: Array, replaced: Array) -> Array:
        placed = np.array(np.broadcast_to(values, (count,)))
        placed[rows] = replaced
        return placed

    def step(values: Array) -> Array:
        steady = _interpolated(running, steps.counts, values)
        end = np.where(alike > 0, steady * (1.0 + (1.0 - first) / 2.0), _thinning(steps.counts, values))
        return steady + first * (end - steady)

    settled_base = {name: put(base[name], step(values)) for name, values in scaled.items()}
    return put(sequences, running), {**base, **settled_base}


def _interpolated(running: Array, counts: Array, values: Array) -> Array:
    """Straight between the known numbers of sequences, row by row."""
    gaps = np.diff(counts, axis=1)
    fraction = np.clip(running[:, None] - counts[:, :-1], 0.0, gaps) / np.maximum(gaps, 1e-12)
    return np.asarray(values[:, 0] + np.sum(fraction * np.diff(values, axis=1), axis=1))


def _thinning(counts: Array, values: Array) -> Array:
    """The sum of s(n) / n over n = 1 ... B."""
    gaps, busiest = np.diff(counts, axis=1), counts[:, -1]
    slope = np.diff(values, axis=1) / np.maximum(gaps, 1e-12)
    between = (values[:, :-1] - slope * counts[:, :-1]) * np.diff(np.log(counts), axis=1) + slope * gaps
    return np.asarray(between.sum(axis=1) + values[:, 0] * (np.euler_gamma + (1.0 - np.euler_gamma) / busiest))


def _rows(values: Array, rows: Index) -> Array:
    return np.broadcast_to(cut(values, rows), rows.shape)
