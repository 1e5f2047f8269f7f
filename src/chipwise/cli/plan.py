"""`chipwise plan`: what to run a workload on, where, how, what it costs, and why everything else lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import AboveZero, Whole
from chipwise.text import number, usd_cell

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.planner.explain.why import Why
    from chipwise.planner.pipeline.value import PipelinePlan
    from chipwise.planner.values.plan import Choice, Plan
    from chipwise.workload.kinds import Common

_QUICK = {
    "serve",
    "rps",
    "input",
    "output",
    "ttft",
    "tpot",
    "latency",
    "train",
    "finetune",
    "tokens",
    "seq",
    "precision",
    "deadline",
    "budget",
}
RATED = {"serve": "req/s", "transcode": "streams", "stream": "msg/s", "interactive": "people"}
_SERVICES = 4  # that are shown, the cheapest
_EVERY = 1_000_000_000  # more than any catalog has
_OBJECTIVES = ("cost", "time", "carbon", "balanced")


@click.command()
@click.argument("workload", metavar="WORKLOAD.yaml|MODEL")
@click.option("--objective", type=click.Choice(_OBJECTIVES), default=None, help="What to make small; the file's unless given.")
@click.option("--environment", "-e", default=None, help="An environment of the file, such as prod.")
@click.option("--top", type=Whole(1, 1000), default=5, show_default=True, help="How many choices to show.")
@click.option("--all", "every", is_flag=True, help="Show every machine type and purchase option that keeps the goals.")
@click.option("--short", is_flag=True, help="Only the answer and the table.")
@click.option(
    "--why",
    default=None,
    metavar="NAME",
    help="Also the best that a machine, chip, provider or region could do, and what it lost by.",
)
@click.option("--limit", "limits", multiple=True, metavar="KEY=VALUE", help="A limit over the file's, as clouds=[aws].")
@click.option("--mix", is_flag=True, help="Serving: also the cheapest mix of machine types by request size.")
@click.option("--serve", is_flag=True, help="Without a file: serve MODEL at --rps.")
@click.option("--rps", type=AboveZero(), default=None, help="Requests per second.")
@click.option("--input", type=Whole(), default=None, help="Tokens of a prompt.")
@click.option("--output", type=Whole(), default=None, help="Tokens of an answer.")
@click.option("--ttft", default=None, help="Time to first token that 90% stay below, as 800ms.")
@click.option("--tpot", default=None, help="Time per token, as 50ms.")
@click.option("--latency", default=None, help="Whole answer, as 5s.")
@click.option("--train", is_flag=True, help="Without a file: train MODEL on --tokens.")
@click.option("--finetune", type=click.Choice(["full", "lora", "qlora"]), default=None, help="Fine-tune MODEL on --tokens.")
@click.option("--tokens", default=None, help="Tokens to learn from, as 2B.")
@click.option("--seq", type=Whole(), default=None, help="Tokens per sequence.")
@click.option("--precision", default=None, help="bf16, fp8, ...")
@click.option("--deadline", default=None, help="Longest time, as 72h.")
@click.option("--budget", default=None, help="Most money, as $500 or $2k/month.")
@click.option("--json", "as_json", is_flag=True, help="JSON, everything.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE", help="Also write a report: one page that opens offline."
)
@click.option("--render", "targets", multiple=True, metavar="TARGET", help="Also write it as files for TARGET, into --out.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where --render writes.")
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    workload: str,
    as_json: bool,
    html: Path | None,
    why: str | None,
    limits: tuple[str, ...],
    every: bool,
    short: bool,
    targets: tuple[str, ...],
    out: Path | None,
    **settings: Any,
) -> None:
    """Choose hardware for a workload: rank all machines, regions, splits and purchase options by cost, time or carbon.

    Exits with 1 when nothing fits, and says what was missing.

    \b
    Examples:
      chipwise plan examples/train/workload.yaml
      chipwise plan examples/serve/workload.yaml --objective carbon --top 10
      chipwise plan examples/batch/workload.yaml --json
      chipwise plan examples/train/workload.yaml --all
      chipwise plan examples/train/workload.yaml --html report.html
      chipwise plan examples/pipeline/workload.yaml --objective cost
      chipwise plan examples/serve/workload.yaml --render kubernetes --out deploy
      chipwise plan llama-3.1-70b --serve --rps 10 --input 1000 --output 300 --ttft 800ms --tpot 50ms
    """
    from chipwise.api.catalog.check import check
    from chipwise.api.quick import read, text_of, with_limits
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import plan_any_checked
    from chipwise.cli import text
    from chipwise.planner.plan import refuse_pipeline
    from chipwise.planner.values.plan import Plan

    if html is not None:  # told before the work, not after
        from chipwise.api import report as reporting

        reporting.check(html, workload)
    _check_targets(targets, out)
    quick = _QUICK & {name for name, value in settings.items() if value}
    if quick or not _is_file(workload):
        _refuse_both(workload, quick)
        text_of_it: str | None = with_limits(text_of(workload, settings), "command line", limits)
    else:
        text_of_it = with_limits(read(workload), workload, limits) if limits else None
    name = "command line" if quick or not _is_file(workload) else workload
    session, top = open_session(), _EVERY if every else settings["top"]
    many = max(top, reporting.TOP) if html is not None else top
    one_work = {"--why": why, "--mix": settings["mix"], "--all": every}
    checked = check(session, name, settings["environment"], text=text_of_it)
    if out is not None:
        from chipwise.api.render import check_out

        check_out(out, targets, checked.workload)
    if asked := [option for option, value in one_work.items() if value]:
        refuse_pipeline(checked.workload, name, asked)
    found = plan_any_checked(session, name, checked, settings["objective"], many, reported=html is not None)
    if not isinstance(found, Plan):
        from chipwise.cli.plan_pipeline import show_pipeline

        if html is not None:
            reporting.write_pipeline(found, html, session.today)
        show_pipeline(found, as_json, short)
        if html is not None:
            text.say(f"Written: {html}")
        if out is not None and found.fits:
            _render(session, checked.workload, found, targets, out)
        ctx.exit(0 if found.fits else 1)
    if settings["mix"]:
        from chipwise.cli.plan_mix import with_mix

        found = with_mix(session, name, found, settings["environment"], text_of_it)
    if html is not None:
        from chipwise.planner.explain.roofline import roofline_of

        reporting.write(found, html, session.today, roofline_of(session.known, checked.workload, found))
        found = replace(found, choices=found.choices[:top])
    reason = None
    if why is not None:
        from chipwise.planner.explain.why import why as why_of

        reason = why_of(session.known, found, why)
    if as_json:
        from chipwise.api.views.mix import mixed_view
        from chipwise.api.views.plan import plan_view, why_view

        text.show_json(plan_view(found) | mixed_view(found) | ({} if reason is None else {"why": why_view(reason, found.per)}))
    else:
        _show(found, reason, short)
        if found.mix is not None:
            from chipwise.cli.plan_mix import show_mix

            show_mix(found.mix)
    if html is not None:
        text.say(f"Written: {html}")
    if found.winner is None:
        ctx.exit(1)
    if out is not None:
        _render(session, checked.workload, found, targets, out)


def _check_targets(targets: tuple[str, ...], out: Path | None) -> None:
    """What is wrong with them is told before the work, not after."""
    if targets or out is not None:
        from chipwise.api.render import check_out, target
        from chipwise.errors import BadInput

        if not targets or out is None:
            raise BadInput("--render and --out go together.", remedy="--render kubernetes --out deploy, for example.")
        for name in targets:
            target(name)
        check_out(out, targets)


def _render(session: Session, work: Common, found: Plan | PipelinePlan, targets: tuple[str, ...], out: Path) -> None:
    from chipwise.api import render as rendering
    from chipwise.cli import text

    written = rendering.write(out, rendering.render_plan(session, work, found, tuple(dict.fromkeys(targets))))
    text.say(*(f"Written: {out / path}" for path in written))


def _is_file(workload: str) -> bool:
    """A file, or what was meant as one: then `check` says that it is not there."""
    return Path(workload).exists() or workload.endswith((".yaml", ".yml"))


def _refuse_both(workload: str, quick: set[str]) -> None:
    if _is_file(workload):
        from chipwise.errors import BadInput

        flags = ", ".join(sorted(f"--{name}" for name in quick))
        raise BadInput(
            f"{flags} goes with a model, and {workload} is a file.", remedy="Write it into the file, or use --limit."
        )


def _show(found: Plan, why: Why | None, short: bool = False) -> None:
    from chipwise.cli import text
    from chipwise.planner.explain.words import brief, sentence

    text.show_title(f"{found.workload}: {found.kind}, by {found.objective}, per {found.per}")
    if found.winner is None:
        _show_nothing(found)
        if why is not None:
            _show_why(found, why)
        return
    text.show_lines(sentence(found), "", *(f"{one.question} {one.told}" for one in found.answers), "")
    text.show_table(
        [
            text.Column("#", right=True),
            text.Column("where", flexible=True),
            text.Column("chips"),
            text.Column(RATED[found.kind] if found.per == "month" else "time", right=True),
            text.Column(f"USD/{found.per}", right=True),
            text.Column("kg CO2e", right=True),
        ],
        [_row(rank, one, found.per) for rank, one in enumerate(found.choices, start=1)],
        [brief(one, found.per) for one in found.choices],
    )
    if not short:
        _show_explanation(found, why)
    elif why is not None:
        _show_why(found, why)


def _show_explanation(found: Plan, why: Why | None) -> None:
    from chipwise.cli import text
    from chipwise.cli.plan_load import show_load
    from chipwise.planner import quotas
    from chipwise.planner.explain.reason_words import lost, rule_words, words
    from chipwise.planner.explain.words import emissions, running

    assert found.winner is not None
    text.show_lines("", "Where the money goes:")
    text.show_pairs(
        [(one.name, f"{usd_cell(one.usd)}{f'  ({one.how})' if one.how else ''}") for one in found.winner.cost.lines]
    )
    text.show_lines("", "How to run it:")
    text.show_pairs(running(found.winner))
    if found.emitted is not None:
        text.show_lines("", "What it emits:")
        text.show_pairs(emissions(found.emitted, found.winner.unit))
    text.show_lines("", "What would change the answer:")
    text.show_pairs([(one.what, one.told) for one in found.turns])
    beaten = [one for one in found.losses if one.choice is not None]
    if beaten:
        text.show_lines("", "The best of every other family, and why it lost:")
        text.show_pairs([(f"{one.family}", f"{one.choice.where}: {lost(one)}" if one.choice else lost(one)) for one in beaten])
    if why is not None:
        _show_why(found, why)
    show_load(found)
    if found.services:
        _show_services(found)
    unable = [one for one in found.losses if one.choice is None]
    if unable:
        text.show_lines("", "Cannot do it:")
        reasons = dict.fromkeys(one.why for one in unable)
        text.show_lines(*(f"  {words(why)}: {', '.join(one.family for one in unable if one.why == why)}" for why in reasons))
    told = [f"{one.offers:,} {rule_words(one.rule)}" for one in found.refused]
    left_out = f"; offers left out: {', '.join(told)}" if told else ""
    text.show_lines("", f"{found.counts.considered:,} candidates{left_out}.", *found.notes, *quotas.notes(found))


def _show_services(found: Plan) -> None:
    from chipwise.cli import text
    from chipwise.planner.explain.words import no_service
    from chipwise.text import usd

    able = [one for one in found.services if not one.refused]
    text.show_lines("", "Paid per use instead of per machine:")
    if not able:
        text.show_lines(f"  {len(found.services)} services, {no_service(found)}.")
        return
    best = {one.title: one for one in reversed(able)}  # of one service its cheapest size
    shown = sorted(best.values(), key=able.index)[:_SERVICES]
    told = [(one.title[:34], f"{one.kind}, {usd(one.usd)} a month", one.break_even) for one in shown]
    text.show_pairs([(title, f"{paid}; {when}" if when else paid) for title, paid, when in told])


def _row(rank: int, one: Choice, per: str) -> list[str]:
    from chipwise.text import duration

    many = f"{one.machines}x " if one.machines > 1 else ""
    held = f"{one.seats:,}" if one.seats is not None else f"{one.rate or 0:.3g}"
    time = duration(one.seconds) if per == "job" else held
    where = f"{many}{one.provider} {one.machine}, {one.place}"
    return [
        str(rank),
        where,
        f"{one.chips * one.machines} {one.chip} {one.precision}",
        time,
        usd_cell(one.usd),
        _kg(one.kg),
    ]


def _show_nothing(found: Plan) -> None:
    from chipwise.cli import text
    from chipwise.planner.explain.reason_words import example_words, missing_words, remedy_words, rule_words

    text.show_lines("Nothing fits.", "")
    if found.missing:
        text.show_pairs([(one.what, f"{missing_words(one)}. Would help: {remedy_words(one)}.") for one in found.missing])
    text.show_lines(
        "", *(f"{one.offers:,} offers: {rule_words(one.rule)}, such as {example_words(one)}" for one in found.refused)
    )


def _show_why(found: Plan, why: Why) -> None:
    from chipwise.cli import text
    from chipwise.planner.explain.why_words import why_words

    text.show_lines("", *why_words(why, found.per))


def _kg(value: float) -> str:
    if 0 < value < 0.1:
        return number(value, 2) if value >= 1e-3 else "<0.001"
    return f"{value:.3g}" if value >= 1e13 else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
