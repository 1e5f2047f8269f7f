"""`chipwise profile`: measure the device at hand, or look at a profile."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from chipwise.views.profile import Line, Profiled

_NEWEST = "-"  # --show without a name
_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@click.command()
@click.option("--quick", is_flag=True, help="Measure fewer sizes, for half a minute instead of three.")
@click.option("--seconds", type=click.FloatRange(1, 86400), help="Measure for about this long.")
@click.option(
    "--device", type=click.Choice(("auto", "cuda", "cpu")), default="auto", show_default=True, help="Measure this device."
)
@click.option("--chip", help="Give the chip's catalog name, if the driver does not.")
@click.option("--out", type=click.Path(path_type=Path), help="Also write the profile here.")
@click.option("--picture", type=click.Path(path_type=Path), help="Write the roofline as SVG.")
@click.option("--force", is_flag=True, help="Overwrite these files if they exist.")
@click.option(
    "--show",
    is_flag=False,
    flag_value=_NEWEST,
    default=None,
    metavar="[NAME]",
    help="Measure nothing; show a stored profile, or a file.",
)
@click.option("--forget", metavar="NAME", help="Remove a stored profile.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def profile(
    quick: bool,
    seconds: float | None,
    device: str,
    chip: str | None,
    out: Path | None,
    picture: Path | None,
    force: bool,
    show: str | None,
    forget: str | None,
    as_json: bool,
) -> None:
    """Measure this machine's GPU (or processor) with PyTorch: memory, matrix products, attention, launches, a layer.

    The profile is kept in the data directory, and predictions for that chip use it.

    \b
    Examples:
      chipwise profile --quick --picture roofline.svg
      chipwise profile --show h200
    """
    from chipwise.api.measure import profile as profiling
    from chipwise.api.session.wiring import open_session
    from chipwise.cli import text
    from chipwise.cli.progress import progress
    from chipwise.errors import BadInput
    from chipwise.views import profile as views

    for path in (out, picture):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            raise BadInput(f"{path} cannot be written.", remedy="Give the name of a file in an existing directory.")
        if path is not None:
            profiling.check_out(path, force)
    session = open_session()
    if forget is not None:
        removed = profiling.forget(session, forget)
        if as_json:
            text.show_json({"forgotten": str(removed)})
        else:
            text.show_lines(f"Forgotten: {removed}.")
        return
    if show is not None:
        result = profiling.show(session, None if show == _NEWEST else show)
    else:
        with progress("measuring") as report:
            result = profiling.measure(session, profiling.Wish(quick, device, chip, seconds), report)
    if out is not None:
        profiling.write(out, profiling.dump(result.profile), force)
    if picture is not None:
        profiling.write(picture, views.picture(result), force)
    if as_json:
        text.show_json(views.view(result))
    else:
        _show(result, measured=show is None)
    text.say(*(f"Written: {path}" for path in (out, picture) if path is not None))


def _show(result: Profiled, measured: bool) -> None:
    from chipwise.cli import text
    from chipwise.views.profile import lines

    profile = result.profile
    text.show_title(f"{profile.device}: {text.plural(len(profile.samples), 'sample')}, {profile.date}")
    pairs = [
        ("chip", result.part.name if result.part else "not in the catalog; --chip names it"),
        ("software", profile.software),
    ]
    text.show_pairs(pairs + [("note", note) for note in profile.notes[:6]])
    text.show_table(
        [
            text.Column("what"),
            text.Column("best", True),
            text.Column("of the sheet", True),
            text.Column("at", flexible=True),
        ],
        [
            [line.title, quantity(line), "-" if line.share is None else f"{100 * line.share:.0f}%", line.size]
            for line in lines(result)
        ],
    )
    text.show_lines(*_effect(result, measured))


def _effect(result: Profiled, measured: bool) -> list[str]:
    """What predictions make of it."""
    if result.offset is None or result.measured is None or result.expected is None:
        return ["Predictions do not use it: it is of no chip in the catalog."]
    sides = []
    for name, share, expected, log in (
        ("arithmetic", result.measured.half, result.expected.half, result.offset.compute),
        ("memory", result.measured.memory, result.expected.memory, result.offset.memory),
    ):
        if share is not None and expected is not None:
            change = math.expm1(log)
            moved = "as predicted" if abs(change) < 0.0005 else f"{abs(change):.1%} {'slower' if change > 0 else 'faster'}"
            sides.append(f"{name} {share:.0%} of the sheet, {expected:.0%} assumed: {moved}")
    lines = [f"Large matrix products and reading weights: {'; '.join(sides)}."]
    if measured and result.path is not None:
        lines.append(f"Stored in {result.path}; predictions for {result.offset.chip} use it from now on.")
    return lines


def quantity(line: Line) -> str:
    if line.unit == "s":
        factor, unit = (1e-6, "us") if line.value < 1e-3 else (1e-3, "ms")
        return f"{line.value / factor:.3g} {unit}"
    for factor, prefix in _PREFIXES:
        if line.value >= factor * 0.9995:
            return f"{line.value / factor:.3g} {prefix}{line.unit}"
    return f"{line.value:.3g} {line.unit}"
