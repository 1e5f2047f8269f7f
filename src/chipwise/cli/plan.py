"""`chipwise plan`: what to run a workload on, where, how, what it costs, and why everything else lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from chipwise.cli.options import AboveZero, Whole

if TYPE_CHECKING:
    from chipwise.plan.decision import Choice, Plan

_QUICK = {"serve", "rps", "input", "output", "ttft", "tpot", "latency", "train", "finetune", "tokens", "seq", "precision",
          "deadline", "budget"}  # fmt: skip
_RECOMPUTE = {0: "none", 1: "selective", 2: "full"}
_OBJECTIVES = ("cost", "time", "carbon", "balanced")


@click.command()
@click.argument("workload", metavar="WORKLOAD.yaml|MODEL")
@click.option("--objective", type=click.Choice(_OBJECTIVES), default=None, help="What to make small; the file's unless given.")
@click.option("--environment", "-e", default=None, help="An environment of the file, such as prod.")
@click.option("--top", type=Whole(1, 1000), default=5, show_default=True, help="How many choices to show.")
@click.option("--why", default=None, metavar="MACHINE", help="Also tell why this machine or family lost.")
@click.option("--limit", "limits", multiple=True, metavar="KEY=VALUE", help="A limit over the file's, as clouds=[aws].")
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
@click.pass_context
def plan(
    ctx: click.Context, /, workload: str, as_json: bool, why: str | None, limits: tuple[str, ...], **settings: Any
) -> None:
    """Choose hardware for a workload: rank all machines, regions, splits and purchase options by cost, time or carbon.

    Exits with 1 when nothing fits, and says what was missing.

    \b
    Examples:
      chipwise plan examples/train/workload.yaml
      chipwise plan examples/serve/workload.yaml --objective carbon --top 10
      chipwise plan examples/batch/workload.yaml --json
      chipwise plan llama-3.1-70b --serve --rps 10 --input 1000 --output 300 --ttft 800ms --tpot 50ms
    """
    from chipwise.api.plan_quick import read, text_of, with_limits
    from chipwise.api.planning import plan as ask
    from chipwise.api.wiring import open_session
    from chipwise.cli import text

    quick = _QUICK & {name for name, value in settings.items() if value}
    if quick or not _is_file(workload):
        _refuse_both(workload, quick)
        text_of_it: str | None = with_limits(text_of(workload, settings), "command line", limits)
    else:
        text_of_it = with_limits(read(workload), workload, limits) if limits else None
    name = "command line" if quick or not _is_file(workload) else workload
    found = ask(open_session(), name, settings["objective"], settings["top"], settings["environment"], text_of_it)
    if as_json:
        from chipwise.api.plan_views import plan_view

        text.show_json(plan_view(found))
    else:
        _show(found, why)
    if found.winner is None:
        ctx.exit(1)


def _is_file(workload: str) -> bool:
    """A file, or what was meant as one: then `check` says that it is not there."""
    from pathlib import Path

    return Path(workload).exists() or workload.endswith((".yaml", ".yml"))


def _refuse_both(workload: str, quick: set[str]) -> None:
    if _is_file(workload):
        from chipwise.errors import BadInput

        flags = ", ".join(sorted(f"--{name}" for name in quick))
        raise BadInput(
            f"{flags} goes with a model, and {workload} is a file.", remedy="Write it into the file, or use --limit."
        )


def _show(found: Plan, why: str | None) -> None:
    from chipwise.cli import text
    from chipwise.plan.explaining import sentence

    text.show_title(f"{found.workload}: {found.kind}, by {found.objective}, per {found.per}")
    if found.winner is None:
        _show_nothing(found)
        return
    text.show_lines(sentence(found), "")
    text.show_table(
        [
            text.Column("#", right=True), text.Column("where", flexible=True), text.Column("chips"), text.Column("buy"),
            text.Column("time" if found.per == "job" else "req/s", right=True), text.Column(f"USD/{found.per}", right=True),
            text.Column("kg CO2e", right=True),
        ],
        [_row(rank, one, found.per) for rank, one in enumerate(found.choices, start=1)],
    )  # fmt: skip
    text.show_lines("", "Where the money goes:")
    text.show_pairs([(one.name, f"{_usd(one.usd)}{f'  ({one.how})' if one.how else ''}") for one in found.winner.cost.lines])
    text.show_lines("", "How to run it:")
    text.show_pairs(_how(found.winner))
    text.show_lines("", "What would change the answer:")
    text.show_pairs([(one.what, one.told) for one in found.turns])
    lost = [one for one in found.losses if one.choice is not None]
    if lost:
        text.show_lines("", "The best of every other family, and why it lost:")
        text.show_pairs([(f"{one.family}", f"{one.choice.where}: {one.why}" if one.choice else one.why) for one in lost])
    if why is not None:
        _show_why(found, why)
    unable = [one for one in found.losses if one.choice is None]
    if unable:
        text.show_lines("", "Cannot do it:")
        text.show_pairs(
            [
                (why, ", ".join(one.family for one in unable if one.why == why))
                for why in dict.fromkeys(one.why for one in unable)
            ]
        )
    told = [f"{one.offers:,} {one.rule}" for one in found.refused]
    text.show_lines("", f"{found.counts.considered:,} candidates; offers left out: {', '.join(told)}.", *found.notes)


def _row(rank: int, one: Choice, per: str) -> list[str]:
    from chipwise.plan.explaining import duration

    many = f"{one.machines}x " if one.machines > 1 else ""
    time = duration(one.seconds) if per == "job" else f"{one.rate or 0:.3g}"
    where = f"{many}{one.provider} {one.machine}, {one.region}"
    return [
        str(rank),
        where,
        f"{one.chips * one.machines} {one.chip} {one.precision}",
        one.purchase,
        time,
        _usd(one.usd),
        _kg(one.kg),
    ]


def _how(one: Choice) -> list[tuple[str, str]]:
    from chipwise.plan.explaining import duration

    shown = {name: str(value) for name, value in one.split.items() if value not in (0, 1) or name == "tp"}
    if "recompute" in one.split:
        shown["recompute"] = _RECOMPUTE[one.split["recompute"]]
    split = ", ".join(f"{name} {value}" for name, value in shown.items())
    found = [("split", split)]
    if one.memory_share is not None:
        found.append(("memory", f"{one.memory_share:.0%} of a chip"))
    if one.high_s > one.low_s:
        found.append(("time", f"{duration(one.seconds)}; 80% between {duration(one.low_s)} and {duration(one.high_s)}"))
    if one.checkpoint_s and one.rate is None:
        every = f"every {duration(one.checkpoint_s)}, {one.interruptions:.1f} interruptions expected"
        found.append(("checkpoint", f"{every}; done within {duration(one.p90_s)} nine times in ten"))
    if one.storage:
        found.append(("data", f"from {one.storage}"))
    found.append(("unit cost", f"${one.usd_per_unit:.4g} per {one.unit.removesuffix('s')}"))
    return [*found, ("price of", one.price_of), ("estimate", one.provenance)]


def _show_nothing(found: Plan) -> None:
    from chipwise.cli import text

    text.show_lines("Nothing fits.", "")
    if found.missing:
        text.show_pairs([(one.what, f"{one.how_much}. Would help: {one.remedy}.") for one in found.missing])
    text.show_lines("", *(f"{one.offers:,} offers: {one.rule}, such as {one.example}" for one in found.refused))


def _show_why(found: Plan, name: str) -> None:
    from chipwise.cli import text
    from chipwise.spelling import fold

    wanted = fold(name)
    told = [one for one in found.losses if wanted in fold(one.family) or (one.choice and wanted in fold(one.choice.where))]
    lines = [f"{one.family}: {one.why}" for one in told] or [
        f"{name} is not among the best of any family; try --top 1000 --json."
    ]
    text.show_lines("", *lines)


def _usd(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _kg(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
