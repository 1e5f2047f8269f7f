"""What the catalog holds, how old it is, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chipwise.catalog.names import providers
from chipwise.catalog.offer import iso_day
from chipwise.views.catalog import age_days

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def status(session: Session) -> dict[str, Any]:
    catalog = session.catalog
    offers = catalog.offers
    days: dict[str, list[int]] = {}
    for day, machine in zip(offers.as_of, offers.machine, strict=True):
        days.setdefault(catalog.machines[machine].provider, []).append(day)
    fed = {snapshot.provider: f"feed {snapshot.day}" for snapshot in session.stored}
    packaged = {provider.name for provider in providers(catalog.data)}
    rows = []
    for provider in catalog.providers:
        seen = sorted(days.get(provider, ()))
        newest, oldest = (iso_day(seen[-1]), iso_day(seen[0])) if seen else (None, None)
        rows.append(
            {
                "provider": provider,
                "machines": sum(machine.provider == provider for machine in catalog.machines),
                "regions": sum(region.provider == provider for region in catalog.regions),
                "offers": len(seen),
                "oldest": oldest,
                "newest": newest,
                "age_days": None if newest is None else age_days(newest, session.today),
                "from": fed.get(provider, "package" if provider in packaged else "your files"),
            }
        )
    totals = {
        "chips": len(catalog.chips),
        "machines": len(catalog.machines),
        "regions": len(catalog.regions),
        "offers": len(offers),
    }
    totals |= {"models": len(session.models), "sources": len(catalog.sources)}
    return {
        "providers": rows,
        "totals": totals,
        "config_dir": str(session.config.config_dir),
        "data_dir": str(session.config.data_dir),
        "problems": list(session.problems),
    }
