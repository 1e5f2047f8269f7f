"""Work of which only a run is known: no model, no operations. Chips compare by their sheets, with a wide interval."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.perf.arrays import column
from chipwise.perf.kernels.timed import TimedRun, shared
from chipwise.perf.model import CARRIED
from chipwise.predictor.ability import able_chip
from chipwise.predictor.kinds.ask import Ask, kind_of
from chipwise.predictor.kinds.goals import fewest_chips
from chipwise.predictor.kinds.kernels import kernel
from chipwise.predictor.kinds.timing import sheet_words, timed_units
from chipwise.predictor.measured_words import source_words
from chipwise.predictor.values import UnknownPrediction, WholeJob
from chipwise.text import gib, plural
from chipwise.workload.kinds import Batch, Learning, Serve
from chipwise.workload.measured import Per

if TYPE_CHECKING:
    from chipwise.perf.part import Part
    from chipwise.predictor.known import Known

USUAL_FORMAT = "bf16"
ROOM = 0.95  # of the memory of the chip that it ran on: chips of one size differ by less


def unit_counts(work: Learning | Serve | Batch) -> dict[Per, float]:
    """How many there are in the whole job, or in one request, as far as the file tells."""
    counts: dict[Per, float | None]
    match work:
        case Learning():
            samples, tokens = (None if one is None else one * work.epochs for one in (work.samples, work.tokens))
            if samples is not None and work.sequence_length is not None:
                tokens = samples * work.sequence_length
            batch = work.batch_samples or next((line.batch for line in work.measured or () if line.batch is not None), None)
            steps = samples / batch if samples is not None and batch is not None else None
            if steps is None and tokens is not None and work.batch_tokens is not None:
                steps = tokens / work.batch_tokens
            counts = {Per.JOB: 1.0, Per.EPOCH: work.epochs, Per.SAMPLE: samples, Per.TOKEN: tokens, Per.STEP: steps}
        case Batch():
            tokens = None if work.output_tokens is None else work.items * work.output_tokens.mean
            counts = {Per.JOB: 1.0, Per.SAMPLE: work.items, Per.REQUEST: work.items, Per.TOKEN: tokens}
        case Serve():
            tokens = None if work.output_tokens is None else work.output_tokens.mean
            counts = {Per.REQUEST: 1.0, Per.SAMPLE: 1.0, Per.TOKEN: tokens}
    return {per: count for per, count in counts.items() if count is not None}


def unknown_runs(known: Known, work: Learning | Serve | Batch) -> tuple[TimedRun, ...]:
    """Each line as the whole job, or one request, on its chips."""
    if isinstance(work, Serve) and work.devices:
        raise BadInput("devices: nothing tells what an unknown model needs of a small device.", remedy="Name the model.")
    return timed_units(known, work, unit_counts(work))


def format_of(work: Learning | Serve | Batch) -> str:
    return USUAL_FORMAT if work.precision is None else work.precision.value


def memory_needed(work: Learning | Serve | Batch, runs: tuple[TimedRun, ...]) -> float:
    """Bytes of a chip: as stated, else what the chip had that it ran on, for nothing tells how much of it was used."""
    stated = [line.memory for line in work.measured or () if line.memory is not None]
    return max(stated) if stated else min(ROOM * run.part.memory_bytes for run in runs)


def most_chips(work: Learning | Serve | Batch, runs: tuple[TimedRun, ...]) -> float:
    """A training's: nothing tells how it scales past the chips that it ran on. A pile and requests split by themselves."""
    if not isinstance(work, Learning):
        return inf
    return max(1.0, *(run.chips for run in runs), float(work.limits.chip_count.min or 0))


def unknown_notes(known: Known, work: Learning | Serve | Batch, runs: tuple[TimedRun, ...]) -> tuple[str, ...]:
    notes = [source_words(known, work.measured or (), work.measured_per[0])]
    if (most := most_chips(work, runs)) < inf:
        ran = max(run.chips for run in runs)
        if most > max(ran, 1.0):
            notes.append(f"How it scales past {plural(ran, 'chip')} was not measured: more are assumed to share it evenly.")
        else:
            notes.append(
                f"On {plural(most, 'chip')} at most, as it ran: a run on more in measured, or chip_count.min, allows more."
            )
    notes.append(sheet_words(runs))
    if not any(line.memory is not None for line in work.measured or ()):
        smallest = gib(min(run.part.memory_bytes for run in runs))
        notes.append(f"Only chips with {smallest}, as it ran on: measured.memory allows smaller ones.")
    return tuple(notes)


def predict_unknown(ask: Ask, work: Learning | Serve | Batch) -> UnknownPrediction:
    part: Part = ask.known.parts[able_chip(ask.known, ask.hardware, "train" if isinstance(work, Learning) else "serve").name]
    runs, chips = unknown_runs(ask.known, work), ask.chips or 1.0
    precision, needed = format_of(work), memory_needed(work, runs)
    served = isinstance(work, Serve)
    terms = shared(part, runs, precision, column(1.0 if served else chips))
    subject = "one request" if served else "the whole job"
    fields = kernel(ask, chips, terms, subject)
    in_time = (
        None if served else fewest_chips(ask, work, lambda many: shared(part, runs, precision, many), most_chips(work, runs))
    )
    notes = unknown_notes(ask.known, work, runs)
    if chips > most_chips(work, runs):
        notes = (*notes, f"{plural(chips, 'chip')} are assumed to share it evenly: that was not measured.")
    return UnknownPrediction(
        **fields,
        provenance=CARRIED,
        kind=kind_of(work),
        memory_bytes=needed,
        fits=part.memory_bytes >= needed,
        job=None if served else WholeJob(fields["time"]),
        requests_per_s=fields["time"].of(chips) if served else None,
        needs=None if served else {"chips_for_deadline": in_time},
        notes=notes,
    )
