"""A mix of machine types as plain data: the key `mix` of `chipwise plan --mix --json`."""

from __future__ import annotations

from typing import Any

from chipwise.planner.values.mix import Band, Bucket, Member, Mix
from chipwise.planner.values.plan import Plan

View = dict[str, Any]


def mixed_view(plan: Plan) -> View:
    """Nothing where no mix was asked for."""
    return {} if plan.mix is None else {"mix": mix_view(plan.mix)}


def mix_view(mix: Mix) -> View:
    return {
        "fits": bool(mix.members),
        "usd": mix.usd if mix.members else None,
        "members": [_member_view(one) for one in mix.members],
        "single": _member_view(mix.single) if mix.single else None,
        "saving_usd": mix.saving_usd if mix.members and mix.single else None,
        "proven": mix.proven,
        "buckets": [_bucket_view(one) for one in mix.buckets],
        "types": mix.types,
        "regions": mix.places,
        "missing": mix.missing or None,
        "notes": list(mix.notes),
    }


def _member_view(member: Member) -> View:
    return {
        "provider": member.provider,
        "machine": member.machine,
        "region": member.region,
        "chip": member.chip,
        "chips_per_machine": member.chips,
        "machines": member.machines,
        "purchase": member.purchase,
        "precision": member.precision,
        "split": member.split.as_dict(),
        "usd": member.usd,
        "busy": member.busy,
        "provenance": member.provenance,
        "takes": [{"bucket": at.bucket, "part": at.part, "requests_per_s": at.rate} for at in member.takes],
    }


def _bucket_view(one: Bucket) -> View:
    return {"input_tokens": _band_view(one.prompt), "output_tokens": _band_view(one.answer), "share": one.share}


def _band_view(one: Band) -> View:
    return {"from": one.low, "to": one.high, "mean": one.mean}
