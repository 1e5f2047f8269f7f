"""A workload's limits in the catalog's own names: what the planner may use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.countries import members
from chipwise.plan.limits import Rules
from chipwise.workload.goals import Limits, Programme, Where

if TYPE_CHECKING:
    from chipwise.api.wiring import Session

_IN_TABLE = ("hipaa", "fedramp", "iso27001", "pci")


def rules_of(session: Session, limits: Limits) -> Rules:
    """Names as the catalog has them. The file was checked, so every one is known."""
    names = session.names

    def countries(places: Sequence[str]) -> frozenset[str]:
        return frozenset().union(*map(members, places)) if places else frozenset()

    def chips(texts: Sequence[str]) -> frozenset[str]:
        return frozenset(chip.name for text in texts for chip in names.chips(text))

    inside = [countries(places) for places in (limits.countries, limits.residency) if places]
    if Programme.GDPR in limits.compliance:
        inside.append(countries(("EEA", "CHE", "GBR")))
    where = set(limits.where)
    return Rules(
        providers=frozenset(map(names.provider, limits.clouds)) if limits.clouds else None,
        avoided_providers=frozenset(map(names.provider, limits.avoid.clouds)),
        regions=frozenset(one.key for text in limits.regions for one in names.regions(text.replace(":", "/")))
        if limits.regions
        else None,
        avoided_regions=frozenset(one.key for text in limits.avoid.regions for one in names.regions(text.replace(":", "/"))),
        countries=frozenset.intersection(*inside) if inside else None,
        avoided_countries=countries(limits.avoid.countries),
        compliant=_compliant(session, limits.compliance),
        chips=chips(limits.chips) if limits.chips else None,
        avoided_chips=chips(limits.avoid.chips),
        interruptible=limits.interruptible,
        owned=not where or Where.OWNED in where,
        rented=not where or Where.CLOUD in where,
        power_w=limits.power_watts,
    )


def _compliant(session: Session, programmes: Sequence[Programme]) -> dict[str, frozenset[str]] | None:
    """Providers that state a programme; of programmes that no table has, nobody is known to take part."""
    rows = session.catalog.rows("compliance")
    asked = [one for one in programmes if one is not Programme.GDPR]
    return {
        str(one): frozenset(row.provider for row in rows if one in _IN_TABLE and str(getattr(row, one, "")).startswith("yes"))
        for one in asked
    } or None
