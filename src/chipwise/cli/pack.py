"""`chipwise pack`: several small models on few chips, in turns or in slices, and what that saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chipwise.cli.options import constraining
from chipwise.text import gib

if TYPE_CHECKING:
    from chipwise.api import Constraints
    from chipwise.views.pack import Packed, Resident, Shared


@click.command()
@click.argument("workloads", metavar="WORKLOAD.yaml...", nargs=-1, required=True)
@click.option("--environment", "-e", default=None, help="Use this environment of the files: prod.")
@constraining("the files'")
@click.option("--json", "as_json", is_flag=True, help="JSON, everything.")
def pack(workloads: tuple[str, ...], environment: str | None, within: Constraints, as_json: bool) -> None:
    """Pack small models onto shared GPUs: which go together, in turns or in MIG slices, and at what cost a month.

    Each file is a service of a language model. Speed and memory of those that share a GPU add up; every model keeps its goals.
    The answer is the cheapest for up to 12 models; beyond that it is a good one, and says so.

    \b
    Examples:
      chipwise pack chat.yaml summaries.yaml
      chipwise pack services/*.yaml --cloud aws
    """
    from chipwise.api import over_file
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import pack as ask
    from chipwise.cli import text
    from chipwise.views.pack import packed_view

    session = open_session()
    contents = [over_file(session.names, path, within) for path in workloads]
    packing = ask(session, workloads, environment, contents)
    if as_json:
        text.show_json(packed_view(packing))
    else:
        _show(packing)


def _show(packing: Packed) -> None:
    from chipwise.cli import text

    models = sum(len(one.residents) for one in packing.machines)
    text.show_title(f"{text.plural(models, 'model')} on {text.plural(len(packing.machines), 'GPU')}")
    saved = packing.apart_usd - packing.usd
    summary = f"{text.number(packing.usd)} USD a month; one chip each would cost {text.number(packing.apart_usd)}"
    text.show_lines(_verdict(summary, saved, packing.apart_usd), "")
    text.show_table(
        [
            text.Column("#", right=True),
            text.Column("where", flexible=True),
            text.Column("chip"),
            text.Column("shared by"),
            text.Column("buy"),
            text.Column("USD/month", right=True),
        ],
        [_row(rank, one) for rank, one in enumerate(packing.machines, start=1)],
    )
    text.show_lines("", "Who is where:")
    text.show_pairs(
        [(f"{rank}", _resident_text(one, at)) for rank, one in enumerate(packing.machines, start=1) for at in one.residents]
    )
    text.show_lines("", *packing.notes)


def _verdict(summary: str, saved: float, apart: float) -> str:
    if saved <= 0.005 * apart:
        return f"{summary}: sharing saves nothing here."
    return f"{summary}: sharing saves {saved / apart:.0%}."


def _row(rank: int, machine: Shared) -> list[str]:
    from chipwise.cli import text

    return [str(rank), machine.title, machine.chip, machine.sharing, machine.purchase, text.number(machine.usd)]


def _resident_text(machine: Shared, resident: Resident) -> str:
    name = f"{resident.name} in {resident.precision}"
    if resident.profile:
        return f"{name}: slice {resident.profile}"
    if resident.share is None or resident.memory_bytes is None:
        return f"{name}: alone"
    memory = f"{gib(resident.memory_bytes)} ({resident.memory_bytes / machine.memory_bytes:.0%})"
    return f"{name}: {resident.share:.0%} of the speed, {memory}"
