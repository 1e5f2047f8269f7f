"""Everything a name can mean, as values: `explain` shows them, `--json` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chipwise.api.session.wiring import Session
from chipwise.catalog import compatibility, ec2, names, sharing
from chipwise.catalog.ability import Ability, abilities
from chipwise.catalog.chip import Chip
from chipwise.catalog.machine import Machine
from chipwise.catalog.names import Retired as Retired
from chipwise.catalog.offer import Offer, iso_day
from chipwise.catalog.query import MachineQuery, OfferQuery, cheapest, find_machines
from chipwise.catalog.region import Region
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import fold, nearest

if TYPE_CHECKING:
    from chipwise.workload.model.registry import Model


@dataclass(frozen=True, slots=True)
class ChipMeaning:
    chip: Chip
    remark: str | None  # when the name could have meant others
    abilities: tuple[Ability, ...]
    modes: tuple[sharing.SharingMode, ...]
    slices: tuple[sharing.Slice, ...]
    findings: tuple[compatibility.Finding, ...]
    machines: int
    cheapest: tuple[Offer, ...]  # per chip, one for each purchase option


@dataclass(frozen=True, slots=True)
class MachineMeaning:
    """One machine, or the members of a family. `parts` where the name follows EC2's rules."""

    name: str
    machines: tuple[Machine, ...]
    parts: ec2.Ec2Name | None
    findings: tuple[compatibility.Finding, ...]
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


@dataclass(frozen=True, slots=True)
class ModelMeaning:
    model: Model


Meaning = Retired | ChipMeaning | MachineMeaning | RegionMeaning | ProviderMeaning | ModelMeaning | sharing.SharingMode


def explain(session: Session, text: str, wanted: Mapping[str, str]) -> list[Meaning]:
    """All meanings of a name; UnknownName with the nearest of every sort when there is none."""
    if not text.strip():
        raise BadInput("The name is empty.", remedy="Try: chipwise explain h100")
    meanings: list[Meaning] = []
    data = session.catalog.data
    retired = names.find_retired(text, data)
    if retired is not None:
        meanings.append(retired)
    if session.names.chips_or_none(text) is not None:
        meanings.append(_chip(session, text, wanted))
    machine = _machine(session, text, wanted)
    # A chip's name that a provider also gave to a machine, or that looks like an EC2 family nobody has, means the chip.
    if machine is not None and not (meanings and (machine.parts is None or not machine.machines) and retired is None):
        meanings.append(machine)
    meanings.extend(_region(session, region) for region in session.names.regions_or_none(text) or ())
    provider = session.names.provider_or_none(text)
    if provider is not None:
        meanings.append(_provider(session, provider))
    meanings.extend(mode for mode in sharing.modes(data) if fold(text) in (fold(mode.mode), fold(mode.title)))
    if not meanings:
        meanings.extend(_model(session, text))
    if not meanings:
        known = (*session.catalog.chips, *(m.name for m in session.catalog.machines), *session.catalog.providers)
        known += (*(r.name for r in session.catalog.regions), *(m.mode for m in sharing.modes(data)), *session.models.names)
        raise UnknownName("chip, machine, region, provider or model", text, nearest(text, known))
    if wanted and not any(isinstance(meaning, ChipMeaning | MachineMeaning) for meaning in meanings):
        raise BadInput(
            f"--with asks about a chip or a machine, and {text!r} is neither.", remedy="Try: explain h100 --with cuda=12.4"
        )
    return meanings


def _cheapest(session: Session, query: MachineQuery, per_chip: bool) -> tuple[Offer, ...]:
    best = cheapest(session.catalog, OfferQuery(query), session.year_ago, per_chip)
    return tuple(session.catalog.offers[i] for i in best.values())


def _chip(session: Session, text: str, wanted: Mapping[str, str]) -> ChipMeaning:
    resolved = session.names.one_chip(text)
    data = session.catalog.data
    query = MachineQuery(chips={resolved.chip.name})
    slices = tuple(s for s in (*sharing.mig_profiles(data), *sharing.vgpu_profiles(data)) if s.chip == resolved.chip.name)
    return ChipMeaning(
        chip=resolved.chip,
        remark=resolved.remark,
        abilities=abilities(resolved.chip, data),
        modes=sharing.modes_of(resolved.chip, data),
        slices=slices,
        findings=compatibility.check(resolved.chip, wanted, data) if wanted else (),
        machines=len(find_machines(session.catalog, query)),
        cheapest=_cheapest(session, query, per_chip=True),
    )


def _machine(session: Session, text: str, wanted: Mapping[str, str]) -> MachineMeaning | None:
    catalog = session.catalog
    parts = ec2.parse(text, catalog.data)
    machines = session.names.machines_or_none(text) or ()
    if parts is not None and parts.size is None and not machines:
        machines = session.names.machines_of_longer_family(text)
    if parts is not None and machines and not any(machine.provider == "aws" for machine in machines):
        parts = None
    if parts is None and not machines:
        return None
    chips = {m.chip: catalog.chips[m.chip] for m in machines if m.chip is not None and m.chip in catalog.chips}
    findings = tuple(f for chip in chips.values() for f in compatibility.check(chip, wanted, catalog.data)) if wanted else ()
    # A quota names families (p4d) or, for the standard classes, letters (c).
    family = "" if parts is None else parts.family.partition("-")[0]
    accelerated = parts is not None and parts.meaning.group in ("accelerated", "high performance computing")
    wanted_names = {family, family.rstrip("nus"), family[:2]} if accelerated else {parts.meaning.letters} if parts else set()
    quotas = tuple(
        f"{quota.name}: {quota.default or 'default not found'} {quota.unit} by default"
        for quota in catalog.rows("quotas")
        if quota.provider == "aws" and wanted_names & set(quota.families.split())
    )
    keys = {machine.key for machine in machines}
    cheapest = _cheapest(session, MachineQuery(machines=keys), per_chip=False) if keys else ()
    return MachineMeaning(name=text, machines=tuple(machines), parts=parts, findings=findings, cheapest=cheapest, quotas=quotas)


def _region(session: Session, region: Region) -> RegionMeaning:
    catalog = session.catalog
    index = catalog.region_index[region.key]
    machines = {m for m, r in zip(catalog.offers.machine, catalog.offers.region, strict=True) if r == index}
    chips = dict.fromkeys(catalog.machines[m].chip or "" for m in sorted(machines))
    return RegionMeaning(region, len(machines), tuple(filter(None, chips)))


def _provider(session: Session, name: str) -> ProviderMeaning:
    catalog = session.catalog
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


def _model(session: Session, text: str) -> list[Meaning]:
    try:
        return [ModelMeaning(session.models.find(text))]
    except UnknownName:
        return []
