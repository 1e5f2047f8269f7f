"""Owning against renting as one page: the answer in numbers, what each comes to over the years, when they cross, and on what
that rests."""

from __future__ import annotations

from datetime import date

from chipwise.money.tco import YEAR_HOURS, owned_cash, rented_cash
from chipwise.money.tco_values import Alternative, Tco
from chipwise.money.tco_words import (
    SETTINGS,
    answer_words,
    balance_words,
    contract_words,
    decline_words,
    month_words,
    rent_words,
    saving_words,
    setting_words,
    use_words,
    value_words,
)
from chipwise.report.chart import Axis, Chart, Lines, Ribbon, Stroke
from chipwise.report.interval_chart import Bar, interval_chart
from chipwise.report.markup import label, tag, text
from chipwise.report.page import document, drawn, section
from chipwise.report.tables import pairs, simple
from chipwise.report.tiles import Tile, tiles
from chipwise.text import plural, usd, usd_short

_OWNING, _RENTING, _BAND = "#1a7f37", "#0072b2", "rgba(0, 114, 178, 0.18)"


def tco_page(result: Tco, today: date) -> str:
    charts = [one for one in (_totals_chart(result), _cash_chart(result)) if one is not None]
    inside = [
        tiles(_tiles(result)),
        drawn(
            charts,
            "totals",
            f"What {_span(result)} cost",
            "As of today. Lines: as purchase prices spread, and as rents may move.",
        ),
        section("rented", "Rented instead", _alternatives(result), told=_legend(result)) if result.cloud else "",
        _contracts(result),
        drawn(
            charts,
            "cash",
            "What was paid by then",
            "In cash, month by month: owning has paid for itself where the lines cross.",
        ),
        section("own", "What owning costs a year", _own_lines(result)),
        _sensitivity(result),
        section("assumptions", "Assumptions", pairs(_assumptions(result))),
        section("notes", "Notes", tag("ul", *(tag("li", text(one)) for one in result.notes))),
    ]
    title = f"{result.request.chips}x {result.chip}, owned or rented"
    return document(title, _header(result, title), inside, today, "tco")


def _span(result: Tco) -> str:
    return plural(result.own.years, "year")


def _header(result: Tco, title: str) -> str:
    own, site = result.own, f", in {result.request.country}" if result.request.country else ""
    about = f"{plural(own.machines, 'machine')}, owned for {_span(result)}, in use {own.utilisation:.0%}{site}"
    reference = result.reference
    answer = tag("p", text(answer_words(result)), class_="answer") if reference is not None else ""
    return tag("header", tag("h1", text(title)), tag("p", text(about), class_="about"), answer)


def _tiles(result: Tco) -> list[Tile]:
    own, cost, low, high = result.own, result.cost, result.low, result.high
    spread = saving_words(low.usd_per_useful_hour, high.usd_per_useful_hour)
    own_tiles = [
        Tile("bought for", usd_short(own.bought_usd), f"sold for {usd_short(own.resale_usd)} after {_span(result)}"),
        Tile("per hour in use of an own machine", usd(cost.usd_per_useful_hour), f"{spread} as purchase prices spread"),
    ]
    reference = result.reference
    if reference is None:
        return own_tiles
    name = f"against {rent_words(reference)}"
    rented = saving_words(reference.fast.cloud_npv_usd, reference.slow.cloud_npv_usd)
    return [
        Tile(f"owning, {_span(result)}", usd_short(reference.compared.own_npv_usd), "as of today"),
        Tile(f"renting, {_span(result)}", rented, f"{rent_words(reference)}; as rents may move"),
        Tile("owning saves", saving_words(reference.fast.saving_usd, reference.slow.saving_usd), name),
        Tile("paid back in month", month_words(reference.slow.break_even_month, reference.fast.break_even_month), name),
        Tile(
            "cheaper from",
            use_words(reference.slow.break_even_utilisation, reference.fast.break_even_utilisation),
            f"of hours in use; here {own.utilisation:.0%}",
        ),
        *own_tiles,
    ]


def _totals_chart(result: Tco) -> Chart | None:
    if not result.cloud:
        return None
    worth = result.cloud[0].compared.own_npv_usd
    low, high = (worth * end.cost.usd / result.cost.cost.usd for end in (result.low, result.high))
    story = ("Owning, as of today", usd(worth))
    bars = [
        Bar(
            title="own machines",
            note=f"{result.request.chips}x {result.chip}",
            usd=worth,
            low=low,
            high=high,
            story=story,
            is_answer=True,
        )
    ]
    bars += [
        Bar(
            title=f"{alternative.offer.provider}, {alternative.offer.purchase}",
            note=alternative.offer.machine,
            usd=alternative.compared.cloud_npv_usd,
            low=alternative.fast.cloud_npv_usd,
            high=alternative.slow.cloud_npv_usd,
            story=(
                f"{alternative.offer.provider} {alternative.offer.machine}, {alternative.offer.purchase}",
                usd(alternative.compared.cloud_npv_usd),
                alternative.place,
            ),
        )
        for alternative in result.cloud
    ]
    return interval_chart("totals", bars, f"USD over {_span(result)}")


def _cash_chart(result: Tco) -> Chart | None:
    reference = result.reference
    if reference is None:
        return None
    own, offer, decline = result.own, reference.offer, reference.decline
    months = list(range(own.months + 1))
    low, middle, high = (
        rented_cash(own, reference.usd_per_hour, offer.purchase, share) for share in (decline.high, decline.value, decline.low)
    )
    name = label(f"{offer.provider}, {offer.purchase}")
    band = [Ribbon(xs=months, lows=low, highs=high, fill=_BAND, name="as rents may move")] if decline.is_wide else []
    return Chart(
        "cash",
        (
            *band,
            Lines(months, middle, Stroke(_RENTING, 2.5), name),
            Lines(months, owned_cash(own), Stroke(_OWNING, 2.5), "own machines"),
        ),
        x=Axis("months", step=6 if own.months > 12 else 1, from_zero=True, ends_at_last=True),
        y=Axis("USD paid", prefix="$", in_thousands=True, from_zero=True),
        height=260,
    )


def _legend(result: Tco) -> str:
    return (
        "In use: per hour in use, on average over the years. Break-even: the utilisation from which owning is cheaper. Month: "
        f"when it has paid for itself at this use. Saved: by owning over {_span(result)}, as of today."
    )


def _alternatives(result: Tco) -> str:
    heads = ("machine", "bought", "USD/h today", "in use", "break-even", "month", "saved")
    return simple(heads, [_row(one) for one in result.cloud], numbers=(2, 3, 4, 5, 6))


def _row(alternative: Alternative) -> list[str]:
    offer, slow, fast = alternative.offer, alternative.slow, alternative.fast
    dated = tag("small", text(f"{alternative.place}, price of {offer.as_of}"))
    return [
        f"{tag('b', text(offer.provider))} {text(offer.machine)}<br>{dated}",
        text(offer.purchase),
        f"{alternative.usd_per_hour:,.2f}",
        f"{alternative.compared.cloud_usd_per_useful_hour:,.2f}",
        text(use_words(slow.break_even_utilisation, fast.break_even_utilisation)),
        text(month_words(slow.break_even_month, fast.break_even_month)),
        text(saving_words(fast.saving_usd, slow.saving_usd)),
    ]


def _contracts(result: Tco) -> str:
    bound = [contract_words(one) for one in result.cloud if one.contract_usd is not None]
    bound += [f"{option} {reason}: left out." for option, reason in result.left_out]
    return (
        section("contracts", "What commitments bind to", tag("ul", *(tag("li", text(one)) for one in bound))) if bound else ""
    )


def _own_lines(result: Tco) -> str:
    lines = result.cost.cost.lines
    rows = [[text(usd(one.usd * YEAR_HOURS)), text(one.name), text(one.how)] for one in lines]
    rows.append([tag("b", text(usd(result.cost.cost.usd * YEAR_HOURS))), tag("b", "together"), ""])
    return simple(("USD a year", "for", "computed as"), rows, numbers=(0,))


def _sensitivity(result: Tco) -> str:
    reference = result.reference
    if reference is None or not result.swings:
        return ""
    rows = [
        [
            text(SETTINGS[swing.name]),
            text(f"{value_words(swing.name, swing.low)} to {value_words(swing.name, swing.high)}"),
            text(usd_short(swing.saving_at_low_usd)),
            text(usd_short(swing.saving_at_high_usd)),
        ]
        for swing in result.swings
    ]
    summary = f"{balance_words(reference)}. One at a time."
    heads = ("setting", "from, to", "saved at the first", "at the second")
    return section("sensitivity", "What changes the result", simple(heads, rows, numbers=(2, 3)), told=summary)


def _assumptions(result: Tco) -> list[tuple[str, str]]:
    declines = list(dict.fromkeys(one.decline for one in result.cloud))
    entries = [(SETTINGS[one.name], setting_words(one)) for one in result.settings]
    return [*entries, *(("rent", decline_words(one)) for one in declines)]
