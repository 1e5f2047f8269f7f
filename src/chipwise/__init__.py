"""chipwise: pick the right accelerator for a workload, and know why.

The main types are here; the verbs are in `chipwise.api`. Each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.catalog.catalog import Catalog
    from chipwise.catalog.chip import Chip, ChipKind, Precision
    from chipwise.catalog.machine import Machine
    from chipwise.catalog.offer import Offer, Purchase
    from chipwise.catalog.region import Region
    from chipwise.errors import ChipwiseError
    from chipwise.workload.kinds import Common as Workload
    from chipwise.workload.model.registry import Model

__version__ = "0.1.0"
__all__ = [
    "Catalog",
    "Chip",
    "ChipKind",
    "ChipwiseError",
    "Machine",
    "Model",
    "Offer",
    "Precision",
    "Purchase",
    "Region",
    "Workload",
]

_HOMES = {
    "Catalog": "chipwise.catalog.catalog",
    "Chip": "chipwise.catalog.chip",
    "ChipKind": "chipwise.catalog.chip",
    "ChipwiseError": "chipwise.errors",
    "Machine": "chipwise.catalog.machine",
    "Model": "chipwise.workload.model.registry",
    "Offer": "chipwise.catalog.offer",
    "Precision": "chipwise.catalog.chip",
    "Purchase": "chipwise.catalog.offer",
    "Region": "chipwise.catalog.region",
    "Workload": "chipwise.workload.kinds",
}
_NAMES = {"Workload": "Common"}  # where the type has another name at home: what all kinds of workload have in common


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'chipwise' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), _NAMES.get(name, name))
