"""What `chipwise plan --mix` adds: the machines of the mix, which requests go where, and what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.cli import text
from chipwise.text import amount

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session
    from chipwise.planner.values.mix import Band, Member, Mix
    from chipwise.planner.values.plan import Plan

_FULL_SHARE = 0.9995  # of a bucket


def with_mix(session: Session, path: str, plan: Plan, environment: str | None, content: str | None) -> Plan:
    """The plan with the cheapest mix of machine types; `content` stands for the file."""
    from chipwise.api.verbs import mix

    return replace(plan, mix=mix(session, path, environment, content))


def show_mix(mix: Mix) -> None:
    text.show_lines("", "The cheapest mix of machine types:")
    if not mix.members:
        text.show_lines(f"  none: {mix.missing}.")
        return
    text.show_lines(f"  {_verdict(mix)}", "")
    letters = [chr(ord("A") + at % 26) for at in range(len(mix.members))]
    text.show_table(
        [
            text.Column(""),
            text.Column("machines", flexible=True),
            text.Column("chips"),
            text.Column("buy"),
            text.Column("req/s", right=True),
            text.Column("full", right=True),
            text.Column("USD/month", right=True),
        ],
        [_row(letter, one) for letter, one in zip(letters, mix.members, strict=True)],
    )
    if len(mix.members) > 1:
        text.show_lines("", "Which requests go where (parts of each size):")
        _show_parts(mix, letters)
    text.show_lines("", *mix.notes)


def _verdict(mix: Mix) -> str:
    price = f"{text.number(mix.usd)} USD a month"
    sure = "" if mix.proven else " (not proven to be the cheapest: the solver ran out of time)"
    if mix.single is None:
        return f"{price}{sure}; no type alone answers every size within the goals."
    single = mix.single
    alone = f"{single.machines} x {single.title}, {text.number(single.usd)} USD"
    if mix.saving_usd <= 0.005 * mix.single.usd:
        return f"{price}{sure}: one type alone is as cheap ({alone})."
    return f"{price}{sure}: saves {text.number(mix.saving_usd)} ({mix.saving_usd / single.usd:.0%}) against one type ({alone})."


def _row(letter: str, member: Member) -> list[str]:
    rate = sum(part.rate for part in member.takes)
    return [
        letter,
        f"{member.machines} x {member.title}",
        f"{member.chips * member.machines} {member.chip} {member.precision}",
        member.purchase,
        amount(rate),
        f"{member.busy:.0%}",
        text.number(member.usd),
    ]


def _show_parts(mix: Mix, letters: Sequence[str]) -> None:
    parts = [{part.bucket: part.part for part in one.takes} for one in mix.members]
    rows = []
    for index, bucket in enumerate(mix.buckets):
        takers = [(letter, mine[index]) for letter, mine in zip(letters, parts, strict=True) if index in mine]
        targets = ", ".join(letter if part > _FULL_SHARE else f"{letter} {part:.0%}" for letter, part in takers)
        rows.append([_range(bucket.prompt), _range(bucket.answer), f"{bucket.share:.1%}", targets])
    text.show_table(
        [
            text.Column("prompt", right=True),
            text.Column("answer", right=True),
            text.Column("requests", right=True),
            text.Column("to", flexible=True),
        ],
        rows,
    )


def _range(band: Band) -> str:
    return f"{band.low:,.0f}-{band.high:,.0f}" if band.high > band.low else f"{band.mean:,.0f}"
