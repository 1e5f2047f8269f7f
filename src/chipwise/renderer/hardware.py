"""The machine of a choice, as targets see it."""

from __future__ import annotations

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import ChipKind
from chipwise.catalog.machine import runs_arm
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.split import Seats
from chipwise.renderer.deployment import Node
from chipwise.renderer.platforms import first_card
from chipwise.workload.common import Common


def node_of(catalog: Catalog, choice: Choice, work: Common | None = None) -> Node:
    index = catalog.machine_index.get((choice.provider, choice.machine))
    machine = catalog.machines[index] if index is not None else None
    name = machine.chip if machine is not None and machine.chip else choice.catalog_chip or choice.chip
    chip = catalog.chips.get(name)
    kind = str(chip.kind) if chip is not None else "cpu"
    chips = 0 if kind == ChipKind.CPU else choice.chips
    fabric = next(
        (row for row in catalog.rows("fabrics") if (row.provider, row.machine) == (choice.provider, choice.machine)), None
    )
    profile, sharing, users = _shared(choice, work)
    return Node(
        provider=choice.provider,
        region=choice.region,
        machine=choice.machine,
        chip=name,
        kind=kind,
        vendor=chip.vendor if chip is not None else "",
        chips=chips,
        capability=chip.compute_capability if chip is not None else None,
        cores=chip.silicon.units if chip is not None and kind == ChipKind.NEURON else None,
        profile=profile,
        sharing=sharing,
        users_per_chip=users,
        vcpus=int(machine.vcpus) if machine is not None and machine.vcpus else None,
        memory_bytes=machine.memory_bytes if machine is not None else None,
        chip_memory_bytes=chip.memory_bytes if chip is not None else None,
        disk_bytes=machine.disk_bytes if machine is not None else None,
        arch="arm64" if runs_arm(machine, name) else "amd64",
        fabric=(machine.fabric or "").lower() if machine is not None and machine.fabric not in (None, "no") else "",
        interfaces=(fabric.interfaces or 0) if fabric is not None else 0,
        share=machine.chips if machine is not None and machine.chips and machine.chips < 1 else 1.0,
        first_card=first_card(catalog.rows("runtimes"), choice.machine) if fabric is not None else 0,
    )


def _shared(choice: Choice, work: Common | None) -> tuple[str, str, int]:
    users = choice.split.per_chip if isinstance(choice.split, Seats) else 1
    if users <= 1:
        return "", "", 1
    sliced = str(getattr(work, "sharing", "")) == "slices"
    return (choice.precision, "slices", users) if sliced and "g." in choice.precision else ("", "turns", users)
