"""Catalog values as plain dictionaries: what `--json` and `--csv` print, with units in the names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import date
from typing import TYPE_CHECKING, Any

from chipwise.catalog.ability import abilities
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import Chip, Precision
from chipwise.catalog.fact import Fact
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer
from chipwise.catalog.query import accelerator_memory, chip_memory
from chipwise.catalog.region import Region
from chipwise.catalog.region import readable as readable

if TYPE_CHECKING:
    from chipwise.workload.model.registry import Model as Model

View = dict[str, Any]


def fact_view(fact: Fact) -> View:
    return {"sources": list(fact.sources), "as_of": fact.as_of, "inferred": list(fact.inferred), "notes": fact.notes}


def chip_view(chip: Chip, catalog: Catalog) -> View:
    silicon = chip.silicon
    return {
        "name": chip.name,
        "vendor": chip.vendor,
        "kind": str(chip.kind),
        "family": chip.family,
        "architecture": chip.architecture,
        "aliases": list(chip.aliases),
        "compute_capability": chip.compute_capability,
        "target": chip.target,
        "year": chip.year,
        "memory_gb": chip.memory_gb,
        "memory_bytes": chip.memory_bytes,
        "memory_type": chip.memory_type,
        "memory_bus_bits": silicon.memory_bus_bits,
        "memory_bytes_per_s": chip.memory_bytes_per_s,
        **{f"{p}_{'op' if p is Precision.INT8 else 'flop'}_per_s": chip.rate(p) for p in Precision},
        "interconnect": chip.interconnect,
        "link_bytes_per_s": chip.link_bytes_per_s,
        "pcie_gen": chip.pcie_gen,
        "power_w": chip.power_w,
        "mig_slices": chip.mig_slices,
        "cores": silicon.cores,
        "tensor_cores": silicon.tensor_cores,
        "rt_cores": silicon.rt_cores,
        "units": silicon.units,
        "base_mhz": silicon.base_mhz,
        "boost_mhz": silicon.boost_mhz,
        "l2_bytes": silicon.l2_bytes,
        "process_nm": silicon.process_nm,
        "die_mm2": silicon.die_mm2,
        "transistors": silicon.transistors,
        "encoders": silicon.encoders,
        "decoders": silicon.decoders,
        "launch_price_usd": chip.launch_price_usd,
        "launch_price_basis": chip.launch_price_basis,
        "abilities": {a.name: {"has": a.has, "reason": a.reason} for a in abilities(chip, catalog.data)},
        **fact_view(chip.fact),
    }


def machine_view(machine: Machine, catalog: Catalog) -> View:
    memory = chip_memory(catalog, machine)
    return {
        "provider": machine.provider,
        "name": machine.name,
        "chip": machine.chip,
        "chips": machine.chips,
        "chip_memory_bytes": memory,
        "accelerator_memory_bytes": accelerator_memory(catalog, machine),
        "vcpus": machine.vcpus,
        "memory_bytes": machine.memory_bytes,
        "disk_bytes": machine.disk_bytes,
        "network_bytes_per_s": machine.network_bytes_per_s,
        "network_baseline_bytes_per_s": machine.network_baseline_bytes_per_s,
        "fabric": None if machine.fabric == "no" else machine.fabric,
        "fabric_bytes_per_s": machine.fabric_bytes_per_s,
        "link": machine.link,
        "pcie_gen": machine.pcie_gen,
        "cpu_arch": machine.cpu_arch,
        "storage_bytes_per_s": machine.storage_bytes_per_s,
        "year": machine.year,
        "retired": machine.retired,
        "purchase_usd": machine.purchase_usd,
        "power_w": machine.power_w,
        **fact_view(machine.fact),
    }


def region_view(region: Region) -> View:
    return {
        "provider": region.provider,
        "name": region.name,
        "location": region.location,
        "country": region.country,
        "latitude": region.latitude,
        "longitude": region.longitude,
        "grid_g_per_kwh": region.grid_g_per_kwh,
        "grid_year": region.grid_year,
        "marginal_g_per_kwh": region.marginal_g_per_kwh,
        "ccf_g_per_kwh": region.second_opinion_g_per_kwh,
        "pue": region.pue,
        "pue_basis": region.pue_basis,
        **fact_view(region.fact),
    }


def age_days(as_of: str, today: date) -> int:
    """Days since a full ISO date; a price from the future counts as fresh."""
    return max(0, (today - date.fromisoformat(as_of)).days)


def offer_view(offer: Offer, machine: Machine, region: Region, memory_bytes: float | None, today: date) -> View:
    return {
        "provider": offer.provider,
        "machine": offer.machine,
        "region": offer.region,
        "purchase": str(offer.purchase),
        "usd_per_hour": offer.usd_per_hour,
        "usd_per_chip_hour": offer.usd_per_hour / machine.chips if machine.chips else None,
        "usd_per_hour_max": offer.usd_per_hour_max,
        "chip": machine.chip,
        "chips": machine.chips,
        "chip_memory_bytes": memory_bytes,
        "vcpus": machine.vcpus,
        "memory_bytes": machine.memory_bytes,
        "country": region.country,
        "grid_g_per_kwh": region.grid_g_per_kwh,
        "as_of": offer.as_of,
        "age_days": age_days(offer.as_of, today),
        "can_win": offer.can_win,
        "verdict": str(offer.verdict) or None,
        "why": offer.why or None,
        "usual_usd_per_hour": offer.usual_usd_per_hour,
        "source": offer.source,
        "notes": offer.notes,
    }


def offer_views(catalog: Catalog, indices: Iterable[int], today: date) -> list[View]:
    offers = catalog.offers
    return [
        offer_view(
            offers[i],
            catalog.machines[offers.machine[i]],
            catalog.regions[offers.region[i]],
            chip_memory(catalog, catalog.machines[offers.machine[i]]),
            today,
        )
        for i in indices
    ]


def model_view(model: Model) -> View:
    shape = model.shape
    view: View = {
        "name": model.name,
        "aliases": list(model.aliases),
        "family": model.family,
        "year": model.year,
        "context": model.context,
        "parameters": shape.parameters,
        "active_parameters": shape.active_parameters,
        "published_parameters": model.published_parameters,
        "shape_kind": shape.kind,
        "shape": asdict(shape),
        "source": model.source,
        "as_of": model.as_of,
    }
    return view
