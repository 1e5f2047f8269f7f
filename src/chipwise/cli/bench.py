"""`chipwise bench`: the same work on several engines or machines, measured beside what was predicted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chipwise.cli.options import Listing, played
from chipwise.cli.parameter_types import Duration, WholeNumber

if TYPE_CHECKING:
    from chipwise.views.bench import Result


@click.command()
@click.argument("workload", metavar="WORKLOAD.yaml")
@click.option(
    "--on",
    cls=Listing,
    names=played,
    multiple=True,
    required=True,
    metavar="PLACE",
    help="Run here: {names}, or a name of engines.yaml; may be repeated.",
)
@click.option("--repeat", type=WholeNumber(1, 100), default=1, help="Run this many times at each place.")
@click.option("--steps", type=WholeNumber(1, 10**9), default=None, help="Do this many steps of chipwise.job; default: all.")
@click.option("--longest", type=Duration(), default=None, help="Stop each run after this time: 2m.")
@click.option("--environment", "-e", default=None, help="Use this environment of the file: prod.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Write rows that `chipwise calibrate` reads, as CSV."
)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures of all runs as JSON.")
def bench(
    workload: str,
    on: tuple[str, ...],
    repeat: int,
    steps: int | None,
    longest: float | None,
    environment: str | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Run the same work on several machines, one after the other, and compare measured speed and cost with the prediction.

    A PLACE is local, local:gpus=1, local:cpus=2, kubernetes, kubernetes:CONTEXT, ec2:INSTANCE_TYPE, a name of engines.yaml, or
    simulated, which is no measurement. Speed is counted from the steps that the program reports (chipwise.job),
    without those of its first second. An interrupt (Ctrl-C) stops what was started.

    \b
    Examples:
      chipwise bench workload.yaml --on local:cpus=1 --on local:cpus=2
      chipwise bench workload.yaml --on local:gpus=1 --steps 200 --out runs.csv
      chipwise calibrate runs.csv
    """
    from chipwise.api.measure import bench as benching
    from chipwise.api.measure import places as benching_places
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.interrupting import ended_like_ctrl_c
    from chipwise.cli.progress import progress
    from chipwise.views.bench import result_view

    _check(out, force)
    session = open_session()
    work = benching_places.checked(session, workload, environment)
    wanted = benching_places.BenchRequest(
        path=workload,
        work=work,
        places=benching_places.places(session, on),
        repeat=repeat,
        steps=steps,
        longest=longest,
        environment=environment,
    )
    if out is not None:
        benching.check_rows(session, wanted)
    with ended_like_ctrl_c(), progress("running") as report:
        results = benching.bench(session, wanted, report, text.say)
    if as_json:
        text.show_json([result_view(one) for one in results])
    else:
        _show(results)
    if out is not None:
        from chipwise.api.measure.profile import write

        table, left_out = benching.rows(session, wanted, results)
        text.say(*left_out)
        if table:
            write(out, table, force)
            text.say(f"Written: {out}")
    if any(one.speed is None and not one.formula for one in results) or (out is not None and not table):
        raise click.exceptions.Exit(1)


def _check(out: Path | None, force: bool) -> None:
    """What can be told before minutes of running."""
    from chipwise.errors import BadInput

    if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise BadInput(f"{out} cannot be written.", remedy="Give a file in an existing folder.")
    if out is not None:
        from chipwise.api.measure.profile import check_out

        check_out(out, force)


def _show(results: list[Result]) -> None:
    from chipwise.cli import text
    from chipwise.text import duration

    units = list(dict.fromkeys(one.unit for one in results if one.unit)) or ["steps"]
    per, scale = ("million ", 1e6) if units[0] == "tokens" else ("", 1.0)
    columns = [
        text.Column("on", flexible=True, fold=True),
        *(
            text.Column(name, right=True)
            for name in (f"{units[0]}/s", "spread", "predicted", "(from", "to)", "ratio", "USD", "a run", "attempts")
        ),
    ]
    rows, details = [], []
    for result in results:
        low, high = (result.predicted.get(f"throughput_{end}") for end in ("low", "high"))
        rows.append(
            [
                result.place.text,
                "formula" if result.formula else text.number(result.speed),
                "" if result.spread is None else f"{result.spread:.1%}",
                text.number(result.expected),
                text.number(low) if isinstance(low, float) else "",
                text.number(high) if isinstance(high, float) else "",
                "" if result.ratio is None else f"{result.ratio:.2f}",
                "-" if result.usd_per_unit is None else _dollars(result.usd_per_unit * scale),
                "" if result.seconds is None else duration(result.seconds),
                "" if result.formula else str(result.attempts),
            ]
        )
        details.append(_below(result))
    # What no place has takes no room: that leaves it to their names.
    visible = [at for at in range(len(columns)) if at < 2 or any(row[at] not in ("", "-") for row in rows)]
    titles = [columns[at].title for at in visible]
    text.show_table([columns[at] for at in visible], [[row[at] for at in visible] for row in rows], details)
    ratio = "Ratio: measured over predicted. " if "ratio" in titles else ""
    usd = f"USD: of machines, for one {per}{_singular(units[0])}, where their price is known." if "USD" in titles else ""
    text.show_lines("", *filter(None, [f"{ratio}{usd}".strip()]))
    for result in results:
        if cause := result.reason:
            prefix = f"{len(result.runs) - len(result.speeds)} of {len(result.runs)} runs at " if result.speeds else ""
            text.show_lines(f"{prefix}{result.place.text} was not measured: {cause}.")
        if reason := result.predicted.get("why_not"):
            text.show_lines(f"{result.place.text} was not predicted: {str(reason).rstrip('.')}.")


def _dollars(usd: float) -> str:
    """A step of a processor costs so little that its noughts would take the room of all else."""
    from chipwise.text import number as number_text

    return number_text(usd) if usd >= 1e-4 else f"{usd:.2e}"


def _singular(unit: str) -> str:
    return unit if unit == "tokens" else unit[:-1] if unit.endswith("s") else unit


def _below(result: Result) -> str:
    from chipwise.cli import text
    from chipwise.views.bench import Allocation

    allocation = result.allocation
    hardware = ""
    if isinstance(allocation, Allocation):
        share = f"{allocation.share:.1%} of " if allocation.share < 1 else ""
        hardware = f"{share}{text.chips(allocation.chip, allocation.chips)}"
    parts = [hardware, "a formula: not run" if result.formula else text.plural(len(result.speeds), "run")]
    if provenance := result.predicted.get("provenance"):
        parts.append(f"predicted {_WORDS.get(str(provenance), str(provenance))}")
    if neighbours := max((run.neighbours for run in result.runs), default=0):
        parts.append(f"{text.plural(neighbours, 'other job')} at the same time")
    return "; ".join(filter(None, parts))


_WORDS = {
    "measured": "from your runs",
    "interpolated": "close to measurements",
    "between": "between measurements",
    "other software": "from other software",
    "formula": "without measurements",
}
