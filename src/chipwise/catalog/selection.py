"""What a user asked for in words, as a question to the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

from chipwise.catalog.chip import Chip, ChipKind
from chipwise.catalog.names import Names
from chipwise.catalog.offer import Purchase, day_number
from chipwise.catalog.query import MachineQuery
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import fold, nearest
from chipwise.units import parse_bytes


def machine_query(
    names: Names,
    *,
    machines: Sequence[str] | None = None,
    chips: Sequence[str] | None = None,
    providers: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    chip_memory: str | None = None,
    total_memory: str | None = None,
    host_memory: str | None = None,
    min_chips: float | None = None,
    max_chips: float | None = None,
    vcpus: float | None = None,
    retired: bool = True,
) -> MachineQuery:
    """Names become keys, quantities become bytes; an unknown name is refused with the nearest ones."""
    return MachineQuery(
        providers=None if not providers else {names.provider(one) for one in providers},
        chips=None if not chips else {chip.name for text in chips for chip in names.chips(text)},
        machines=None if not machines else {key for text in machines for key in _machine_keys(names, text)},
        kinds=None if not kinds else {ChipKind(kind) for kind in kinds},
        min_chips=min_chips,
        max_chips=max_chips,
        min_chip_memory_bytes=None if chip_memory is None else _size(chip_memory),
        min_accelerator_memory_bytes=None if total_memory is None else _size(total_memory),
        min_memory_bytes=None if host_memory is None else _size(host_memory),
        min_vcpus=vcpus,
        retired=retired,
    )


def _machine_keys(names: Names, text: str) -> set[tuple[str, str]]:
    """A machine, a family of machines, or a chip: then every machine that carries it."""
    keys = {machine.key for machine in names.machines_or_none(text) or ()}
    chips = {chip.name for chip in names.chips_or_none(text) or ()}
    keys |= {machine.key for machine in names.catalog.machines if machine.chip in chips}
    if not keys and not chips:
        near = (*names.nearest_machines(text), *names.nearest_chips(text))
        raise UnknownName("machine or chip", text, near[:4])
    return keys


def _size(text: str) -> float:
    """Bytes; a bare number is refused, for 80 would mean bytes to us and gigabytes to the reader."""
    if text.strip().replace(".", "", 1).isdecimal():
        raise BadInput(f"{text.strip()} of what?", remedy=f"Write {text.strip()}GB or {text.strip()}GiB.")
    size = parse_bytes(text)
    if size < 0:
        raise BadInput(f"{text.strip()[:40]} is below zero.", remedy="Write a size such as 80GB.")
    return size


def ability_names(data: Path) -> tuple[str, ...]:
    from chipwise.catalog.ability import rules

    return tuple(dict.fromkeys(rule.ability for rule in rules(data)))


def able_chips(chips: Iterable[Chip], wanted: Sequence[str], data: Path) -> list[Chip]:
    """Those that have every ability; an unknown one is refused with the nearest."""
    if not wanted:
        return list(chips)
    from chipwise.catalog.ability import abilities

    known = ability_names(data)
    for name in wanted:
        if name not in known:
            raise UnknownName("ability", name, nearest(name, known), known=known)
    return [chip for chip in chips if {*wanted} <= {ability.name for ability in abilities(chip, data) if ability.has}]


def age_limit(text: str | None, today: date) -> int | None:
    """The oldest day (yyyymmdd) that a price may be of, from a duration such as 90d or 6 months."""
    if text is None:
        return None
    from chipwise.units import parse_seconds

    oldest = today - timedelta(seconds=min(parse_seconds(text), 3e9))
    return day_number(oldest)


def region_keys(names: Names, texts: Sequence[str] | None) -> set[tuple[str, str]] | None:
    return None if not texts else {region.key for text in texts for region in names.regions(text)}


def purchases(texts: Sequence[str] | None) -> set[Purchase] | None:
    """`spot`, `on-demand`, `reserved` (all of them), `reserved-1y`, ..."""
    if not texts:
        return None
    selected: set[Purchase] = set()
    for text in texts:
        wanted = {purchase for purchase in Purchase if fold(purchase) == fold(text)}
        if fold(text) == "reserved":
            wanted = {purchase for purchase in Purchase if purchase.startswith("reserved")}
        if not wanted:
            options = [*map(str, Purchase), "reserved"]
            raise UnknownName("purchase option", text, nearest(text, options), remedy=f"Known: {', '.join(options)}.")
        selected |= wanted
    return selected


def price_limit(text: str | None, option: str) -> float | None:
    from chipwise.units import parse_usd

    if text is None:
        return None
    value = parse_usd(text)
    if value < 0:
        raise BadInput(f"{option} {text} is below zero.", remedy="Give a price per hour such as 2.50.")
    return value
