"""`chipwise machines`: what can be rented or is owned, by what is in it."""

from __future__ import annotations

from typing import Annotated

import typer

from chipwise.cli.options import ChipNames, Csv, Json, Limit, Providers


def machines(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Machine or family: p5, a3-highgpu.", show_default=False)] = None,
    chip: ChipNames = None,
    provider: Providers = None,
    memory: Annotated[str | None, typer.Option("--memory", "-m", help="At least this memory on each chip: 80GB.")] = None,
    total_memory: Annotated[str | None, typer.Option("--total-memory", help="At least this memory on all chips.")] = None,
    host_memory: Annotated[str | None, typer.Option("--host-memory", help="At least this host memory.")] = None,
    min_chips: Annotated[float | None, typer.Option("--min-chips", help="At least so many chips.")] = None,
    max_chips: Annotated[float | None, typer.Option("--max-chips", help="At most so many chips.")] = None,
    vcpus: Annotated[float | None, typer.Option("--vcpus", help="At least so many virtual CPUs.")] = None,
    retired: Annotated[bool, typer.Option("--retired", help="Show what is no longer sold, too.")] = False,
    json: Json = False,
    csv: Csv = False,
    limit: Limit = 40,
) -> None:
    """List machines by chip, memory and provider.

    Examples:  chipwise machines p5  |  chipwise machines --chip h100 --provider gcp  |  chipwise machines --total-memory 640GB
    """
    from chipwise.api.selection import machine_query
    from chipwise.api.views import machine_view
    from chipwise.api.wiring import open_session
    from chipwise.catalog.query import chip_memory, find_machines
    from chipwise.cli import text
    from chipwise.errors import NoResult

    session = open_session()
    query = machine_query(
        session.names, machines=names, chips=chip, providers=provider, chip_memory=memory, total_memory=total_memory,
        host_memory=host_memory, min_chips=min_chips, max_chips=max_chips, vcpus=vcpus, retired=retired or bool(names),
    )  # fmt: skip
    found = [session.catalog.machines[i] for i in find_machines(session.catalog, query)]
    if json:
        text.show_json([machine_view(machine, session.catalog) for machine in found])
    elif csv:
        text.show_csv([machine_view(machine, session.catalog) for machine in found])
    elif found:
        columns = [text.Column("provider", flexible=True), text.Column("machine", flexible=True), text.Column("chips", flexible=True), text.Column("GiB/chip", True)]
        columns += [text.Column("vCPU", True), text.Column("RAM GiB", True), text.Column("Gbit/s", True)]
        shown = found[: limit or None]
        text.show_table(
            columns,
            [
                [
                    m.provider, m.name, text.chips(m.chip, m.chips), text.gib(chip_memory(session.catalog, m)),
                    text.number(m.vcpus), text.gib(m.memory_bytes), text.number(m.network_bytes_per_s and m.network_bytes_per_s * 8e-9),
                ]
                for m in shown
            ],
        )  # fmt: skip
        if len(found) > len(shown):
            text.say(f"{len(found) - len(shown)} more of {len(found)}: add filters, or --limit 0.")
    if not found:
        raise NoResult("No machine fits these filters.", remedy="Loosen one of them; chipwise machines lists all.")
