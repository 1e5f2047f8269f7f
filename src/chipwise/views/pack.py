"""Packed services as plain data: what `chipwise pack --json` prints."""

from __future__ import annotations

from chipwise.planner.several.pack import Packed as Packed
from chipwise.planner.several.pack import Resident as Resident
from chipwise.planner.several.pack import Shared as Shared
from chipwise.views.plan import View

SCHEMA = 1


def packed_view(packing: Packed) -> View:
    """What `chipwise pack --json` prints."""
    return {
        "schema": SCHEMA,
        "usd": packing.usd,
        "apart_usd": packing.apart_usd,
        "saving_usd": packing.apart_usd - packing.usd,
        "proven": packing.proven,
        "machines": [_shared_view(shared) for shared in packing.machines],
        "apart": [_shared_view(shared) for shared in packing.apart],
        "notes": list(packing.notes),
    }


def _shared_view(shared: Shared) -> View:
    return {
        "provider": shared.provider,
        "machine": shared.machine,
        "region": shared.region,
        "chip": shared.chip,
        "memory_bytes": shared.memory_bytes,
        "purchase": shared.purchase,
        "how": shared.sharing,
        "usd": shared.usd,
        "models": [
            {
                "name": resident.name,
                "path": resident.path,
                "precision": resident.precision,
                "share": resident.share,
                "profile": resident.profile or None,
                "memory_bytes": resident.memory_bytes,
            }
            for resident in shared.residents
        ],
    }
