"""A characterisation as a workload file with comments: what was measured with its interval, and what is not known, said so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from chipwise.observe.characterise.values import RUN, SECOND, STEP_WORDS, Bounded, Characterisation, Network, Quantity
from chipwise.observe.sample import NoReading
from chipwise.text import duration, number, size
from chipwise.units import DAY

WIDTH = 100
LEAST_PARALLEL = 0.001  # the least that a workload may say
_OPTIMIZERS = {"adam": "adamw", "adamw": "adamw", "sgd": "sgd", "adafactor": "adafactor", "lion": "lion", "muon": "muon"}


def workload_text(character: Characterisation, name: str) -> str:
    return "\n".join(_lines(character, name)) + "\n"


def _lines(character: Characterisation, name: str) -> Iterator[str]:
    yield "# Written by chipwise characterize from runs of this program. Numbers are measured or counted; what is not is said."
    yield f"# Program: {_one_line(shlex.join(character.command))}"
    yield f"# A step is {STEP_WORDS[character.step]}."
    yield f"kind: {character.kind}"
    yield f"name: {name}"
    yield ""
    yield from _amount_of_work(character)
    yield from _work_of_a_step(character)
    yield from _speed(character)
    yield ""
    yield from _remarks(character)


def _amount_of_work(character: Characterisation) -> Iterator[str]:
    if character.step == RUN:
        yield "steps: 1 # the whole run: it ended by itself"
        return
    assert isinstance(character.step_s, Bounded)
    steps = character.steps
    if isinstance(steps, NoReading):
        count = max(round(DAY / character.step_s.value), 1)
        comment = f"NOT KNOWN ({steps.reason}): as many as fit into a day here; set what you need"
    else:
        count, comment = max(round(steps.value), 1), steps.basis
    if character.kind == "hpc" or character.network is None:
        yield f"steps: {count} # {comment}"
    else:
        field = "samples" if character.kind == "train" else "items"
        batch = character.network.batch
        yield f"{field}: {round(count * batch)} # {count:,} steps of {number(batch)}; {comment}"


def _work_of_a_step(character: Characterisation) -> Iterator[str]:
    if character.network is not None:
        yield from _model(character.network, character)
        return
    for field, amount in (("flop_per_step", character.flop), ("bytes_per_step", character.moved)):
        if isinstance(amount, Bounded):
            yield f"{field}: {amount.value:.6g} # {_interval(amount)}"
        else:
            yield f"# {field}: not known: {amount.reason}"
    if isinstance(character.intensity, Bounded):
        yield f"# arithmetic intensity, FLOP per byte: {_interval(character.intensity)}"
    yield f"precision: {character.precision}"
    if isinstance(character.memory, Bounded):
        yield f"working_set: {round(character.memory.value)} # {size(character.memory.value)}, the most memory it had"
    if isinstance(character.parallel, Bounded):
        share = max(character.parallel.value, LEAST_PARALLEL)
        span = f"{character.parallel.low:.0%} to {character.parallel.high:.0%}"
        yield f"parallel: {share:.2%} # {span}: {character.parallel.basis}"
    else:
        yield f"# parallel: not known: {character.parallel.reason}"
    if isinstance(character.communication, Bounded) and character.pattern != "none":
        yield f"communication: {{pattern: {character.pattern}, bytes_per_step: {round(character.communication.value)}}}"


def _model(network: Network, character: Characterisation) -> Iterator[str]:
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
    yield f"precision: {character.precision}"
    if character.kind == "train":
        yield f"batch_samples: {round(network.batch)}"
        known = _OPTIMIZERS.get(character.optimizer.lower())
        if known:
            yield f"optimizer: {known}"
        elif character.optimizer:
            yield f"# optimizer: {character.optimizer} is not one that is known here; adamw is assumed"
    for words, amount in (
        ("FLOP a step", character.flop),
        ("bytes a step", character.moved),
        ("FLOP per byte", character.intensity),
    ):
        if isinstance(amount, Bounded):
            yield f"# {words}: {_interval(amount)}"


def _speed(character: Characterisation) -> Iterator[str]:
    hardware = character.hardware
    if hardware.chip is None:
        yield f"# measured: the chip is not known ({hardware.reason}); name it by --on CHIP, and speeds follow from this run"
        return
    assert isinstance(character.step_s, Bounded)
    per, seconds = {RUN: "job"}.get(character.step, "step"), character.step_s
    scale = 1.0
    if character.kind == "batch" and character.network is not None:
        per, scale = "sample", character.network.batch
    fields = [f"on: {hardware.chip}"]
    if hardware.chips > 1:
        fields.append(f"chips: {hardware.chips}")
    if hardware.vcpus is not None:
        fields.append(f"vcpus: {hardware.vcpus}")
    fields += [f"takes: {seconds.value / scale:.6g}s", f"per: {per}"]
    low, high = (duration(value / scale) for value in (seconds.low, seconds.high))
    yield f"measured: {{{', '.join(fields)}}} # {low} to {high}: {seconds.basis}"


def _remarks(character: Characterisation) -> Iterator[str]:
    per = "second" if character.step == SECOND else "run" if character.step == RUN else "step"
    if character.steady_after_s is not None:
        yield f"# Steady after {duration(max(character.steady_after_s, 0.0))}."
    yield f"# Cores in use: {_words(character.cores, number)}."
    if character.network is not None:
        yield f"# Memory of its processes: {_words(character.memory, size)}."
    yield f"# Memory of the device: {_words(character.device_memory, size)}."
    yield f"# Read per {per}: {_words(character.read, size)}; of that from a disk: {_words(character.read_from_disk, size)}."
    yield f"# Share of the time that it waited for data: {_words(character.data_wait, lambda share: f'{share:.0%}')}."
    yield f"# Copied between devices per {per}: {_words(character.transfers, size)}."
    yield f"# Sent to other processes per {per}: {_words(character.communication, size)}."
    for note in character.notes:
        yield f"# {_one_line(note)}"


def _interval(amount: Bounded) -> str:
    return f"{amount.low:.3g} to {amount.high:.3g}: {amount.basis}"


def _words(amount: Quantity, write: object) -> str:
    if isinstance(amount, NoReading):
        return f"not known ({amount.reason})"
    assert callable(write)
    return str(write(amount.value))


def _one_line(text: str) -> str:
    """A comment stays one, whatever the program's name or arguments hold."""
    return re.sub(r"[^\x20-\x7e]+", " ", text)[:300]
