"""`chipwise explain`: what a name means, what the thing can do and why not, what it costs, what replaced it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chipwise.cli.options import CatalogName

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.catalog.fact import Fact
    from chipwise.catalog.offer import Offer
    from chipwise.views.explain import ChipMeaning, MachineMeaning, Meaning, RegionMeaning


@click.command()
@click.argument("name", nargs=-1, required=True, type=CatalogName("chip", "machine", "provider", "region", "model"))
@click.option(
    "--with",
    "wanted",
    multiple=True,
    metavar="COMPONENT=VERSION",
    help="Does it run here? cuda=11.6, vllm=0.32, flash-attention=2.",
)
@click.option("--sources", is_flag=True, help="Show where each fact comes from.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def explain(name: tuple[str, ...], wanted: tuple[str, ...], sources: bool, as_json: bool) -> None:
    """Say what NAME means: a chip, machine, EC2 family, region, provider, model or sharing mode.

    With --with it says whether software runs on it instead, and exits with 1 when it is refused.

    \b
    Examples:
      chipwise explain p4de.24xlarge
      chipwise explain h100 --with cuda=11.6
      chipwise explain T4 --with flash-attention=2
      chipwise explain "Elastic Inference"
    """
    from chipwise.api.catalog.explain import explain as find
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import BadInput
    from chipwise.views.explain import ChipMeaning, MachineMeaning, meaning_view

    versions: dict[str, str] = {}
    for pair in wanted:
        component, _, version = pair.partition("=")
        if not component.strip():
            raise BadInput(f"--with {pair} is not COMPONENT=VERSION.", remedy="Write it like --with cuda=11.6, or --with vllm.")
        versions[component] = version
    session = open_session()
    meanings = find(session, " ".join(name), versions)
    refused = [
        f.reason for m in meanings if isinstance(m, ChipMeaning | MachineMeaning) for f in m.findings if f.answer == "refused"
    ]
    if as_json:
        text.show_json(
            {
                "name": " ".join(name),
                "meanings": [meaning_view(session.catalog, session.today, meaning) for meaning in meanings],
            }
        )
    else:
        for i, meaning in enumerate(meanings):
            if i:
                text.show_lines("")
            if isinstance(meaning, ChipMeaning | MachineMeaning) and meaning.findings:
                _show_findings(meaning)
            else:
                _show(session, meaning, sources)
    if refused:
        raise click.exceptions.Exit(1)


def _show(session: Session, meaning: Meaning, sources: bool) -> None:
    from chipwise.cli import text
    from chipwise.views import explain as kinds

    fact = None
    match meaning:
        case kinds.ChipMeaning():
            _show_chip(session, meaning)
            fact = meaning.chip.fact
        case kinds.MachineMeaning():
            _show_machine(session, meaning)
            fact = meaning.machines[0].fact if len(meaning.machines) == 1 else None
        case kinds.RegionMeaning():
            _show_region(meaning)
            fact = meaning.region.fact
        case kinds.ProviderMeaning():
            text.show_title(f"{meaning.provider.name}: {meaning.provider.title}, {meaning.provider.kind}")
            counts = f"{meaning.machines} machine types, {meaning.regions} regions"
            text.show_pairs([("has", counts), ("offers", f"{meaning.offers}, dated {meaning.oldest} to {meaning.newest}")])
        case kinds.Model():
            from chipwise.cli.models import show_model

            show_model(meaning)
        case kinds.Retired():
            status = "no longer exists" if meaning.status == "gone" else "is on its way out"
            text.show_title(f"{meaning.name} {status}. Use {meaning.successor}.")
            text.show_pairs([("why", meaning.reason), ("as of", meaning.as_of)])
            fact = meaning.fact
        case _:
            isolated = {True: "yes", False: "no"}
            text.show_title(f"{meaning.mode}: {meaning.title}")
            memory, faults, speed = meaning.memory_isolation, meaning.fault_isolation, meaning.performance_isolation
            text.show_pairs(
                [
                    ("how", meaning.how),
                    ("tenants", meaning.tenants),
                    ("on", meaning.applies_to),
                    ("isolation", f"memory {isolated[memory]}, faults {isolated[faults]}, performance {isolated[speed]}"),
                    ("good for", meaning.when_to_use),
                ]
            )
    if fact is not None:
        _show_fact(session, fact, sources)


def _show_findings(meaning: ChipMeaning | MachineMeaning) -> None:
    """The answer to --with alone: who asks about software does not want the data sheet."""
    from chipwise.cli import text
    from chipwise.views.explain import ChipMeaning

    if isinstance(meaning, ChipMeaning) and meaning.remark:
        text.show_lines(meaning.remark)
    text.show_title(meaning.chip.name if isinstance(meaning, ChipMeaning) else meaning.name)
    text.show_pairs([(str(finding.answer), finding.reason) for finding in meaning.findings])


def _show_fact(session: Session, fact: Fact, sources: bool) -> None:
    from chipwise.cli import text

    pairs = [("inferred", ", ".join(fact.inferred).replace("_", " ") + " (derived, not read)")] if fact.inferred else []
    if sources:
        known = [(source, session.catalog.sources.get(source)) for source in fact.sources]
        pairs += [
            ("source", f"{k.reference} ({k.date}{', read by then' if k.date_kind == 'read-by' else ''})" if k else s)
            for s, k in known
        ]
        pairs += [("as of", fact.as_of)]
        pairs += [("notes", fact.notes)] if fact.notes else []
    text.show_pairs(pairs)


def _prices(session: Session, cheapest: tuple[Offer, ...], per_chip: bool) -> list[tuple[str, str]]:
    from chipwise.cli import text
    from chipwise.views.catalog import readable
    from chipwise.views.explain import price_view

    pairs: list[tuple[str, str]] = []
    for offer in cheapest:
        view = price_view(session.catalog, session.today, offer)
        by_chip = per_chip and view["usd_per_chip_hour"] is not None
        price = text.money(view["usd_per_chip_hour"] if by_chip else view["usd_per_hour"])
        doubt = f"; doubtful: {offer.why}" if offer.verdict else ""
        location = f"{offer.provider} {offer.machine} in {readable(offer.region)}"
        unit = "h per chip" if by_chip else "h"
        line = f"{offer.purchase} from ${price}/{unit}: {location}, {text.age(view['age_days'])} old{doubt}"
        pairs.append(("price" if not pairs else "", line))
    return pairs


def _labelled(label: str, lines: list[str]) -> list[tuple[str, str]]:
    return [(label if i == 0 else "", line) for i, line in enumerate(lines)]


def _show_chip(session: Session, meaning: ChipMeaning) -> None:
    from chipwise.catalog.chip import Precision
    from chipwise.cli import text

    chip = meaning.chip
    if meaning.remark:
        text.show_lines(meaning.remark)
    capability = f", compute capability {chip.compute_capability}" if chip.compute_capability else ""
    text.show_title(
        f"{chip.name}: {chip.vendor} {chip.kind}, {chip.architecture}{capability}{f', {chip.year}' if chip.year else ''}"
    )
    bandwidth = "" if chip.memory_bytes_per_s is None else f" at {text.number(chip.memory_bytes_per_s / 1e9)} GB/s"
    kind = f" {chip.memory_type}" if chip.memory_type else ""
    usable = "" if chip.memory_bytes is None else f", {text.gib(chip.memory_bytes)} GiB usable"
    pairs = [
        ("memory", f"{text.number(chip.memory_gb)} GiB{kind}{bandwidth}{usable}"),
        ("power", f"{text.number(chip.power_w)} W"),
    ]
    rates = [f"{p} {text.number(chip.rates[p] / 1e12)}" for p in Precision if p in chip.rates]
    pairs += [("TFLOPS", f"dense; int8 in TOPS: {', '.join(rates)}")] if rates else []
    can = [ability.title for ability in meaning.abilities if ability.has]
    pairs += [("can", ", ".join(can))] if can else []
    pairs += _labelled("cannot", [f"{a.title}: {a.reason.partition(';')[0]}" for a in meaning.abilities if a.has is False])
    unknown = [ability.title for ability in meaning.abilities if ability.has is None]
    pairs += [("unknown", ", ".join(unknown) + ": not stated in a source we read")] if unknown else []
    hint = f"; try: chipwise explain {meaning.modes[-1].mode}" if len(meaning.modes) > 1 else ""
    pairs += [("shared", ", ".join(mode.mode for mode in meaning.modes) + hint)]
    for kind, mark in (("MIG", "g."), ("vGPU", "-")):
        slices = [f"{s.profile} x{s.instances}" for s in meaning.slices if mark in s.profile]
        pairs += [(kind, ", ".join(slices))] if slices else []
    listed = f"{text.plural(meaning.machines, 'machine type')}: chipwise machines --chip {chip.name}"
    pairs += [("found in", listed if meaning.machines else "no machine type of the catalog")]
    text.show_pairs(pairs + _prices(session, meaning.cheapest, per_chip=True))


def _show_machine(session: Session, meaning: MachineMeaning) -> None:
    from chipwise.api import chip_memory
    from chipwise.cli import text

    parts = meaning.parts
    if parts is not None:
        text.show_title(f"{parts.text}: {parts.meaning.group} - {parts.meaning.title}")
        pairs = [
            (parts.meaning.letters, f"meant for {parts.meaning.meant_for}"),
            (parts.generation, _generation(parts.generation)),
        ]
        pairs += [(attribute.attribute, attribute.meaning) for attribute in parts.attributes]
        pairs += [(parts.size, parts.size_meaning)] if parts.size and parts.size_meaning else []
        pairs += [] if meaning.machines else [("", "not in the catalog: this follows from the name alone")]
        text.show_pairs(pairs)
    rows: list[tuple[str, str]] = []
    for machine in meaning.machines[:12]:
        known = [f"{text.chips(machine.chip, machine.chips)}"]
        memory = chip_memory(session.catalog, machine)
        known += [f"{text.gib(memory)} GiB each"] if memory else []
        known += [f"{text.number(machine.vcpus)} vCPU"] if machine.vcpus else []
        known += [f"{text.gib(machine.memory_bytes)} GiB RAM"] if machine.memory_bytes else []
        known += [f"{text.number(machine.disk_bytes / 1e9)} GB local disk"] if machine.disk_bytes else []
        known += [f"{text.number(machine.network_bytes_per_s * 8e-9)} Gbit/s"] if machine.network_bytes_per_s else []
        known += [f"fabric {machine.fabric}"] if machine.fabric and machine.fabric != "no" else []
        known += [f"link {machine.link}"] if machine.link else []
        known += ["no longer sold"] if machine.retired else []
        rows.append((f"{machine.provider} {machine.name}", ", ".join(known)))
    text.show_pairs(rows, indent=0)
    if len(meaning.machines) > 12:
        text.show_lines(f"and {len(meaning.machines) - 12} more: chipwise machines {meaning.name}")
    prices = _prices(session, meaning.cheapest, per_chip=False)
    nothing = [("price", "no price known that could be taken")] if meaning.machines else []
    text.show_pairs(_labelled("quota", list(meaning.quotas)) + (prices or nothing))


def _generation(number: str) -> str:
    """4 -> 4th generation; 6tb1 -> 6 TB of memory."""
    if not number.isdigit():
        return f"{number.partition('tb')[0]} TB of memory"
    tail = "th" if number[-2:] in ("11", "12", "13") else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
    return f"{number}{tail} generation"


def _show_region(meaning: RegionMeaning) -> None:
    from chipwise.cli import text

    region = meaning.region
    place = ", ".join(filter(None, (region.location, region.country))) or "place unknown"
    grid = "unknown" if region.grid_g_per_kwh is None else f"{region.grid_g_per_kwh:g} gCO2e/kWh ({region.grid_year})"
    pue = "unknown" if region.pue is None else f"{region.pue:g} ({region.pue_basis})"
    text.show_title(f"{region.name}: region of {region.provider}, {place}")
    chips = (
        f"{text.plural(meaning.machines, 'machine type')} with a price: {', '.join(meaning.chips)}"
        if meaning.machines
        else "no price known"
    )
    text.show_pairs([("grid", grid), ("PUE", pue), ("sells", chips)])
