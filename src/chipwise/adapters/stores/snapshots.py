"""Snapshots in the user's data directory: one JSON file per provider, never half-written.

A file is written beside its place, flushed to the disk and moved over the old one in one step, so a reader sees the
old snapshot or the new one. Two refreshes at once write two temporary files; the last to finish wins.

Every command reads these files at its start, so offers lie in them as columns: one list of numbers per field, names
by position. A file that cannot be read is reported and passed over: the rest of the catalog works.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Generic, TypeVar

from chipwise.catalog.fact import Fact
from chipwise.catalog.feed import Snapshot
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import Offer, Purchase, Verdict
from chipwise.catalog.region import Region
from chipwise.errors import BadInput, OutsideFailed

FORMAT = 1
_TYPES: dict[str, tuple[type, ...]] = {  # what a field of a machine or region may hold, by its annotation
    "str": (str,),
    "bool": (bool,),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
    "float | None": (float, int, type(None)),
}
_ABANDONED_S = 3600.0  # a temporary file this old was left by a refresh that was killed

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PackedColumn(Generic[T]):
    """One field of many offers: offer `i` has `values[at[i]]`."""

    values: tuple[T, ...]
    index: list[int]

    def spread(self) -> list[T]:
        return [self.values[index] for index in self.index]


@dataclass(frozen=True, slots=True)
class OfferColumns:
    """Offers as they lie in a file; a reader with columns of its own need not make an `Offer` of each."""

    provider: str
    price: list[float]
    price_max: list[float | None]
    machine: PackedColumn[str]
    region: PackedColumn[str]
    purchase: PackedColumn[Purchase]
    as_of: PackedColumn[str]
    verdict: PackedColumn[Verdict]
    why: PackedColumn[str]
    source: PackedColumn[str]
    notes: PackedColumn[str]

    def __len__(self) -> int:
        return len(self.price)

    def offers(self) -> tuple[Offer, ...]:
        return tuple(
            map(
                Offer,
                [self.provider] * len(self),
                self.machine.spread(),
                self.region.spread(),
                self.purchase.spread(),
                self.price,
                self.as_of.spread(),
                self.price_max,
                self.verdict.spread(),
                self.why.spread(),
                self.source.spread(),
                self.notes.spread(),
            )
        )


def save(directory: Path, snapshot: Snapshot) -> Path:
    """Writes the snapshot and returns its path. Whatever happens, the old file is whole until the new one is."""
    if not snapshot.provider.strip():
        raise BadInput("A snapshot needs the name of its provider.")
    path = directory / f"{_stem(snapshot.provider)}.json"
    text = json.dumps(_packed(snapshot), separators=(",", ":"), allow_nan=False)
    temporary = directory / f".{path.stem}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _sweep(directory)
        try:
            with temporary.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _settle(directory)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutsideFailed(
            f"{path} could not be written: {reason}.", remedy="Free some space or choose another data directory."
        ) from error
    return path


def load(directory: Path) -> tuple[list[Snapshot], list[str]]:
    """All snapshots in the order of their names, and a sentence for each file that could not be used."""
    pairs, problems = read(directory)
    return [replace(snapshot, offers=columns.offers()) for snapshot, columns in pairs], problems


def read(directory: Path) -> tuple[list[tuple[Snapshot, OfferColumns]], list[str]]:
    """As `load`, with the offers of each snapshot still in columns: the quick way, for tens of thousands."""
    pairs: list[tuple[Snapshot, OfferColumns]] = []
    problems: list[str] = []
    for path in _paths(directory):
        try:
            if not path.is_file():
                raise ValueError("not a regular file")
            pairs.append(_unpacked(json.loads(path.read_bytes(), parse_constant=_no_constant)))
        except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError) as error:
            reason = f"{type(error).__name__}: {str(error)[:120]}"
            problems.append(
                f"{path} is not a snapshot that can be read ({reason}). "
                f"Refresh or import {path.stem} again, or delete the file."
            )
    return pairs, problems


def stored(directory: Path) -> list[str]:
    """The names under which snapshots are stored, sorted."""
    return [path.stem for path in _paths(directory)]


def remove(directory: Path, provider: str) -> bool:
    """Forgets a provider's snapshot; False where there was none."""
    try:
        (directory / f"{_stem(provider)}.json").unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise OutsideFailed(f"The snapshot of {provider} could not be removed: {error.strerror}.") from error
    return True


def _paths(directory: Path) -> list[Path]:
    try:
        return sorted(path for path in directory.iterdir() if path.suffix == ".json" and not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def _stem(provider: str) -> str:
    """A file name for any provider name; where characters had to go, a digest keeps two names apart."""
    safe = re.sub(r"[^a-z0-9_-]+", "-", provider.casefold()).strip("-")[:60] or "provider"
    return safe if safe == provider else f"{safe}-{hashlib.sha256(provider.encode()).hexdigest()[:8]}"


def _sweep(directory: Path) -> None:
    with suppress(OSError):
        for path in directory.glob(".*.tmp"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink()


def _settle(directory: Path) -> None:
    """The move itself reaches the disk too, where the system can say so for a directory."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _packed(snapshot: Snapshot) -> dict[str, Any]:
    offers = snapshot.offers
    return {
        "format": FORMAT,
        "provider": snapshot.provider,
        "taken": snapshot.day.isoformat(),
        "machines": _rows(snapshot.machines, Machine),
        "regions": _rows(snapshot.regions, Region),
        "skipped": list(snapshot.skipped),
        "offers": {
            "price": [offer.usd_per_hour for offer in offers],
            "price_max": [offer.usd_per_hour_max for offer in offers],
            "machine": _indexed(offer.machine for offer in offers),
            "region": _indexed(offer.region for offer in offers),
            "purchase": _indexed(offer.purchase.value for offer in offers),
            "as_of": _indexed(offer.as_of for offer in offers),
            "verdict": _indexed(offer.verdict.value for offer in offers),
            "why": _indexed(offer.why for offer in offers),
            "source": _indexed(offer.source for offer in offers),
            "notes": _indexed(offer.notes for offer in offers),
        },
    }


def _indexed(values: Iterable[str]) -> dict[str, Any]:
    """Each text once, and for each offer its position; one number where all offers share one text."""
    texts: dict[str, int] = {}
    indices = [texts.setdefault(value, len(texts)) for value in values]
    return {"texts": list(texts), "at": indices if len(texts) > 1 else 0}


def _rows(items: Sequence[Machine] | Sequence[Region], kind: type) -> dict[str, Any]:
    names = [item.name for item in fields(kind)]
    return {"columns": names, "rows": [[_plain(getattr(item, name)) for name in names] for item in items]}


def _plain(value: object) -> object:
    if isinstance(value, Fact):
        return [list(value.sources), value.as_of, list(value.inferred), value.notes]
    return value


def _unpacked(data: Any) -> tuple[Snapshot, OfferColumns]:
    """Raises ValueError, TypeError, KeyError or IndexError on anything that `_packed` did not write."""
    if data["format"] != FORMAT:
        raise ValueError(f"its format is {data['format']!r}, and this version reads {FORMAT}")
    provider = _text(data["provider"])
    machines = tuple(_built(Machine, data["machines"]))
    regions = tuple(_built(Region, data["regions"]))
    skipped = tuple(_text(line) for line in data["skipped"])
    day = date.fromisoformat(data["taken"])
    return Snapshot(provider=provider, day=day, machines=machines, offers=(), regions=regions, skipped=skipped), _columns(
        provider, data["offers"]
    )


def _columns(provider: str, data: Any) -> OfferColumns:
    prices, highest = data["price"], data["price_max"]
    count = len(prices)
    _check_prices(prices)
    _check_prices([price for price in highest if price is not None])
    if len(highest) != count:
        raise ValueError(f"its column price_max has {len(highest)} of {count} values")

    def column(name: str, make: Callable[[Any], T]) -> PackedColumn[T]:
        values, indices = tuple(make(text) for text in data[name]["texts"]), data[name]["at"]
        places = [0] * count if indices == 0 else indices
        if not isinstance(places, list) or len(places) != count:
            raise ValueError(f"its column {name} is not one of {count} values")
        if count and not (set(map(type, places)) == {int} and min(places) >= 0 and max(places) < len(values)):
            raise ValueError(f"its column {name} points outside its texts")
        return PackedColumn(values, places)

    return OfferColumns(
        provider=provider,
        price=prices,
        price_max=highest,
        machine=column("machine", _text),
        region=column("region", _text),
        purchase=column("purchase", Purchase),
        as_of=column("as_of", _day),
        verdict=column("verdict", Verdict),
        why=column("why", _text),
        source=column("source", _text),
        notes=column("notes", _text),
    )


def _check_prices(prices: list[Any]) -> None:
    if prices and not (set(map(type, prices)) <= {float, int} and min(prices) > 0 and max(prices) < math.inf):
        raise ValueError("its prices are not all numbers above zero")


def _no_constant(name: str) -> float:
    raise ValueError(f"it holds {name}")


def _built(kind: type[T], table: Any) -> Iterable[T]:
    wanted: dict[str, tuple[type, ...]] = {item.name: _TYPES.get(str(item.type), (list,)) for item in fields(kind)}  # type: ignore[arg-type]
    names = [_text(name) for name in table["columns"]]
    for row in table["rows"]:
        if len(row) != len(names):
            raise ValueError(f"a row has {len(row)} of {len(names)} values")
        cells = dict(zip(names, row, strict=True))
        for name, value in cells.items():
            if type(value) not in wanted[name]:
                raise TypeError(f"{name} is {str(value)[:40]!r}")
        sources, as_of, inferred, notes = cells["fact"]
        cells["fact"] = Fact(tuple(map(_text, sources)), _text(as_of), tuple(map(_text, inferred)), _text(notes))
        if "owned" in cells:
            cells["owned"] = tuple((_text(region), _machine_count(count)) for region, count in cells["owned"])
        yield kind(**cells)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is not text")
    return value


def _machine_count(value: object) -> int:
    if type(value) is not int or value < 1:
        raise TypeError(f"{str(value)[:40]!r} is not a number of machines")
    return value


def _day(value: object) -> str:
    return date.fromisoformat(_text(value)).isoformat()
