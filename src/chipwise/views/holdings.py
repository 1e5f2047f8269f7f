"""Every table of the catalog as plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from chipwise.catalog import ability, compatibility, ec2, names, sharing
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.tables import TABLES, read_rows
from chipwise.errors import UnknownName
from chipwise.spelling import nearest
from chipwise.views.catalog import fact_view


class VerdictRow(NamedTuple):
    """A price that is odd, with the reason; some can never win."""

    provider: str
    region: str
    machine: str
    purchase: str
    verdict: str
    usual_usd_per_hour: float | None
    why: str
    as_of: str


class LeftOut(NamedTuple):
    """What was known and is not in the catalog, with the reason."""

    what: str
    rows: str
    reason: str


def _small(catalog: Catalog) -> dict[str, tuple[Any, ...]]:
    """The tables that are read whole by one module each."""
    data = catalog.data
    return {
        "abilities": ability.rules(data),
        "compatibility": compatibility.rules(data),
        "ec2_attributes": tuple(ec2.attributes(data).values()),
        "ec2_classes": tuple(ec2.classes(data).values()),
        "mig_profiles": sharing.mig_profiles(data),
        "providers": names.providers(data),
        "retired": names.retired_things(data),
        "sharing": sharing.modes(data),
        "sources": tuple(catalog.sources.values()),
        "vgpu_profiles": sharing.vgpu_profiles(data),
        "verdicts": tuple(read_rows(data / "verdicts.csv", VerdictRow)),
        "left_out": tuple(read_rows(data / "left_out.csv", LeftOut)),
    }


def table_names(catalog: Catalog) -> list[tuple[str, int, str]]:
    """(name, rows, what a row is) of every table beside chips, machines, regions and offers."""
    listed = [(name, len(catalog.rows(name)), _first_line(row_type)) for name, row_type in TABLES.items()]
    listed += [(name, len(rows), _first_line(type(rows[0]))) for name, rows in _small(catalog).items()]
    return sorted(listed)


def _first_line(row_type: type) -> str:
    text = (row_type.__doc__ or "").strip().split("\n")[0]
    return "" if text.startswith(row_type.__name__ + "(") else text


def table_rows(catalog: Catalog, table: str, words: Sequence[str]) -> list[dict[str, Any]]:
    small = _small(catalog)
    key = table.strip().lower().replace("-", "_")
    if key not in TABLES and key not in small:
        known = sorted({*TABLES, *small})
        raise UnknownName("table", table, nearest(table, known), remedy=f"Tables: {', '.join(known)}.")
    rows = catalog.rows(key) if key in TABLES else small[key]
    wanted = [word.casefold() for word in words]
    views = []
    for row in rows:
        view = {name: value for name, value in row._asdict().items() if name != "fact"}
        view |= fact_view(row.fact) if "fact" in row._fields else {}
        text = " ".join(str(value) for name, value in view.items() if name not in ("sources", "source")).casefold()
        # A word is looked for in the values; the name of a column asks for the rows that fill it.
        if all(word in text or (word in view and view[word] not in (None, "", [])) for word in wanted):
            views.append(view)
    return views
