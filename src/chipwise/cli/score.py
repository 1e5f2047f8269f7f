"""`chipwise score`: predictions against a file of measurements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chipwise.text import percent

if TYPE_CHECKING:
    from chipwise.api.measure.score import Score
    from chipwise.views.score import Figures

_ROW_LIMIT = 8  # names of a column, and reasons; --json has all


@click.command()
@click.argument("path", metavar="FILE")
@click.option("--out", type=click.Path(path_type=Path), help="Write all rows with what was predicted as CSV.")
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
@click.option(
    "--leave-out",
    type=click.Choice(("group", "configuration", "chip", "source")),
    help="Answer each row as if its model on its chip, its configuration, its chip or its source had never been seen.",
)
@click.option("--folds", type=click.IntRange(2, 1000), help="Set the number of fits of --leave-out; default: 6, 5, 8 or 10.")
@click.option("--no-own", is_flag=True, help="Leave your own calibration and profiles out.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON; errors and shares are fractions.")
def score(
    path: str, out: Path | None, force: bool, leave_out: str | None, folds: int | None, no_own: bool, as_json: bool
) -> None:
    """Score predictions against the measurements in FILE, CSV or JSON lines; a dash reads standard input.

    Columns: model, task, chip, metric_name, metric_value and what else was set; others are kept and ignored. Rows without
    a metric_value are predicted and not scored.

    \b
    Examples:
      chipwise score measured.csv --out predictions.csv
      chipwise score measured.csv --leave-out group --json
    """
    from chipwise.api.measure.score import Ask
    from chipwise.api.measure.score import score as find
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.progress import progress
    from chipwise.views.score import predictions, view

    _check(out, force, folds, leave_out)
    ask = Ask(leave_out, folds, not no_own)
    session, typed = open_session(), standard_input() if path == "-" else None
    if leave_out is None:
        result = find(session, path, typed, ask, lambda done, total, what: None)
    else:
        with progress("fitting without them") as report:
            result = find(session, path, typed, ask, report)
    if out is not None:
        from chipwise.api.measure.profile import write

        write(out, predictions(result), force)
    if as_json:
        text.show_json(view(result))
    else:
        _show(result, leave_out)
    if out is not None:
        text.say(f"Written: {out}")


def standard_input() -> bytes:
    import sys

    from chipwise.api.measure.score import LARGEST

    return b"" if sys.stdin is None else sys.stdin.buffer.read(4 * int(LARGEST) + 1)


def _check(out: Path | None, force: bool, folds: int | None, leave_out: str | None) -> None:
    """What can be told before minutes of fitting."""
    from chipwise.errors import BadInput

    if folds is not None and leave_out is None:
        raise BadInput("--folds says how --leave-out fits.", remedy="Add --leave-out group, configuration or chip.")
    if out is None:
        return
    if str(out) == "-" or out.is_dir():
        raise BadInput(f"--out {out} is not a file.", remedy="Give the name of a file to write.")
    from chipwise.api.measure.profile import check_out

    check_out(out, force)


def _show(result: Score, leave_out: str | None) -> None:
    from chipwise.cli import text

    rows, overall = result.measured.rows, result.overall
    refused = sum(count for _, count in result.refused)
    scored = overall.rows if overall else 0
    blank = sum(one.predicted is not None for one in result.answers) - scored
    counts = [f"{text.plural(len(rows), 'row')}", f"{scored:,} scored", f"{refused:,} refused"]
    if blank:
        counts.append(f"{blank:,} predicted without a measured value")
    text.show_title(f"{result.measured.name}: {', '.join(counts)}")
    if overall:
        text.show_pairs(_figures(result, overall, leave_out))
    text.show_pairs([("note", note) for note in result.notes])
    if overall:
        for name, members in result.groups.items():
            _table(name, members)
    _reasons("Answered by a guess:", result.guessed)
    _reasons("Refused:", result.refused)


def _reasons(title: str, reasons: list[tuple[str, int]]) -> None:
    from chipwise.cli import text

    if not reasons:
        return
    listed = reasons[:_ROW_LIMIT]
    text.show_lines("", title)
    text.show_pairs([(f"{count:,}", reason) for reason, count in listed])
    if len(reasons) > len(listed):
        text.show_lines(f"  and {len(reasons) - len(listed)} more reasons")


def _figures(result: Score, overall: Figures, leave_out: str | None) -> list[tuple[str, str]]:
    from chipwise.cli.text import plural

    right, pairs = result.pairs
    peaks = result.peak_errors
    source = "the packaged factors and your own measurements" if result.own else "the packaged factors"
    rows = [
        ("answered by", f"fits without the row's {leave_out}" if leave_out else source),
        ("median error", percent(overall.median_ape)),
        ("90th percentile", percent(overall.p90_ape)),
        ("within 25%", percent(overall.within_25pct)),
        ("inside the interval", f"{percent(overall.interval_coverage)} (80% is meant)"),
        ("interval width", f"{percent(overall.interval_width)} of the prediction, median"),
    ]
    if pairs:
        rows.append(("right order", f"{right:,} of {pairs:,} pairs ({percent(right / pairs)}) that differ by 10% or more"))
    if peaks:
        middle = sorted(peaks)[len(peaks) // 2]
        summary = f"{plural(len(peaks), 'row')}, median error {percent(middle)}, worst {percent(max(peaks))}"
        rows.append(("peak memory", summary))
    return rows


def _table(name: str, members: dict[str, Figures]) -> None:
    from chipwise.cli import text

    titles = ("rows", "median", "90th", "within 25%", "inside", "width")
    columns = [text.Column(f"by {name}", flexible=True), *(text.Column(title, True) for title in titles)]
    shares = ("median_ape", "p90_ape", "within_25pct", "interval_coverage", "interval_width")
    listed = list(members.items())[:_ROW_LIMIT]
    text.show_lines("")
    text.show_table(
        columns,
        [[value, f"{one.rows:,}", *(percent(getattr(one, share)) for share in shares)] for value, one in listed],
    )
    if len(members) > len(listed):
        text.show_lines(f"and {len(members) - len(listed)} more")
