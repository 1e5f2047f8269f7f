"""`chipwise machines`: what can be rented or is owned, by what is in it."""

from __future__ import annotations

import click

from chipwise.cli.options import CatalogName, kinds, listed, listing
from chipwise.cli.parameter_types import Amount


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", type=CatalogName("machine"))
@listed("--chip", "-c", complete="chip", help="Chip or family (h100), or several.")
@listed("--provider", "-p", complete="provider", help="Cloud or provider, or several.")
@kinds()
@click.option("--memory", "-m", metavar="SIZE", help="At least this memory on each chip: 80GB.")
@click.option("--total-memory", metavar="SIZE", help="At least this memory on all chips.")
@click.option("--host-memory", metavar="SIZE", help="At least this host memory.")
@click.option("--min-chips", type=Amount(), help="At least so many chips.")
@click.option("--max-chips", type=Amount(), help="At most so many chips.")
@click.option("--vcpus", type=Amount(), help="At least so many virtual CPUs.")
@click.option("--retired", is_flag=True, help="Show what is no longer sold, too.")
@listing(limit=40)
def machines(
    names: tuple[str, ...],
    chip: tuple[str, ...],
    provider: tuple[str, ...],
    kind: tuple[str, ...],
    memory: str | None,
    total_memory: str | None,
    host_memory: str | None,
    min_chips: float | None,
    max_chips: float | None,
    vcpus: float | None,
    retired: bool,
    as_json: bool,
    as_csv: bool,
    limit: int,
) -> None:
    """List machines by chip, memory and provider.

    NAME is a machine or a family: p5, a3-highgpu, Standard_ND96isr_H100_v5.

    \b
    Examples:
      chipwise machines p5
      chipwise machines --chip h100 --provider gcp
      chipwise machines --total-memory 640GB --json
    """
    from chipwise.api import cheapest_on_demand, chip_memory, find_machines, machine_query
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.errors import NoResult
    from chipwise.views.catalog import machine_view

    session = open_session()
    query = machine_query(
        session.names,
        machines=names,
        chips=chip,
        providers=provider,
        kinds=kind,
        chip_memory=memory,
        total_memory=total_memory,
        host_memory=host_memory,
        min_chips=min_chips,
        max_chips=max_chips,
        vcpus=vcpus,
        retired=retired or bool(names),
    )
    selected = [session.catalog.machines[i] for i in find_machines(session.catalog, query)]
    selected.sort(key=lambda m: (m.provider, m.chip or "", m.chips or 0.0, m.vcpus or 0.0, m.name))
    is_printed = text.show_views(lambda: [machine_view(machine, session.catalog) for machine in selected], as_json, as_csv)
    if selected and not is_printed:
        page = selected[: limit or None]
        prices = cheapest_on_demand(session.catalog, session.year_ago)
        columns = [text.Column("provider", flexible=True), text.Column("machine", flexible=True, fold=True)]
        columns += [text.Column("chips", flexible=True, fold=True), text.Column("GiB/chip", True), text.Column("vCPU", True)]
        columns += [text.Column("RAM GiB", True), text.Column("Gbit/s", True), text.Column("$/h", True)]
        rows = []
        for machine in page:
            speeds = [speed for speed in (machine.network_bytes_per_s, machine.fabric_bytes_per_s) if speed]
            price = "retired" if machine.retired else text.money(prices.get(machine.key))
            rows.append(
                [
                    machine.provider,
                    machine.name,
                    text.chips(machine.chip, machine.chips),
                    text.gib(chip_memory(session.catalog, machine)),
                    text.number(machine.vcpus),
                    text.gib(machine.memory_bytes),
                    text.number(max(speeds) * 8e-9 if speeds else None),
                    price,
                ]
            )
        text.show_table(columns, rows)
        text.show_lines("Gbit/s: network or fabric, the faster. $/h: cheapest on-demand region, - where there is none.")
        text.say_more(len(page), len(selected))
    if not selected:
        raise NoResult("No machine fits these filters.", remedy="Loosen one of them; chipwise machines lists all.")
