"""A characterisation as a workload file with comments: what was measured with its interval, and what is not known, said so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from chipwise.observe.characterise.values import RUN, SECOND, STEP_WORDS, Amount, Characterisation, Network, Quantity
from chipwise.observe.sample import Missing
from chipwise.text import duration, number, size
from chipwise.units import DAY

WIDTH = 100
LEAST_PARALLEL = 0.001  # the least that a workload may say
_OPTIMIZERS = {"adam": "adamw", "adamw": "adamw", "sgd": "sgd", "adafactor": "adafactor", "lion": "lion", "muon": "muon"}


def workload_text(found: Characterisation, name: str) -> str:
    return "\n".join(_lines(found, name)) + "\n"


def _lines(found: Characterisation, name: str) -> Iterator[str]:
    yield "# Written by chipwise characterize from runs of this program. Numbers are measured or counted; what is not is said."
    yield f"# Program: {_one_line(shlex.join(found.command))}"
    yield f"# A step is {STEP_WORDS[found.step]}."
    yield f"kind: {found.kind}"
    yield f"name: {name}"
    yield ""
    yield from _amount_of_work(found)
    yield from _work_of_a_step(found)
    yield from _speed(found)
    yield ""
    yield from _remarks(found)


def _amount_of_work(found: Characterisation) -> Iterator[str]:
    if found.step == RUN:
        yield "steps: 1 # the whole run: it ended by itself"
        return
    assert isinstance(found.step_s, Amount)
    steps = found.steps
    if isinstance(steps, Missing):
        count = max(round(DAY / found.step_s.value), 1)
        comment = f"NOT KNOWN ({steps.reason}): as many as fit into a day here; set what you need"
    else:
        count, comment = max(round(steps.value), 1), steps.basis
    if found.kind == "hpc" or found.network is None:
        yield f"steps: {count} # {comment}"
    else:
        field = "samples" if found.kind == "train" else "items"
        batch = found.network.batch
        yield f"{field}: {round(count * batch)} # {count:,} steps of {number(batch)}; {comment}"


def _work_of_a_step(found: Characterisation) -> Iterator[str]:
    if found.network is not None:
        yield from _model(found.network, found)
        return
    for field, amount in (("flop_per_step", found.flop), ("bytes_per_step", found.moved)):
        if isinstance(amount, Amount):
            yield f"{field}: {amount.value:.6g} # {_interval(amount)}"
        else:
            yield f"# {field}: not known: {amount.reason}"
    if isinstance(found.intensity, Amount):
        yield f"# arithmetic intensity, FLOP per byte: {_interval(found.intensity)}"
    yield f"precision: {found.precision}"
    if isinstance(found.memory, Amount):
        yield f"working_set: {round(found.memory.value)} # {size(found.memory.value)}, the most memory it had"
    if isinstance(found.parallel, Amount):
        share = max(found.parallel.value, LEAST_PARALLEL)
        yield f"parallel: {share:.2%} # {found.parallel.low:.0%} to {found.parallel.high:.0%}: {found.parallel.basis}"
    else:
        yield f"# parallel: not known: {found.parallel.reason}"
    if isinstance(found.communication, Amount) and found.pattern != "none":
        yield f"communication: {{pattern: {found.pattern}, bytes_per_step: {round(found.communication.value)}}}"


def _model(network: Network, found: Characterisation) -> Iterator[str]:
    yield "model: # the network by what it counts, for one sample"
    yield "  kind: network"
    yield f"  layers: {network.layers}"
    yield f"  parameters: {network.parameters}"
    yield f"  macs: {network.macs} # multiply-accumulates of the forward pass, counted"
    yield f"  activations: {network.activations} # values that products give"
    yield f"  products: {network.products}"
    if network.image_size:
        yield f"  image_size: {network.image_size}"
    if network.sequence:
        yield f"  sequence: {network.sequence}"
    if network.tables:
        yield f"  tables: {network.tables} # parameters of embeddings, of which a sample takes a few rows"
    yield f"precision: {found.precision}"
    if found.kind == "train":
        yield f"batch_samples: {round(network.batch)}"
        known = _OPTIMIZERS.get(found.optimizer.lower())
        if known:
            yield f"optimizer: {known}"
        elif found.optimizer:
            yield f"# optimizer: {found.optimizer} is not one that is known here; adamw is assumed"
    for words, amount in (("FLOP a step", found.flop), ("bytes a step", found.moved), ("FLOP per byte", found.intensity)):
        if isinstance(amount, Amount):
            yield f"# {words}: {_interval(amount)}"


def _speed(found: Characterisation) -> Iterator[str]:
    hardware = found.hardware
    if hardware.chip is None:
        yield f"# measured: the chip is not known ({hardware.reason}); name it by --on CHIP, and speeds follow from this run"
        return
    assert isinstance(found.step_s, Amount)
    per, seconds = {RUN: "job"}.get(found.step, "step"), found.step_s
    scale = 1.0
    if found.kind == "batch" and found.network is not None:
        per, scale = "sample", found.network.batch
    fields = [f"on: {hardware.chip}"]
    if hardware.chips > 1:
        fields.append(f"chips: {hardware.chips}")
    if hardware.vcpus is not None:
        fields.append(f"vcpus: {hardware.vcpus}")
    fields += [f"takes: {seconds.value / scale:.6g}s", f"per: {per}"]
    low, high = (duration(value / scale) for value in (seconds.low, seconds.high))
    yield f"measured: {{{', '.join(fields)}}} # {low} to {high}: {seconds.basis}"


def _remarks(found: Characterisation) -> Iterator[str]:
    per = "second" if found.step == SECOND else "run" if found.step == RUN else "step"
    if found.steady_after_s is not None:
        yield f"# Steady after {duration(max(found.steady_after_s, 0.0))}."
    yield f"# Cores in use: {_words(found.cores, number)}."
    if found.network is not None:
        yield f"# Memory of its processes: {_words(found.memory, size)}."
    yield f"# Memory of the device: {_words(found.device_memory, size)}."
    yield f"# Read per {per}: {_words(found.read, size)}; of that from a disk: {_words(found.read_from_disk, size)}."
    yield f"# Share of the time that it waited for data: {_words(found.data_wait, lambda share: f'{share:.0%}')}."
    yield f"# Copied between devices per {per}: {_words(found.transfers, size)}."
    yield f"# Sent to other processes per {per}: {_words(found.communication, size)}."
    for note in found.notes:
        yield f"# {_one_line(note)}"


def _interval(amount: Amount) -> str:
    return f"{amount.low:.3g} to {amount.high:.3g}: {amount.basis}"


def _words(amount: Quantity, write: object) -> str:
    if isinstance(amount, Missing):
        return f"not known ({amount.reason})"
    assert callable(write)
    return str(write(amount.value))


def _one_line(text: str) -> str:
    """A comment stays one, whatever the program's name or arguments hold."""
    return re.sub(r"[^\x20-\x7e]+", " ", text)[:300]
