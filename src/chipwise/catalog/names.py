"""The names people type, resolved: chips, families of chips, machines, families of machines, providers, regions.

A family name means all its members where a filter is meant, and its common form (SXM) where one chip is needed; the
answer says which was taken, so that nobody is surprised. Spelling counts as little as possible: `H100 SXM`, `h100-sxm`
and `NVIDIA H100_SXM` are one name.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import Chip, ChipKind
from chipwise.catalog.fact import Fact
from chipwise.catalog.machine import Machine
from chipwise.catalog.offer import PURCHASES, Purchase
from chipwise.catalog.region import Region
from chipwise.catalog.tables import read_rows
from chipwise.countries import CONTINENTS, GROUPS, country_of, members
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import fold, nearest

_BRANDS = (
    "nvidia",
    "tesla",
    "geforce",
    "quadro",
    "amd",
    "instinct",
    "radeon",
    "aws",
    "amazon",
    "google",
    "cloud",
    "intel",
    "habana",
    "xilinx",
    "qualcomm",
)

_OWN = ("own", "owned", "mine", "local", "onprem", "onpremise", "onpremises", "selfhosted")  # words for machines of one's own
_VENDORS = {"amazon": "aws", "gcp": "google", "xilinx": "amdxilinx"}  # that makers of chips go by, too


class Provider(NamedTuple):
    """Who rents machines, the names it goes by, and how long its offers last.

    Durable: nine of ten offers can be rented again a month later, in the same place, at most a tenth dearer. Where nobody could
    look a second time (`observed` is false) that is assumed of clouds and GPU clouds, and not of marketplaces.
    """

    name: str
    title: str
    kind: str  # cloud | gpu cloud | marketplace
    aliases: str
    durable: bool
    listing: str  # price list | stock | auction | hand-kept; empty: not known
    observed: bool
    kept_30d: float | None  # share of offers
    gone_30d: float | None


def own_provider(name: str) -> Provider:
    """One that a user's own files name: their word lasts."""
    return Provider(
        name=name,
        title=name,
        kind="your own",
        aliases="",
        durable=True,
        listing="",
        observed=True,
        kept_30d=None,
        gone_30d=None,
    )


class Retired(NamedTuple):
    """Something people still ask for, and what to use instead."""

    name: str
    pattern: str
    what: str
    status: str  # gone | going
    successor: str
    reason: str
    sources: str
    as_of: str

    @property
    def fact(self) -> Fact:
        return Fact((self.sources,), self.as_of)


@dataclass(frozen=True, slots=True)
class OneChip:
    """The chip a name was taken for; `remark` tells the reader when the name could have meant others."""

    chip: Chip
    remark: str | None


@lru_cache(maxsize=4)
def providers(data: Path) -> tuple[Provider, ...]:
    return tuple(read_rows(data / "providers.csv", Provider))


@lru_cache(maxsize=4)
def retired_things(data: Path) -> tuple[Retired, ...]:
    return tuple(read_rows(data / "retired.csv", Retired))


def find_retired(text: str, data: Path) -> Retired | None:
    name = re.sub(r"[\s_-]+", "", text.strip().lower().removeprefix("amazon ").removeprefix("aws "))
    return next((thing for thing in retired_things(data) if re.fullmatch(thing.pattern, name)), None)


class Names:
    """Every name of one catalog, indexed once by its folded form."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._canonical = {fold(chip.name): chip.name for chip in catalog.chips.values()}
        self._aliases: dict[str, str] = {}
        self._groups: dict[str, list[str]] = {}
        for chip in catalog.chips.values():
            for alias in (*chip.aliases, chip.name.removeprefix("RTX-"), chip.name.removeprefix("Jetson-")):
                self._aliases.setdefault(fold(alias), chip.name)
            for group in dict.fromkeys((chip.family, chip.family.removeprefix("Jetson-"), _line(chip))):
                self._groups.setdefault(fold(group), []).append(chip.name)
        self._machines: dict[str, list[int]] = {}
        self._families: dict[str, list[int]] = {}
        for i, machine in enumerate(catalog.machines):
            self._machines.setdefault(fold(machine.name), []).append(i)
            for family in machine_families(machine):
                self._families.setdefault(fold(family), []).append(i)
        self._providers = {
            fold(name): p.name for p in providers(catalog.data) for name in (p.name, p.title, *p.aliases.split("|")) if name
        }
        self._providers |= {fold(name): name for name in catalog.providers}

    # -- chips

    def chips(self, text: str) -> tuple[Chip, ...]:
        """All chips a filter by this name means; UnknownName with the nearest when there is none."""
        chips = self.chips_or_none(text)
        if chips is None:
            raise UnknownName("chip", text, self.nearest_chips(text))
        return chips

    def chips_or_none(self, text: str) -> tuple[Chip, ...] | None:
        """A chip's own name, a family or a line (`h100`, `trainium`), a family with memory and form (`A100 80GB`), an alias."""
        chips = self.catalog.chips
        for name in _without_brands(text):
            own = self._canonical.get(name)
            if own is not None and fold(chips[own].family) != name:
                return (chips[own],)
            if name in self._groups:
                return tuple(chips[member] for member in self._groups[name])
            if described := self._described(name):
                return described
            if name in self._aliases:
                return (chips[self._aliases[name]],)
        return None

    def chips_of(self, text: str) -> tuple[Chip, ...] | None:
        """As `chips_or_none`, and a vendor's name means all accelerators that it makes (`amd` no EPYC), an architecture or
        a kind all chips of it (`hopper`, `cpu`, `gpus`): for limits, where one chip is not what is asked."""
        matches = self.chips_or_none(text)
        vendor = _VENDORS.get(fold(text), fold(text))
        chips = self.catalog.chips.values()
        vendor_chips = tuple(chip for chip in chips if fold(chip.vendor) == vendor and chip.kind is not ChipKind.CPU)
        kind_chips = tuple(chip for chip in chips if fold(chip.kind) == fold(text).removesuffix("s"))
        built = tuple(chip for chip in chips if _is_built_as(chip, text))
        return matches if matches is not None else vendor_chips or kind_chips or built or None

    def _described(self, name: str) -> tuple[Chip, ...]:
        """`h10080gbhbm3`, `a100sxm480gb`: the members of the longest family that the rest of the name fits."""
        for family in sorted((group for group in self._groups if name.startswith(group)), key=len, reverse=True):
            rest = name.removeprefix(family)
            words = re.findall(r"sxm\d?|pcie|nvl|oam|hbm\d?e?|\d{2,}(?:gb?)?|gpus?|ac", rest)
            if not rest or "".join(words) != rest:
                continue
            candidates = [self.catalog.chips[member] for member in self._groups[family]]
            for word in words:
                candidates = [chip for chip in candidates if _fits(chip, word)]
            if candidates:
                return tuple(candidates)
        return ()

    def one_chip(self, text: str) -> OneChip:
        """Exactly one chip: the common form of a family, and a sentence that says so."""
        candidates = self.chips(text)
        # The marked form of a family; of several generations the one in most machines; else the one with most memory.
        common = [chip for chip in candidates if chip.common]
        machines = [machine.chip for machine in self.catalog.machines] if len(common) > 1 else []
        chosen = max(
            common or candidates,
            key=lambda chip: (machines.count(chip.name), chip.year or 0) if common else (chip.memory_gb or 0.0, 0),
        )
        if len(candidates) == 1 or fold(text) == fold(chosen.name):
            return OneChip(chosen, None)
        alternatives = ", ".join(chip.name for chip in candidates if chip is not chosen)
        return OneChip(chosen, f"{text} is taken as {chosen.name}, the most common form; there are also {alternatives}.")

    def nearest_chips(self, text: str) -> tuple[str, ...]:
        names = (*self.catalog.chips, *(chip.family for chip in self.catalog.chips.values()))
        return nearest(next(iter(_without_brands(text))), names)

    def chip_index(self) -> dict[str, str]:
        """Folded names to chip names, for those who bring rows of their own: exact names, aliases, then common forms."""
        index = {group: self.one_chip(group).chip.name for group in self._groups}
        return {**index, **self._aliases, **self._canonical}

    # -- machines

    def machines(self, text: str) -> tuple[Machine, ...]:
        """All machines a name or a family name (`p5`, `a3`, `trn1`) means."""
        machines = self.machines_or_none(text)
        if machines is None:
            raise UnknownName("machine", text, self.nearest_machines(text))
        return machines

    def chip_within(self, name: str) -> str | None:
        """The chip for a name as people, drivers and tables write it, of a machine, or within a longer name."""
        if self.chips_or_none(name) is not None:
            return self.one_chip(name).chip.name
        machines = self.machines_or_none(name)
        if machines and machines[0].chip:
            return machines[0].chip
        wanted = fold(name)
        words = {fold(word): word for chip in self.catalog.chips.values() for word in (chip.name, chip.family)}
        matches = [key for key in words if len(key) >= 3 and key in wanted and any(sign.isdigit() for sign in key)]
        return self.one_chip(words[max(matches, key=len)]).chip.name if matches else None

    def machines_or_none(self, text: str) -> tuple[Machine, ...] | None:
        before, mark, after = re.sub(r"[\s/:]+", "\0", text.strip(), count=1).partition("\0")
        if mark and (provider := self._providers.get(fold(before))) is not None:
            provider_machines = tuple(machine for machine in self._machines_called(after) or () if machine.provider == provider)
            return provider_machines or None
        return self._machines_called(text)

    def _machines_called(self, text: str) -> tuple[Machine, ...] | None:
        name = fold(re.sub(r"\.(\d*)xl$", r".\1xlarge", text.strip().lower().removeprefix("ml.")))
        positions = self._machines.get(name) or self._machines.get("standard" + name) or self._machines.get("tpu" + name)
        positions = positions or self._families.get(name)
        return None if positions is None else tuple(self.catalog.machines[i] for i in positions)

    def machines_of_longer_family(self, text: str) -> tuple[Machine, ...]:
        """`p4` -> the machines of p4d and p4de: families that only add attributes to what was typed."""
        wanted = fold(text)
        longer = [family for family in self._families if re.fullmatch(re.escape(wanted) + "[a-z]{1,3}", family)]
        return tuple(self.catalog.machines[i] for family in longer for i in self._families[family])

    def nearest_machines(self, text: str) -> tuple[str, ...]:
        return nearest(text, (machine.name for machine in self.catalog.machines))

    # -- providers and regions

    def provider(self, text: str) -> str:
        provider = self._providers.get(fold(text))
        if provider is None and self.means_own(text):
            owners = tuple(dict.fromkeys(self.catalog.machines[at].provider for at in self.own_machines()))
            raise UnknownName("provider", text, owners, remedy=f"Your own machines have the provider {' or '.join(owners)}.")
        if provider is None:
            raise UnknownName(
                "provider", text, nearest(text, self.catalog.providers), remedy=f"Known: {', '.join(self.catalog.providers)}."
            )
        return provider

    def own_machines(self) -> list[int]:
        """Of those who described some: indices of machines, in the order of their offers."""
        offers, owned = self.catalog.offers, PURCHASES.index(Purchase.OWNED)
        machines = [at for at, purchase in zip(offers.machine, offers.purchase, strict=True) if purchase == owned]
        if not machines:
            raise BadInput(
                "You have no machines of your own in the catalog.",
                remedy="`chipwise catalog import servers.csv` adds them; `chipwise catalog import --help` says what the file "
                "holds.",
            )
        return machines

    def means_own(self, text: str) -> bool:
        """A word for machines of one's own, which are of any provider."""
        return fold(text) in _OWN

    def provider_or_none(self, text: str) -> str | None:
        return self._providers.get(fold(text))

    def regions(self, text: str) -> tuple[Region, ...]:
        regions = self.regions_or_none(text)
        if regions is None:
            if (place := country_of(text)) is not None:
                raise BadInput(f"No region of the catalog is in {text.strip()}.", remedy=self._countries_near(place))
            known = {word for region in self.catalog.regions for word in (region.name, region.country) if word}
            raise UnknownName("region or country", text, nearest(text, sorted({*known, *GROUPS})))
        return regions

    def _countries_near(self, place: str) -> str:
        """Those of the same continent that have one."""
        continent = next((name for name in CONTINENTS if members(place) <= GROUPS[name]), None)
        near = sorted(
            {region.country for region in self.catalog.regions if region.country} & GROUPS.get(continent or "", set())
        )
        return (
            f"In {continent.title()} there are regions in {', '.join(near)}."
            if continent and near
            else "See `chipwise regions`."
        )

    def regions_or_none(self, text: str) -> tuple[Region, ...] | None:
        """By name, `provider/name`, a country in any spelling, EU, EEA, a continent, a city, or what several names begin with
        (`us-east`, `eu-west`)."""
        wanted = text.strip().casefold()
        if not wanted:
            return None
        provider, slash, name = text.partition("/")
        if slash and (known := self._providers.get(fold(provider))):
            wanted = name.strip().casefold()
            return tuple(r for r in self.catalog.regions if r.provider == known and r.name.casefold() == wanted) or None
        place = country_of(text)
        inside = members(place) if place else frozenset[str]()
        # us-east-1 is one region and us-east1 another: separators count unless nothing is spelled so.
        matches = tuple(r for r in self.catalog.regions if r.name.casefold() == wanted or r.country in inside)
        if not inside and not wanted[-1].isdigit():
            matches += self._numbered(wanted, frozenset(region.provider for region in matches))
        return matches or tuple(r for r in self.catalog.regions if fold(r.name) == fold(text)) or self._in_city(wanted)

    def _numbered(self, wanted: str, named: Container[str]) -> tuple[Region, ...]:
        """One provider has a region us-east, and whoever writes so means us-east-1 and us-east4 of others, too; but of Azure,
        which has eastus and eastus2, the first alone."""
        numbered = re.compile(rf"{re.escape(wanted)}-?\d+", re.IGNORECASE)
        return tuple(r for r in self.catalog.regions if r.provider not in named and numbered.fullmatch(r.name))

    def _in_city(self, wanted: str) -> tuple[Region, ...] | None:
        city = re.compile(rf"\b{re.escape(wanted)}\b", re.IGNORECASE)
        found = (region for region in self.catalog.regions if region.location and city.search(region.location))
        return (tuple(found) or None) if len(wanted) > 3 else None


def names_of(catalog: Catalog) -> Names:
    return catalog.derived("names", lambda: Names(catalog))


def _without_brands(text: str) -> Iterable[str]:
    """The folded name, then the same with one vendor's name after the other taken from its front, and `GPU` from its end."""
    name = fold(text)
    yield name
    trimmed = name.removesuffix("gpus").removesuffix("gpu")
    while brand := next((brand for brand in _BRANDS if trimmed.startswith(brand) and len(trimmed) > len(brand)), None):
        trimmed = trimmed.removeprefix(brand)
        yield trimmed
    if trimmed == name.removesuffix("gpus").removesuffix("gpu") != name:
        yield trimmed


def _line(chip: Chip) -> str:
    """What several generations share, where people use it as a name: Trainium, Inferentia, Gaudi, Graviton, TPU, Jetson."""
    match = re.match(r"(Trainium|Inferentia|Gaudi|Graviton|TPU|Jetson|Hailo|EPYC|Xeon)", chip.name)
    return match[1] if match else chip.family


def _is_built_as(chip: Chip, text: str) -> bool:
    """`hopper`, `nvidia hopper`, and `blackwell` also of Blackwell Ultra."""
    wanted, architecture = fold(text).removeprefix(fold(chip.vendor)), chip.architecture or ""
    return len(wanted) > 2 and wanted in {fold(architecture), fold(architecture.split(" ")[0])}


def _fits(chip: Chip, word: str) -> bool:
    """Whether one word behind a family's name speaks of this member."""
    if word.startswith("sxm"):
        return "pcie" not in chip.name.lower() and "nvl" not in chip.name.lower()
    if word in ("pcie", "nvl"):
        return word in chip.name.lower()
    if word.startswith("hbm"):
        return (chip.memory_type or "").lower() == word
    if word[0].isdigit():
        return chip.memory_gb is not None and abs(chip.memory_gb - float(word.rstrip("gb"))) < 1
    return True


def machine_families(machine: Machine) -> tuple[str, ...]:
    """The shorter names a provider's own naming gives a machine: p5, a3-highgpu, ND_H100_v5."""
    match machine.provider:
        case "aws":
            family = machine.name.partition(".")[0]
            letters = re.match("[a-z]+", family)
            line = (letters[0],) if letters and len(letters[0]) > 1 else ()  # trn, inf, hpc
            return tuple(dict.fromkeys((family, family.partition("-")[0], *line)))
        case "gcp":
            parts = machine.name.split("-")
            return tuple(dict.fromkeys((parts[0], "-".join(parts[:2])))) if len(parts) > 1 else (machine.name,)
        case "azure":
            parts_match = re.fullmatch(r"Standard_([A-Z]+)\d+([a-z]*)(?:-\d+)?((?:_[A-Za-z0-9]+)*)", machine.name)
            return (parts_match[1] + parts_match[3], parts_match[1] + parts_match[2] + parts_match[3]) if parts_match else ()
        case "oci":
            parts = machine.name.split(".")
            return tuple(".".join(parts[:n]) for n in (2, 3) if len(parts) > n)
        case "ibm":
            return (machine.name.partition("-")[0],)
        case _:
            return ()
