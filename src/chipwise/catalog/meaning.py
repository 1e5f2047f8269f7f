"""Everything a name of the catalog can mean, as values: `explain` shows them, `--json` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.catalog import compatibility, ec2, names, sharing
from chipwise.catalog.ability import Ability, abilities
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import Chip
from chipwise.catalog.machine import Machine
from chipwise.catalog.names import Names, Retired
from chipwise.catalog.offer import Offer, iso_day
from chipwise.catalog.query import MachineQuery, OfferQuery, cheapest, find_machines
from chipwise.catalog.region import Region
from chipwise.spelling import fold


@dataclass(frozen=True, slots=True)
class ChipMeaning:
    chip: Chip
    remark: str | None  # when the name could have meant others
    abilities: tuple[Ability, ...]
    modes: tuple[sharing.SharingMode, ...]
    slices: tuple[sharing.Slice, ...]
    findings: tuple[compatibility.Compatibility, ...]
    machines: int
    cheapest: tuple[Offer, ...]  # per chip, one for each purchase option


@dataclass(frozen=True, slots=True)
class MachineMeaning:
    """One machine, or the members of a family. `parts` where the name follows EC2's rules."""

    name: str
    machines: tuple[Machine, ...]
    parts: ec2.Ec2Name | None
    findings: tuple[compatibility.Compatibility, ...]
    cheapest: tuple[Offer, ...]
    quotas: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RegionMeaning:
    region: Region
    machines: int
    chips: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProviderMeaning:
    provider: names.Provider
    machines: int
    regions: int
    offers: int
    newest: str
    oldest: str


CatalogMeaning = Retired | ChipMeaning | MachineMeaning | RegionMeaning | ProviderMeaning | sharing.SharingMode


def meanings(names_known: Names, text: str, wanted: Mapping[str, str], fresh_since: int) -> list[CatalogMeaning]:
    """All meanings of a name. `wanted`: software that is asked about; `fresh_since`: the day (yyyymmdd) from which on a price
    counts where the cheapest is named."""
    look = _Look(names_known, wanted, fresh_since)
    data = names_known.catalog.data
    found: list[CatalogMeaning] = []
    retired = names.find_retired(text, data)
    if retired is not None:
        found.append(retired)
    if names_known.chips_or_none(text) is not None:
        found.append(look.chip(text))
    machine = look.machine(text)
    # A chip's name that a provider also gave to a machine, or that looks like an EC2 family nobody has, means the chip.
    if machine is not None and not (found and (machine.parts is None or not machine.machines) and retired is None):
        found.append(machine)
    found.extend(_region(names_known.catalog, region) for region in names_known.regions_or_none(text) or ())
    provider = names_known.provider_or_none(text)
    if provider is not None:
        found.append(_provider(names_known.catalog, provider))
    found.extend(mode for mode in sharing.modes(data) if fold(text) in (fold(mode.mode), fold(mode.title)))
    return found


@dataclass(frozen=True, slots=True)
class _Look:
    names: Names
    wanted: Mapping[str, str]
    fresh_since: int

    def cheapest(self, query: MachineQuery, per_chip: bool) -> tuple[Offer, ...]:
        best = cheapest(self.names.catalog, OfferQuery(query), self.fresh_since, per_chip)
        return tuple(self.names.catalog.offers[i] for i in best.values())

    def chip(self, text: str) -> ChipMeaning:
        resolved = self.names.one_chip(text)
        data = self.names.catalog.data
        query = MachineQuery(chips={resolved.chip.name})
        slices = tuple(s for s in (*sharing.mig_profiles(data), *sharing.vgpu_profiles(data)) if s.chip == resolved.chip.name)
        return ChipMeaning(
            chip=resolved.chip,
            remark=resolved.remark,
            abilities=abilities(resolved.chip, data),
            modes=sharing.modes_of(resolved.chip, data),
            slices=slices,
            findings=compatibility.check(resolved.chip, self.wanted, data) if self.wanted else (),
            machines=len(find_machines(self.names.catalog, query)),
            cheapest=self.cheapest(query, per_chip=True),
        )

    def machine(self, text: str) -> MachineMeaning | None:
        catalog = self.names.catalog
        parts = ec2.parse(text, catalog.data)
        machines = self.names.machines_or_none(text) or ()
        if parts is not None and parts.size is None and not machines:
            machines = self.names.machines_of_longer_family(text)
        if parts is not None and machines and not any(machine.provider == "aws" for machine in machines):
            parts = None
        if parts is None and not machines:
            return None
        chips = {m.chip: catalog.chips[m.chip] for m in machines if m.chip is not None and m.chip in catalog.chips}
        findings = (
            tuple(f for chip in chips.values() for f in compatibility.check(chip, self.wanted, catalog.data))
            if self.wanted
            else ()
        )
        # A quota names families (p4d) or, for the standard classes, letters (c).
        family = "" if parts is None else parts.family.partition("-")[0]
        accelerated = parts is not None and parts.meaning.group in ("accelerated", "high performance computing")
        wanted_names = (
            {family, family.rstrip("nus"), family[:2]} if accelerated else {parts.meaning.letters} if parts else set()
        )
        quotas = tuple(
            f"{quota.name}: {quota.default or 'default not found'} {quota.unit} by default"
            for quota in catalog.rows("quotas")
            if quota.provider == "aws" and wanted_names & set(quota.families.split())
        )
        keys = {machine.key for machine in machines}
        cheapest = self.cheapest(MachineQuery(machines=keys), per_chip=False) if keys else ()
        return MachineMeaning(
            name=text, machines=tuple(machines), parts=parts, findings=findings, cheapest=cheapest, quotas=quotas
        )


def _region(catalog: Catalog, region: Region) -> RegionMeaning:
    index = catalog.region_index[region.key]
    machines = {m for m, r in zip(catalog.offers.machine, catalog.offers.region, strict=True) if r == index}
    chips = dict.fromkeys(catalog.machines[m].chip or "" for m in sorted(machines))
    return RegionMeaning(region, len(machines), tuple(filter(None, chips)))


def _provider(catalog: Catalog, name: str) -> ProviderMeaning:
    listed = {provider.name: provider for provider in names.providers(catalog.data)}
    days = sorted(
        day
        for day, machine in zip(catalog.offers.as_of, catalog.offers.machine, strict=True)
        if catalog.machines[machine].provider == name
    )

    return ProviderMeaning(
        provider=listed.get(name, names.own_provider(name)),
        machines=sum(machine.provider == name for machine in catalog.machines),
        regions=sum(region.provider == name for region in catalog.regions),
        offers=len(days),
        newest=iso_day(days[-1]) if days else "-",
        oldest=iso_day(days[0]) if days else "-",
    )
