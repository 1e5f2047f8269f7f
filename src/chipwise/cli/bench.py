"""`chipwise bench`: the same work on several engines or machines, measured beside what was predicted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chipwise.cli.options import Duration, Listing, Whole, played

if TYPE_CHECKING:
    from chipwise.api.measure.bench import Result


@click.command()
@click.argument("workload", metavar="WORKLOAD.yaml")
@click.option(
    "--on",
    cls=Listing,
    names=played,
    multiple=True,
    required=True,
    metavar="PLACE",
    help="Where to run it: {names}, or a name of engines.yaml; repeat for several.",
)
@click.option("--repeat", type=Whole(1, 100), default=1, help="Runs at each place; their spread is shown.")
@click.option("--steps", type=Whole(1, 10**9), default=None, help="Of chipwise.job to do in each run; all unless given.")
@click.option("--longest", type=Duration(), default=None, help="That one run is watched, as 2m; then it is stopped.")
@click.option("--environment", "-e", default=None, help="An environment of the workload file, such as prod.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None, help="Write rows that `chipwise calibrate` reads, as CSV."
)
@click.option("--json", "as_json", is_flag=True, help="All figures of all runs as JSON.")
def bench(
    workload: str,
    on: tuple[str, ...],
    repeat: int,
    steps: int | None,
    longest: float | None,
    environment: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run the same work on several machines, one after the other, and compare measured speed and cost with the prediction.

    A PLACE is local, local:gpus=1, local:cpus=2, kubernetes, kubernetes:CONTEXT, ec2:INSTANCE_TYPE, a name of engines.yaml, or
    simulated, which is a formula and no measurement. Speed is counted from the steps that the program tells (chipwise.job),
    without those of its first second. An interrupt (Ctrl-C) stops what was started.

    \b
    Examples:
      chipwise bench workload.yaml --on local:cpus=1 --on local:cpus=2
      chipwise bench workload.yaml --on local:gpus=1 --steps 200 --repeat 3 --out runs.csv
      chipwise calibrate runs.csv
    """
    from chipwise.api.measure import bench as benching
    from chipwise.api.measure import places as benching_places
    from chipwise.api.measure import rows as benching_rows
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.progress import progress

    _check(out)
    session = open_session()
    work = benching_places.checked(session, workload, environment)
    wanted = benching_places.Wanted(workload, work, benching_places.places(session, on), repeat, steps, longest, environment)
    if out is not None:
        benching_rows.check_rows(session, wanted)
    with _ended_like_ctrl_c(), progress("running") as report:
        found = benching.bench(session, wanted, report, text.say)
    if as_json:
        text.show_json([benching_rows.view(one) for one in found])
    else:
        _show(found)
    if out is not None:
        from chipwise.api.measure.profile import write

        table, left_out = benching_rows.rows(session, wanted, found)
        text.say(*left_out)
        if table:
            write(out, table)
            text.say(f"Written: {out}")
    if any(one.speed is None and not one.formula for one in found) or (out is not None and not table):
        raise click.exceptions.Exit(1)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Whoever ends it otherwise than by Ctrl-C wants the same: nothing left running."""
    import signal
    import threading

    def end(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _check(out: Path | None) -> None:
    """What can be told before minutes of running."""
    from chipwise.errors import BadInput

    if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise BadInput(f"{out} cannot be written.", remedy="Give a file in a folder that is there.")


def _show(found: list[Result]) -> None:
    from chipwise.cli import text
    from chipwise.text import duration

    units = list(dict.fromkeys(one.unit for one in found if one.unit)) or ["steps"]
    per, scale = ("million ", 1e6) if units[0] == "tokens" else ("", 1.0)
    columns = [
        text.Column("on", flexible=True, fold=True),
        *(
            text.Column(name, right=True)
            for name in (f"{units[0]}/s", "spread", "predicted", "(from", "to)", "ratio", "USD", "a run", "attempts")
        ),
    ]
    rows, under = [], []
    for one in found:
        low, high = (one.predicted.get(f"throughput_{end}") for end in ("low", "high"))
        rows.append(
            [
                one.place.text,
                "formula" if one.formula else text.number(one.speed),
                "" if one.spread is None else f"{one.spread:.1%}",
                text.number(one.expected),
                text.number(low) if isinstance(low, float) else "",
                text.number(high) if isinstance(high, float) else "",
                "" if one.ratio is None else f"{one.ratio:.2f}",
                "-" if one.usd_per_unit is None else _dollars(one.usd_per_unit * scale),
                "" if one.seconds is None else duration(one.seconds),
                "" if one.formula else str(one.attempts),
            ]
        )
        under.append(_below(one))
    # What no place has takes no room: that leaves it to their names.
    shown = [at for at in range(len(columns)) if at < 2 or any(row[at] not in ("", "-") for row in rows)]
    titles = [columns[at].title for at in shown]
    text.show_table([columns[at] for at in shown], [[row[at] for at in shown] for row in rows], under)
    ratio = "Ratio: measured over predicted. " if "ratio" in titles else ""
    usd = f"USD: of machines, for one {per}{_singular(units[0])}, where their price is known." if "USD" in titles else ""
    text.show_lines("", *filter(None, [f"{ratio}{usd}".strip()]))
    for one in found:
        if why := one.why:
            some = f"{len(one.runs) - len(one.speeds)} of {len(one.runs)} runs at " if one.speeds else ""
            text.show_lines(f"{some}{one.place.text} was not measured: {why}.")
        if reason := one.predicted.get("why_not"):
            text.show_lines(f"{one.place.text} was not predicted: {str(reason).rstrip('.')}.")


def _dollars(usd: float) -> str:
    """A step of a processor costs so little that its noughts would take the room of all else."""
    from chipwise.text import number as number_text

    return number_text(usd) if usd >= 1e-4 else f"{usd:.2e}"


def _singular(unit: str) -> str:
    return unit if unit == "tokens" else unit[:-1] if unit.endswith("s") else unit


def _below(one: Result) -> str:
    from chipwise.api.running.predicting import Held
    from chipwise.cli import text

    held = one.held
    what = ""
    if isinstance(held, Held):
        share = f"{held.share:.1%} of " if held.share < 1 else ""
        what = f"{share}{text.chips(held.chip, held.chips)}"
    told = [what, "a formula: not run" if one.formula else text.plural(len(one.speeds), "run")]
    if how := one.predicted.get("provenance"):
        told.append(f"predicted {_WORDS.get(str(how), str(how))}")
    if beside := max((run.beside for run in one.runs), default=0):
        told.append(f"{text.plural(beside, 'other job')} at the same time")
    return "; ".join(filter(None, told))


_WORDS = {"measured": "from your runs", "interpolated": "near measurements", "formula": "by formula"}
