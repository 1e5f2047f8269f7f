"""Services whose load is bought in layers: catalogs change, these do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from chipwise.renderer.deployment import Deployment, MachineLayer
from fixed_deployments import CASES

RESERVED_SPOT = (MachineLayer("reserved-3y", 3), MachineLayer("spot", 8))
RESERVED_ON_DEMAND = (MachineLayer("reserved-1y", 2), MachineLayer("on-demand", 3))
ALL = (MachineLayer("Compute Savings Plan 3y, no upfront", 2), MachineLayer("on-demand", 1), MachineLayer("spot", 4))


def layered(layers: tuple[MachineLayer, ...], **other: Any) -> Deployment:
    """Between what is promised and all layers, around the clock."""
    serve, many = CASES["serve"], sum(one.machines for one in layers)
    assert serve.scaling is not None
    scaling = replace(serve.scaling, minimum=layers[0].machines, usual=many, maximum=many)
    return replace(serve, machines=many, layers=layers, scaling=scaling, stops="", starts="", **other)
