"""Which machine types may stand in for the one that was chosen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.tables import ImageRow
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.renderer.deployment import Node
from chipwise.renderer.hardware import node_of
from chipwise.renderer.images import image_row
from chipwise.workload.common import Common

MAX_ALTERNATIVES = 4  # machine types that a fleet may take beside the chosen one


def similar_nodes(catalog: Catalog, plan: Plan, chosen: Choice, work: Common) -> tuple[Node, ...]:
    """The next best of the same place whose machines look the same to the program: same kind of chip, as many of them, and the
    settings of the chosen one fit: they are split alike by the plan, or have as much memory."""
    seen, nodes = {chosen.machine}, []
    own = node_of(catalog, chosen, work)
    for choice in plan.choices:
        if choice.machine in seen or (choice.provider, choice.region) != (chosen.provider, chosen.region):
            continue
        node = node_of(catalog, choice, work)
        alike = (node.kind, node.vendor, node.chips, node.arch) == (own.kind, own.vendor, own.chips, own.arch)
        alike = alike and node.share >= own.share and (node.share < 1) == (own.share < 1)  # a part has another driver
        fits = choice.split == chosen.split or _chip_bytes(catalog, node) >= _chip_bytes(catalog, own) > 0
        if alike and fits and choice.machines == chosen.machines and choice.precision == chosen.precision:
            seen.add(choice.machine)
            nodes.append(node)
    return tuple(nodes[:MAX_ALTERNATIVES])


def with_its_image(nodes: Iterable[Node], own: Node, purpose: str, rows: Sequence[ImageRow]) -> tuple[Node, ...]:
    """Of these, those that the image of the chosen machine runs on: some images have code for one generation of chips only."""
    row = image_row(rows, purpose, own)
    return tuple(node for node in nodes if row is None or image_row(rows, purpose, node) is row)


def _chip_bytes(catalog: Catalog, node: Node) -> float:
    chip = catalog.chips.get(node.chip)
    return (chip.memory_bytes if chip is not None else None) or 0.0
