"""A plan's load over time and its regions as plain data, for `chipwise plan --json`."""

from __future__ import annotations

from typing import Any

from chipwise.planner.values.load import LoadPlan
from chipwise.planner.values.placement import Placement
from chipwise.planner.values.plan import Plan

View = dict[str, Any]


def load_views(plan: Plan) -> View:
    """The keys `load` and `placement`; None where the plan has none."""
    return {
        "load": load_view(plan.load) if plan.load else None,
        "placement": placement_view(plan.placement) if plan.placement else None,
    }


def load_view(load: LoadPlan) -> View:
    hours = load.machine_hours
    return {
        "pattern": load.pattern,
        "unit": load.unit,
        "mean": load.mean,
        "busiest": load.busiest,
        "peak": load.peak,
        "hours_per_week": load.hours_per_week,
        "provider": load.provider,
        "machine": load.machine,
        "region": load.region,
        "chip": load.chip,
        "per_machine": load.per_machine,
        "replicas": {"mean": load.replicas_mean, "peak": load.replicas_peak},
        "machines": {"mean": load.machines_mean, "peak": load.machines_peak},
        "machine_hours": {
            "static": hours.static,
            "scheduled": hours.scheduled,
            "autoscaled": hours.autoscaled,
            "starting": hours.starting,
        },
        "usd": load.usd,
        "other_usd": load.other_usd,
        "usd_range": [load.low_usd, load.high_usd],
        "layers": [
            {
                "name": layer.name,
                "machines": layer.machines,
                "hours_used": layer.hours_used,
                "hours_paid": layer.hours_paid,
                "utilisation": layer.utilisation,
                "usd": layer.usd,
            }
            for layer in load.layers
        ],
        "alone": [{"name": one.name, "usd": one.usd, "why": one.why or None} for one in load.alone],
        "duration_curve": [{"machines": machines, "hours": hours} for machines, hours in load.steps],
        "by_hour": [{"load": rate, "machines": machines} for rate, machines in load.by_hour],
        "recommendation": load.recommendation,
        "changed": load.changed or None,
        "tried": load.kind_count,
        "assumed": list(load.assumed),
    }


def placement_view(placement: Placement) -> View:
    return {
        "regions": [
            {
                "provider": site.provider,
                "region": site.region,
                "country": site.country,
                "machine": site.machine,
                "machines": site.machines,
                "requests_per_s": site.rate,
                "share": site.share,
                "usd": site.usd,
                "farthest_s": site.farthest_s,
            }
            for site in placement.stands
        ],
        "usd": placement.usd if placement.stands else None,
        "single_region_usd": placement.single_usd,
        "round_trip_limit_s": placement.limit_s,
        "limit_basis": placement.basis,
        "losses": [{"region": one.region, "round_trip_s": one.farthest_s, "carried": one.carried} for one in placement.losses],
        "tried": placement.set_count,
        "regions_known": placement.sites,
        "missing": placement.missing or None,
        "assumed": list(placement.assumed),
    }
