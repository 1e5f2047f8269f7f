"""What this machine is, to a prediction of what a job will take on it, and what an hour of it costs.

The machine's chips are found by the names that its driver and kernel give them; CHIPWISE_CHIP (names of the catalog, with
commas) says what they are where those names tell nothing.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chipwise.catalog.chip import ChipKind
from chipwise.catalog.offer import Purchase
from chipwise.errors import ChipwiseError
from chipwise.runner.job import MachinePlace, Needs, Spec
from chipwise.runner.submission.predicted import Allocation, Figures, Unknown, predict
from chipwise.workload.common import Common

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

CHIP = "CHIPWISE_CHIP"
ACCELERATORS = ("gpu", "tpu", "neuron", "gaudi", "npu", "edge")
PROCESSORS = ("cpu",)


def with_prediction(session: Session, path: str, work: Common, spec: Spec) -> Spec:
    """The job with what it will take on this machine, and with what its hour costs where the user's catalog says so."""
    allocation = local_allocation(session, spec.needs)
    if isinstance(allocation, Unknown):  # be it that the catalog cannot be read
        predicted: Figures = {"why_not": allocation.reason}
    else:
        predicted = predict(session.known, path, work, allocation)
    seconds = predicted.get("seconds")
    expected = seconds if isinstance(seconds, float) and not spec.service else None
    cost = allocation.usd_per_hour if isinstance(allocation, Allocation) else None
    places = (MachinePlace(Purchase.OWNED, usd_per_hour=cost),) if cost and not spec.places else spec.places
    return replace(
        spec,
        predicted=predicted,
        expected_s=spec.expected_s if spec.expected_s is not None else expected,
        places=places,
    )


def local_allocation(session: Session, needs: Needs) -> Allocation | Unknown:
    try:
        return _of_gpus(session, needs) if needs.gpus else _of_processor(session, needs)
    except ChipwiseError as error:
        return Unknown(str(error))


def _of_gpus(session: Session, needs: Needs) -> Allocation | Unknown:
    from chipwise.adapters.this_machine import gpu_names

    chip = _stated_chip(session, ACCELERATORS)
    if chip is None:
        names = sorted(set(gpu_names().values()))
        if not names:
            return Unknown(f"no driver reports its GPUs; set {CHIP} to the chip")
        if len(names) > 1:
            return Unknown(f"its GPUs differ ({', '.join(names)}); set {CHIP} to one of them")
        chip = session.names.chip_within(names[0])
        if chip is None or session.catalog.chips[chip].kind.value not in ACCELERATORS:
            return Unknown(f"the GPU {names[0]} is not in the catalog; set {CHIP} to a similar one")
    return Allocation(chip, float(needs.gpus), usd_per_hour=_cost(session, chip, needs))


def _of_processor(session: Session, needs: Needs) -> Allocation | Unknown:
    from chipwise.adapters.this_machine import processor

    chip = _stated_chip(session, PROCESSORS)
    if chip is None:
        detected = processor()
        chips = session.names.chips_or_none(detected.known_as or detected.name) or ()
        if len(chips) != 1 or chips[0].kind is not ChipKind.CPU:  # "Intel Xeon" is a line of many, and says nothing
            return Unknown(f"the processor {detected.name} is not in the catalog; set {CHIP} to a similar one")
        chip = chips[0].name
    cores = next((row.cores for row in session.catalog.rows("cpus") if row.name == chip and row.cores), None)
    cores = cores or os.cpu_count() or 1  # a chip of the user's own is this machine's
    sockets = max(math.ceil(needs.cpus / cores), 1)
    return Allocation(chip, float(sockets), min(needs.cpus / (cores * sockets), 1.0), _cost(session, chip, needs))


def _stated_chip(session: Session, kinds: tuple[str, ...]) -> str | None:
    """Of the chips that the user says this machine has, the first of such a kind."""
    for name in filter(None, map(str.strip, os.environ.get(CHIP, "").split(","))):
        chip = session.names.one_chip(name).chip
        if chip.kind.value in kinds:
            return chip.name
    return None


def own_price(session: Session, needs: Needs) -> float | None:
    """An hour of what it holds of this machine, by the user's catalog; by its name alone, where nobody knows its chip."""
    allocation = local_allocation(session, needs)
    price = allocation.usd_per_hour if isinstance(allocation, Allocation) else None
    return price if price is not None else _cost(session, "", needs)


def _cost(session: Session, chip: str, needs: Needs) -> float | None:
    """Of the devices that it holds: their share of a machine that the user owns, by this machine's name, or by its chip where
    there is only one such."""
    config = session.config
    if not any(config.catalog_dir.glob("*.y*ml")) and not any(config.feeds_dir.glob("*")):
        return None
    from chipwise.adapters.this_machine import host_name
    from chipwise.catalog.query import OfferQuery, find_offers

    catalog = session.catalog
    own: dict[str, tuple[Any, float]] = {}
    for i in find_offers(catalog, OfferQuery(purchases={Purchase.OWNED})):
        machine = catalog.machines[catalog.offers.machine[i]]
        own.setdefault(machine.name, (machine, float(catalog.offers.price[i])))
    alike = [one for one in own.values() if one[0].chip == chip]
    owned = own.get(host_name()) or (alike[0] if len(alike) == 1 else None)
    if owned is None:
        return None
    machine, price = owned
    needed, total = (needs.gpus, machine.chips) if needs.gpus else (needs.cpus, machine.vcpus or os.cpu_count())
    return price * min(needed / total, 1.0) if total else price
