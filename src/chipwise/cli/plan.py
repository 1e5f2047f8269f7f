"""`chipwise plan`: what to run a workload on, where, how, what it costs, and why everything else lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import HtmlReport, as_of, constraining, measured_option, refuse_empty, reporting
from chipwise.cli.parameter_types import Objective, RequestRate, WholeNumber
from chipwise.text import amount, number, usd_cell

if TYPE_CHECKING:
    from chipwise.api import Constraints
    from chipwise.api.session.wiring import Session
    from chipwise.errors import BadInput
    from chipwise.planner.values.choice import Choice
    from chipwise.planner.values.pipeline import PipelinePlan
    from chipwise.planner.values.plan import Plan
    from chipwise.views.plan import Why
    from chipwise.workload.common import Common

_OF_SERVING = {"serve", "rps", "peak", "low", "shape", "input", "output", "steps", "users_in"}
_WITH_MODEL = _OF_SERVING | {"train", "finetune", "batch", "tokens", "samples", "seq", "precision"}
RATED = {"serve": "req/s", "transcode": "streams", "stream": "msg/s", "interactive": "people"}
_SERVICES = 4  # that are shown, the cheapest
_NO_LIMIT = 1_000_000_000  # more than any catalog has
_TOP = 5  # choices, unless asked for more or fewer
_OBJECTIVES = ("cost", "time", "carbon", "balanced")


@click.command()
@click.argument("workload", metavar="WORKLOAD.yaml|MODEL", required=False)
@click.option("--full", is_flag=True, help="Also costs, carbon, how to run it, and why other hardware lost.")
@click.option("--short", is_flag=True, hidden=True, help="What is shown by default.")
@click.option("--objective", type=Objective(_OBJECTIVES), default=None, help="What to minimise; the file's unless given.")
@click.option("--environment", "-e", default=None, help="Use this environment of the file: prod.")
@click.option("--top", type=WholeNumber(1, 1000), default=None, help="How many choices to show.")
@click.option("--all", "every", is_flag=True, help="Show every machine type and purchase option that meets the goals.")
@click.option(
    "--why",
    multiple=True,
    metavar="NAME,...",
    help="Also the best that a machine, chip, provider or region could do, and what it lost by.",
)
@constraining()
@measured_option
@click.option("--mix", is_flag=True, help="Serving: also the cheapest mix of machine types by request size.")
@click.option(
    "--serve", is_flag=True, help="Without a file: serve MODEL, with --rps; language models with --input and --output."
)
@click.option("--rps", type=RequestRate(), default=None, help="Requests per second.")
@click.option(
    "--peak", type=RequestRate(), default=None, help="Instead of --rps: requests per second in the busiest hour of a day."
)
@click.option("--low", default=None, help="With --peak: requests per second in the quietest hour.")
@click.option("--shape", default=None, help="With --peak: office-hours, evening, or 24 numbers with commas between them.")
@click.option("--input", type=WholeNumber(), default=None, help="Tokens per prompt.")
@click.option("--output", type=WholeNumber(), default=None, help="Tokens per answer.")
@click.option("--steps", type=WholeNumber(1, 10_000), default=None, help="Denoising steps per image; 30 unless given.")
@click.option("--train", is_flag=True, help="Without a file: train MODEL on --tokens or --samples.")
@click.option(
    "--finetune",
    type=click.Choice(["full", "lora", "qlora"]),
    is_flag=False,
    flag_value="lora",
    help="Without a file: fine-tune MODEL; lora unless given.",
)
@click.option("--batch", is_flag=True, help="Without a file: run MODEL once over --samples inputs.")
@click.option("--tokens", default=None, help="Tokens to train on: 2B.")
@click.option("--samples", default=None, help="Samples to train on or to process: 50k.")
@click.option("--seq", type=WholeNumber(), default=None, help="Tokens per sequence.")
@click.option("--precision", default=None, help="bf16, fp8, ...; any: also lower precision than the released weights.")
@click.option("--ttft", default=None, help="Goal: time to first token of 90% of requests: 800ms.")
@click.option("--tpot", default=None, help="Goal: time per output token: 50ms.")
@click.option("--latency", default=None, help="Goal: time to the complete answer: 5s.")
@click.option("--deadline", default=None, help="Goal: longest time: 72h.")
@click.option(
    "--confidence",
    default=None,
    help="Probability with which goals, load and budget must hold. Unless given: goals 0.9, load with its headroom.",
)
@click.option(
    "--users-in",
    multiple=True,
    metavar="COUNTRY,...",
    help="Serving: where users are, DE or DE,FR; network latency to them is included.",
)
@click.option("--budget", default=None, help="Goal: most money: 500 or 2k/month, in US dollars.")
@as_of()
@click.option("--json", "as_json", is_flag=True, help="The whole plan as JSON.")
@reporting(
    click.option("--render", "targets", multiple=True, metavar="TARGET", help="Also write it as files for TARGET, into --out."),
    click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Where --render writes."),
    force="Let --html and --render overwrite files that exist.",
)
@click.pass_context
def plan(
    ctx: click.Context,
    /,
    workload: str | None,
    as_json: bool,
    why: tuple[str, ...],
    within: Constraints,
    every: bool,
    full: bool,
    short: bool,
    targets: tuple[str, ...],
    out: Path | None,
    report: HtmlReport,
    **settings: Any,
) -> None:
    """Choose hardware for a workload. Compares machines, regions, ways to split the work and purchase options by cost, time or
    carbon, and explains the choice.

    Give a workload file (`chipwise init` writes one), or a model with --serve, --train, --finetune or --batch. Exits with 1
    when nothing fits, and says what was missing.

    \b
    Examples:
      chipwise plan llama-3.1-8b --serve --rps 5 --input 500 --output 200
      chipwise plan llama-3.1-8b --serve --peak 9 --low 0.5 --shape evening \\
          --input 500 --output 200
      chipwise plan llama-3.1-8b --finetune --samples 50k --chip h100 --spot
      chipwise plan workload.yaml --cloud aws,gcp --region EU --on-demand
      chipwise plan workload.yaml --objective carbon --full
      chipwise plan workload.yaml --why h100,mi300x
      chipwise plan workload.yaml --measured rtx-4090=6h/epoch
      chipwise plan workload.yaml --html report.html
      chipwise plan workload.yaml --render kubernetes --out deploy
    """
    from chipwise.api.catalog.check import check
    from chipwise.api.session.wiring import open_session
    from chipwise.api.verbs import plan_any_checked, refuse_pipeline
    from chipwise.cli import text
    from chipwise.cli.progress import stages_planned
    from chipwise.planner.values.plan import Plan

    refuse_empty(ctx)
    if workload is None:
        raise _nothing_given()
    report.check(workload)
    _check_targets(targets, out)
    session, top = replace(open_session(), report=stages_planned()), _NO_LIMIT if every else settings["top"] or _TOP
    name, text_of_it = _workload_text(session, workload, within, settings)
    count = top
    if report.path is not None:
        from chipwise.api import report as pages

        count = max(top, pages.TOP)
    one_work = {"--why": why, "--mix": settings["mix"], "--all": every}
    checked = check(session, name, settings["environment"], text=text_of_it)
    if out is not None:
        from chipwise.api.render import check_out

        check_out(out, targets, checked.workload, report.force)
    if options := [option for option, value in one_work.items() if value]:
        refuse_pipeline(checked.workload, name, options)
    result = plan_any_checked(session, name, checked, settings["objective"], count, reported=report.path is not None)
    if not isinstance(result, Plan):
        from chipwise.cli.plan_pipeline import show_pipeline

        if report.path is not None:
            pages.write_pipeline(result, report.path, session.today, report.force)
        show_pipeline(result, as_json, full)
        report.say_written()
        if out is not None and result.fits:
            _render(session, checked.workload, result, targets, out, report.force)
        ctx.exit(0 if result.fits else 1)
    if settings["mix"]:
        from chipwise.cli.plan_mix import with_mix

        result = with_mix(session, name, result, settings["environment"], text_of_it)
    if report.path is not None:
        pages.write(session, checked.workload, result, report.path, report.force)
        result = replace(result, choices=result.choices[:top])
    reasons = _explained(session, result, why)
    if as_json:
        from chipwise.views.mix import mixed_view
        from chipwise.views.plan import plan_view, why_view

        text.show_json(plan_view(result) | mixed_view(result) | _whys([why_view(one, result.per) for one in reasons]))
    else:
        _show(result, reasons, full, top if every else settings["top"])
        if result.mix is not None:
            from chipwise.cli.plan_mix import show_mix

            show_mix(result.mix)
    report.say_written()
    if result.winner is None:
        ctx.exit(0 if result.service is not None else 1)
    if out is not None:
        _render(session, checked.workload, result, targets, out, report.force)


def _nothing_given() -> BadInput:
    from chipwise.errors import BadInput

    return BadInput(
        "A workload file or a model is needed.",
        remedy="Run `chipwise init serve` to write a workload file with comments, or name a model:\n"
        "  chipwise plan llama-3.1-8b --serve --rps 5 --input 500 --output 200",
    )


def _workload_text(
    session: Session, workload: str, constraints: Constraints, settings: dict[str, Any]
) -> tuple[str, str | None]:
    """What messages call the workload, and its text; None: the file as it is."""
    from chipwise.api import constrained, over_workload, read_text, replacing_file, text_of, with_measured

    runs = settings["measured"]
    if not _is_file(workload):
        described = with_measured(text_of(workload, settings, session.models), "command line", runs)
        return "command line", constrained(session.names, described, "command line", constraints)
    given = {name for name, value in settings.items() if value}
    _refuse_both(workload, (_WITH_MODEL & given) - replacing_file(given))
    if not constraints and not runs and not replacing_file(given):
        return workload, None
    text = with_measured(over_workload(read_text(workload), workload, settings), workload, runs)
    return workload, constrained(session.names, text, workload, constraints)


def _check_targets(targets: tuple[str, ...], out: Path | None) -> None:
    """What is wrong with them is reported before the work, not after."""
    if targets or out is not None:
        from chipwise.api.render import check_out, target
        from chipwise.errors import BadInput

        if not targets or out is None:
            raise BadInput("--render and --out go together.", remedy="--render kubernetes --out deploy, for example.")
        for name in targets:
            target(name)
        check_out(out, targets)


def _render(
    session: Session, work: Common, result: Plan | PipelinePlan, targets: tuple[str, ...], out: Path, force: bool
) -> None:
    from chipwise.api import render as rendering
    from chipwise.cli import text

    written = rendering.write(out, rendering.render_plan(session, work, result, tuple(dict.fromkeys(targets))), force)
    text.say(*(f"Written: {out / path}" for path in written))


def _is_file(workload: str) -> bool:
    """A file, or what was meant as one: then `check` says that it is not there."""
    from chipwise.api.session.graph import names_graph

    return (Path(workload).exists() and not names_graph(workload)) or workload.endswith((".yaml", ".yml"))


def _refuse_both(workload: str, options: set[str]) -> None:
    if options:
        from chipwise.errors import BadInput

        flags = ", ".join(sorted(f"--{name.replace('_', '-')}" for name in options))
        raise BadInput(f"{flags} goes with a model, and {workload} is a file.", remedy="Write it into the file.")


def _explained(session: Session, result: Plan, names: tuple[str, ...]) -> list[Why]:
    """Of every name; several may stand with commas between them, which few names have in them."""
    from chipwise.api.verbs import why as explain_why
    from chipwise.errors import UnknownName

    answers = []
    for name in names:
        try:
            answers.append(explain_why(session, result, name))
        except UnknownName:
            if "," not in name:
                raise
            answers += [explain_why(session, result, part.strip()) for part in name.split(",") if part.strip()]
    return answers


def _whys(views: list[dict[str, Any]]) -> dict[str, Any]:
    """`why` is of the first name, `whys` of all."""
    return {"why": views[0], "whys": views} if views else {}


def _show(result: Plan, answers: list[Why], full: bool, row_count: int | None) -> None:
    from chipwise.cli import text
    from chipwise.cli.plan_brief import show_brief, show_nothing
    from chipwise.views.words import headline, risk_line

    title = f"{result.workload}: {result.kind}, by {result.objective}, per {result.per}"
    if result.winner is None:
        show_nothing(result, title, headline(result) if result.service is not None else "", full)
        _show_why(result, answers)
    elif full:
        text.show_title(title)
        risks = filter(None, [risk_line(result)])
        text.show_lines(headline(result), *risks, "", *(f"{one.question} {one.told}" for one in result.answers), "")
        text.show_laid(_ranking(result, len(result.choices)))
        _show_explanation(result, answers)
    else:
        rows = range(1, len(result.choices) + 1) if row_count is None else (len(result.choices),)
        show_brief(result, [_ranking(result, count) for count in rows], row_count)
        _show_why(result, answers)


def _ranking(result: Plan, count: int) -> list[str]:
    """The lines of a table of so many choices."""
    from chipwise.cli import text
    from chipwise.views.words import brief

    return text.table_lines(
        [
            text.Column("#", right=True),
            text.Column("where", flexible=True),
            text.Column("chips"),
            text.Column(RATED[result.kind] if result.per == "month" else "time", right=True),
            text.Column(f"USD/{result.per}", right=True),
            text.Column("kg CO2e", right=True),
        ],
        [_row(rank, one, result.per) for rank, one in enumerate(result.choices[:count], start=1)],
        [brief(one, result.per) for one in result.choices[:count]],
    )


def _show_explanation(result: Plan, answers: list[Why]) -> None:
    from chipwise.cli import text
    from chipwise.cli.plan_load import show_load
    from chipwise.views.words import emissions, lost, quota_notes, rule_words, running, words

    assert result.winner is not None
    text.show_lines("", "Where the money goes:")
    text.show_pairs(
        [(one.name, f"{usd_cell(one.usd)}{f'  ({one.how})' if one.how else ''}") for one in result.winner.cost.lines]
    )
    text.show_lines("", "How to run it:")
    text.show_pairs(running(result.winner))
    if result.emitted is not None:
        text.show_lines("", "What it emits:")
        text.show_pairs(emissions(result.emitted, result.winner.unit))
    text.show_lines("", "What would change the answer:")
    text.show_pairs([(one.what, one.told) for one in result.turns])
    beaten = [one for one in result.losses if one.choice is not None]
    if beaten:
        text.show_lines("", "The best of every other family, and why it lost:")
        text.show_pairs([(f"{one.family}", f"{one.choice.where}: {lost(one)}" if one.choice else lost(one)) for one in beaten])
    _show_why(result, answers)
    show_load(result)
    if result.services:
        show_services(result)
    unable = [one for one in result.losses if one.choice is None]
    if unable:
        text.show_lines("", "Cannot do it:")
        reasons = dict.fromkeys(one.why for one in unable)
        text.show_lines(*(f"  {words(why)}: {', '.join(one.family for one in unable if one.why == why)}" for why in reasons))
    refusals = [f"{one.offers:,} {rule_words(one.rule)}" for one in result.refused]
    left_out = f"; offers left out: {', '.join(refusals)}" if refusals else ""
    text.show_lines("", f"{result.counts.considered:,} candidates{left_out}.", *result.notes, *quota_notes(result))


def show_services(result: Plan) -> None:
    from chipwise.cli import text
    from chipwise.text import usd
    from chipwise.views.words import no_service

    able = [one for one in result.services if not one.refused]
    text.show_lines("", "Paid per use instead of per machine:")
    if not able:
        text.show_lines(f"  {len(result.services)} services, {no_service(result)}.")
        return
    best = {one.title: one for one in reversed(able)}  # of one service its cheapest size
    cheapest = sorted(best.values(), key=able.index)[:_SERVICES]
    rows = [(one.title[:34], f"{one.kind}, {usd(one.usd)} a {result.per}", one.break_even) for one in cheapest]
    text.show_pairs([(title, f"{paid}; {when}" if when else paid) for title, paid, when in rows])


def _row(rank: int, choice: Choice, per: str) -> list[str]:
    from chipwise.text import duration
    from chipwise.views.words import count_words

    machines = count_words(choice).replace(" to ", "-")
    prefix = f"{machines}x " if choice.machines > 1 else ""
    capacity = f"{choice.seats:,}" if choice.seats is not None else amount(choice.rate or 0)
    time = duration(choice.seconds) if per == "job" else capacity
    location = f"{prefix}{choice.provider} {choice.machine}, {choice.place}"
    return [
        str(rank),
        location,
        f"{choice.chips * choice.machines} {choice.chip} {choice.precision}",
        time,
        usd_cell(choice.usd),
        _kg(choice.kg),
    ]


def _show_why(result: Plan, answers: list[Why]) -> None:
    from chipwise.cli import text
    from chipwise.views.words import why_words

    for answer in answers:
        text.show_lines("", *why_words(answer, result.per))


def _kg(value: float) -> str:
    if 0 < value < 0.1:
        return number(value, 2) if value >= 1e-3 else "<0.001"
    return f"{value:.3g}" if value >= 1e13 else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
