"""`chipwise rate`: the star table of hardware families, computed for a workload, with the numbers behind each star."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from chipwise.cli.options import constraining

if TYPE_CHECKING:
    from chipwise.api import Constraints
    from chipwise.views.rate import Rated, Rating

_TITLES = {"performance": "speed", "cost": "cost", "energy": "energy", "frameworks": "software", "ease": "ease"}


@click.command()
@click.argument("workloads", metavar="WORKLOAD.yaml...", nargs=-1, required=True)
@click.option("--environment", "-e", default=None, help="Use this environment of the files: prod.")
@constraining()
@click.option("--why", is_flag=True, help="Also the numbers behind each star.")
@click.option("--json", "as_json", is_flag=True, help="JSON, everything.")
@click.pass_context
def rate(
    ctx: click.Context,
    /,
    workloads: tuple[str, ...],
    environment: str | None,
    within: Constraints,
    why: bool,
    as_json: bool,
) -> None:
    """Rate hardware families for a workload, one to five stars each: speed of a chip, cost, energy, software, ease of use.

    Speed, cost and energy: five stars for the best family, one less for every halving against it. Software and ease: a star
    for every fifth of the frameworks that run and of the questions answered with yes. A table for each file.

    \b
    Examples:
      chipwise rate examples/train/workload.yaml
      chipwise rate examples/serve/workload.yaml --cloud aws --on-demand --why
      chipwise rate examples/train/workload.yaml examples/serve/workload.yaml --json
    """
    from chipwise.api import over_file
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import rate as ask
    from chipwise.cli import text
    from chipwise.cli.plan_brief import show_nothing
    from chipwise.views.rate import SCHEMA, rated_view

    session = open_session()
    ratings = [ask(session, path, environment, over_file(session.names, path, within)) for path in workloads]
    if as_json:
        text.show_json({"schema": SCHEMA, "ratings": [rated_view(one) for one in ratings]})
    else:
        for place, rated in enumerate(ratings):
            if place:
                text.show_lines("")
            if rated.ratings:
                _show(rated, why)
            else:
                show_nothing(rated.plan, full=True)
    if not all(one.ratings for one in ratings):
        ctx.exit(1)


def _show(rated: Rated, detailed: bool) -> None:
    from chipwise.cli import text
    from chipwise.cli.compare import show_unable
    from chipwise.views.rate import COLUMNS
    from chipwise.views.words import words

    plan = rated.plan
    text.show_title(f"{plan.workload}: {plan.kind}, stars by hardware family")
    text.show_lines("")
    text.show_table(
        [
            text.Column("family"),
            *(text.Column(_TITLES[name]) for name in COLUMNS),
            text.Column(f"USD/{plan.per}", right=True),
            text.Column("with", flexible=True),
        ],
        [
            [
                rating.family,
                *(text.stars(rating.figures[name].stars) for name in COLUMNS),
                "x" if rating.missed else text.number(rating.best.usd),
                rating.best.chip,
            ]
            for rating in rated.ratings
        ],
    )
    missed = [one for one in rated.ratings if one.missed]
    if missed:
        text.show_lines("", "x: can do it, and misses a goal:")
        text.show_pairs([(one.family, words(one.missed)) for one in missed if one.missed is not None])
    if detailed:
        for rating in rated.ratings:
            _show_why(rating)
    else:
        text.show_lines("", "--why shows the numbers behind the stars.")
    show_unable([(family, words(why)) for family, why in rated.unrated])
    if plan.notes:
        text.show_lines("", *plan.notes)


def _show_why(rating: Rating) -> None:
    from chipwise.cli import text
    from chipwise.views.rate import COLUMNS

    text.show_lines("", f"{rating.family}:")
    pairs = []
    for name in COLUMNS:
        figure = rating.figures[name]
        if figure.value is None:
            pairs.append((_TITLES[name], f"-; {figure.how}"))
            continue
        value = f"{figure.value:.0%}" if name in ("frameworks", "ease") else text.number(figure.value)
        pairs.append((_TITLES[name], f"{value} {figure.unit}; {figure.how}"))
    text.show_pairs(pairs)
