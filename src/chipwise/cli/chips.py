"""`chipwise chips`: list chips, or set some side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from chipwise.catalog.chip import Chip, ChipKind, Precision
from chipwise.cli.options import CatalogName, listed, listing

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.catalog.catalog import Catalog


@click.command(no_args_is_help=False)
@click.argument("names", nargs=-1, metavar="[NAME]...", type=CatalogName("chip"))
@click.option("--kind", "-k", type=click.Choice([str(kind) for kind in ChipKind]), help="Only this kind.")
@click.option("--vendor", help="Only this vendor.")
@listed("--can", complete="ability", metavar="ABILITY,...", help="Only chips that can: fp8, mig, ...")
@listing(limit=0)
def chips(
    names: tuple[str, ...], kind: str | None, vendor: str | None, can: tuple[str, ...], as_json: bool, as_csv: bool, limit: int
) -> None:
    """List chips, or set the named ones side by side in the columns people compare.

    A family name alone (h100) shows its members; among others it stands for its most common form.

    \b
    Examples:
      chipwise chips A100 H100 T4
      chipwise chips h100
      chipwise chips --kind tpu --json
    """
    from chipwise.api import able_chips
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import NoResult
    from chipwise.views.catalog import chip_view

    session = open_session()
    notes: list[str] = []
    selected: list[Chip] = []
    if names and len(names) > 1:
        # Side by side each name stands for one chip; alone, a family name shows the whole family.
        for name in names:
            resolved = session.names.one_chip(name)
            selected.append(resolved.chip)
            notes.extend([resolved.remark] if resolved.remark else [])
    elif names:
        selected = list(session.names.chips(names[0]))
    else:
        selected = sorted(
            session.catalog.chips.values(), key=lambda chip: (list(ChipKind).index(chip.kind), chip.vendor, chip.year or 0)
        )
    selected = list({chip.name: chip for chip in selected}.values())
    if kind is not None:
        selected = [chip for chip in selected if chip.kind == kind]
    if vendor is not None:
        selected = [chip for chip in selected if chip.vendor.casefold() == vendor.casefold()]
    selected = able_chips(selected, can, session.catalog.data)
    is_printed = text.show_views(lambda: [chip_view(chip, session.catalog) for chip in selected], as_json, as_csv)
    if names and not is_printed:
        for start in range(0, len(selected), 4):
            side_by_side(selected[start : start + 4], session)
    elif selected and not is_printed:
        show_list(selected[: limit or None])
    text.say(*notes)
    if not selected:
        raise NoResult("No chip fits these filters.", remedy="Try fewer of them: chipwise chips lists all.")


def show_list(selected: Sequence[Chip]) -> None:
    from chipwise.cli.text import Column, number, show_lines, show_table

    columns = [Column("chip", flexible=True), Column("kind"), Column("year", True), Column("GiB", True), Column("GB/s", True)]
    columns += [Column("fp32", True), Column("16-bit", True), Column("fp8", True), Column("int8", True), Column("W", True)]
    rows = []
    for chip in selected:
        half = chip.rate(Precision.BF16) or chip.rate(Precision.FP16)
        rates = (chip.rate(Precision.FP32), half, chip.rate(Precision.FP8), chip.rate(Precision.INT8))
        bandwidth = chip.memory_bytes_per_s and chip.memory_bytes_per_s / 1e9
        rows.append(
            [chip.name, str(chip.kind), str(chip.year or "-"), number(chip.memory_gb), number(bandwidth)]
            + [number(rate and rate / 1e12, 3) for rate in rates]
            + [number(chip.power_w)]
        )
    show_table(columns, rows)
    show_lines("Rates in TFLOPS (int8: TOPS), dense. Side by side: chipwise chips A100 H100 T4")


def side_by_side(selected: Sequence[Chip], session: Session) -> None:
    from chipwise.api import abilities
    from chipwise.cli.text import Column, number, show_lines, show_table

    marked = False
    cannot = [{a.name for a in abilities(chip, session.catalog.data) if a.has is False} for chip in selected]

    def row(title: str, field: str, values: Sequence[float | str | None], unit: str = "") -> list[str]:
        nonlocal marked
        cells = []
        for chip, value, lacks in zip(selected, values, cannot, strict=True):
            cell = number(value) if isinstance(value, int | float) else (value or ("no" if field in lacks else "-"))
            guessed = value is not None and field in chip.fact.inferred
            marked = marked or guessed
            cells.append(f"{cell}*" if guessed else cell)
        return [f"{title}{f' ({unit})' if unit else ''}", *cells]

    def scaled(scale: float, *values: float | None) -> list[float | None]:
        return [None if value is None else value / scale for value in values]

    s = [chip.silicon for chip in selected]
    rows = [
        row("vendor", "vendor", [c.vendor for c in selected]),
        row("kind", "kind", [str(c.kind) for c in selected]),
        row("architecture", "architecture", [c.architecture for c in selected]),
        row("compute capability", "compute_capability", [str(c.compute_capability or c.target or "-") for c in selected]),
        row("year", "year", [str(c.year or "-") for c in selected]),
        row("cores", "cores", [x.cores for x in s]),
        row("tensor cores", "tensor_cores", [x.tensor_cores for x in s]),
        row("ray-tracing cores", "rt_cores", [x.rt_cores for x in s]),
        row("SM / CU / NeuronCores", "units", [x.units for x in s]),
        row("memory", "memory_gb", [c.memory_gb for c in selected], "GiB"),
        row("  usable", "memory_bytes", scaled(2**30, *(c.memory_bytes for c in selected)), "GiB"),
        row("memory type", "memory_type", [c.memory_type for c in selected]),
        row("memory bus", "memory_bus_bits", [x.memory_bus_bits for x in s], "bit"),
        row("bandwidth", "memory_bytes_per_s", scaled(1e9, *(c.memory_bytes_per_s for c in selected)), "GB/s"),
        row("L2 cache", "l2_bytes", scaled(2**20, *(x.l2_bytes for x in s)), "MiB"),
        row("clock, base", "base_mhz", [x.base_mhz for x in s], "MHz"),
        row("clock, boost", "boost_mhz", [x.boost_mhz for x in s], "MHz"),
    ]
    for p in Precision:
        unit = "TOPS" if p is Precision.INT8 else "TFLOPS"
        rows.append(row(str(p).replace("_", " "), str(p), scaled(1e12, *(c.rate(p) for c in selected)), unit))
    rows += [
        row("chip-to-chip link", "interconnect", [c.interconnect for c in selected]),
        row("  both ways", "link_bytes_per_s", scaled(1e9, *(c.link_bytes_per_s for c in selected)), "GB/s"),
        row("PCIe generation", "pcie_gen", [c.pcie_gen for c in selected]),
        row("power", "power_w", [c.power_w for c in selected], "W"),
        row("MIG slices", "mig_slices", [c.mig_slices for c in selected]),
        row("video encoders", "encoders", [x.encoders for x in s]),
        row("video decoders", "decoders", [x.decoders for x in s]),
        row("process", "process_nm", [x.process_nm for x in s], "nm"),
        row("die", "die_mm2", [x.die_mm2 for x in s], "mm2"),
        row("transistors", "transistors", scaled(1e9, *(x.transistors for x in s)), "billion"),
        row("launch price", "launch_price_usd", [c.launch_price_usd for c in selected], "USD"),
        row("bought for", "", [bought_for(c.name, session.catalog) for c in selected], "USD"),
        row("rented from", "", [rented_from(c.name, session) for c in selected], "USD/h"),
        row("as of", "as_of", [c.fact.as_of for c in selected]),
    ]
    rows = [r for r in rows if any(cell not in ("-", "") for cell in r[1:])]
    show_table([Column(""), *(Column(chip.name, right=True, flexible=True, fold=True) for chip in selected)], rows)
    show_lines(
        "Rates are dense. - : not stated in a source we read."
        + (" * : derived or inferred, not printed by the vendor." if marked else "")
    )


def bought_for(chip: str, catalog: Catalog) -> str | None:
    """The newest street or list price of one board, and its year."""
    rows = [
        row
        for row in catalog.rows("boards")
        if row.chip == chip and row.unit == "board" and row.basis != "estimate" and row.usd_low
    ]
    if not rows:
        return None
    newest = max(rows, key=lambda row: (row.fact.as_of, row.basis == "street"))
    return f"{newest.usd_low / (newest.chips or 1):,.0f} ({newest.fact.as_of[:4]})"


def rented_from(chip: str, session: Session) -> str | None:
    """The lowest real on-demand price of a whole chip and hour."""
    from chipwise.api import MachineQuery, OfferQuery, cheapest
    from chipwise.catalog.offer import Purchase
    from chipwise.cli.text import money

    query = OfferQuery(MachineQuery(chips={chip}, min_chips=1), purchases={Purchase.ON_DEMAND})
    index = cheapest(session.catalog, query, session.year_ago, per_chip=True).get(Purchase.ON_DEMAND)
    if index is None:
        return None
    offers = session.catalog.offers
    return money(offers.price[index] / (session.catalog.machines[offers.machine[index]].chips or 1))
