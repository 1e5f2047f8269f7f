"""`chipwise pack`: several small models on few chips, in turns or in slices, and what that saves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chipwise.cli.options import constraining

if TYPE_CHECKING:
    from chipwise.api.quick import Constraints
    from chipwise.planner.several.pack import Packed, Resident, Shared


@click.command()
@click.argument("workloads", metavar="WORKLOAD.yaml...", nargs=-1, required=True)
@click.option("--environment", "-e", default=None, help="An environment of the files, such as prod.")
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
    from chipwise.api.quick import over_file
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import pack as ask
    from chipwise.api.views.pack import packed_view
    from chipwise.cli import text

    session = open_session()
    contents = [over_file(session, path, within) for path in workloads]
    found = ask(session, workloads, environment, contents)
    if as_json:
        text.show_json(packed_view(found))
    else:
        _show(found)


def _show(found: Packed) -> None:
    from chipwise.cli import text

    models = sum(len(one.residents) for one in found.machines)
    text.show_title(f"{text.plural(models, 'model')} on {text.plural(len(found.machines), 'GPU')}")
    saved = found.apart_usd - found.usd
    told = f"{text.number(found.usd)} USD a month; one chip each would cost {text.number(found.apart_usd)}"
    text.show_lines(_verdict(told, saved, found.apart_usd), "")
    text.show_table(
        [
            text.Column("#", right=True),
            text.Column("where", flexible=True),
            text.Column("chip"),
            text.Column("shared by"),
            text.Column("buy"),
            text.Column("USD/month", right=True),
        ],
        [_row(rank, one) for rank, one in enumerate(found.machines, start=1)],
    )
    text.show_lines("", "Who is where:")
    text.show_pairs([(f"{rank}", _told(one, at)) for rank, one in enumerate(found.machines, start=1) for at in one.residents])
    text.show_lines("", *found.notes)


def _verdict(told: str, saved: float, apart: float) -> str:
    if saved <= 0.005 * apart:
        return f"{told}: sharing saves nothing here."
    return f"{told}: sharing saves {saved / apart:.0%}."


def _row(rank: int, one: Shared) -> list[str]:
    from chipwise.cli import text

    return [str(rank), one.where, one.chip, one.how, one.purchase, text.number(one.usd)]


def _told(one: Shared, at: Resident) -> str:
    name = f"{at.name} in {at.precision}"
    if at.profile:
        return f"{name}: slice {at.profile}"
    if at.share is None or at.memory_bytes is None:
        return f"{name}: alone"
    memory = f"{at.memory_bytes / 2**30:.1f} GiB ({at.memory_bytes / one.memory_bytes:.0%})"
    return f"{name}: {at.share:.0%} of the speed, {memory}"
