"""A slice of a GPU for each copy of a service, where the workload asks for one (`program.slice`): MIG of NVIDIA's chips.

It is the user's own choice and changes no plan: speeds that were planned are of a whole chip, and of a slice nobody knows them.
"""

from __future__ import annotations

from dataclasses import replace

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.sharing import mig_profiles
from chipwise.renderer.deployment import Form, Model, Node
from chipwise.renderer.file import CannotRender
from chipwise.text import decimal_size
from chipwise.units import GB
from chipwise.workload.program import Program

WEIGHTS = 0.85  # of a slice's memory at most: what is computed with, and the cache of answers, need the rest
_OUT = "Leave program.slice out: a copy then takes whole chips."


def sliced(node: Node, program: Program | None, form: Form, chips_each: int, model: Model | None, catalog: Catalog) -> Node:
    """The machine with its chips cut, or as it is where nobody asks for it."""
    profile = program.slice if program is not None else None
    if profile is None:
        return node
    if form is not Form.SERVICE or chips_each != 1:
        reason = f"a copy takes {chips_each} chips" if form is Form.SERVICE else "this is no service"
        raise CannotRender(f"program.slice gives each copy a part of one chip, and {reason}.", remedy=_OUT)
    known = {one.profile: one for one in mig_profiles(catalog.data) if one.chip == node.chip}
    mig_slice = known.get(profile)
    if mig_slice is None or not mig_slice.instances:
        has = f"it has {', '.join(known)}" if known else "it cannot be cut"
        raise CannotRender(
            f"{node.chip} has no slice {profile}: {has}.",
            remedy=f"{_OUT} Or plan for a chip that has it: --chip CHIP.",
        )
    weights = model.weight_bytes if model is not None else None
    memory_bytes = (mig_slice.memory_gb or 0.0) * GB
    if weights is not None and weights > WEIGHTS * memory_bytes:
        raise CannotRender(
            f"A slice {profile} has {decimal_size(memory_bytes)}, and the weights alone take {weights / GB:.1f}.",
            remedy="Take a larger slice, or a smaller number format (--limit precision=fp8).",
        )
    return replace(node, profile=profile, sharing="slices", users_per_chip=mig_slice.instances)


def slice_notes(node: Node, program: Program | None) -> tuple[str, ...]:
    if program is None or program.slice is None:
        return ()
    note = (
        f"Each copy has a slice {node.profile} of {node.chip}, of which a chip holds {node.users_per_chip}. Planned speeds are"
        " of a whole chip: measure what a slice does, and set replicas by it."
    )
    return (note,)
