"""The report's tables. Every cell that is sorted by a number carries it, so that the page's script need not read prose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chipwise.planner.explain.reason_words import example_words, lost, rule_words, words
from chipwise.planner.explain.row_words import single
from chipwise.planner.explain.words import PROVENANCE, many_words
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.report.answer import alike
from chipwise.report.markup import tag, text
from chipwise.report.words import amount, chips, listed, mass, rated, speed
from chipwise.text import duration, number, usd, usd_interval

FIRST = 25  # rows that are shown, and printed, before somebody asks for all
PER_USE = 8  # services that are listed


@dataclass(frozen=True, slots=True)
class Cell:
    inside: str  # markup
    key: float | str | None = None  # what it is sorted by; None: unknown, and last
    number: bool = False


def ranking(plan: Plan) -> str:
    job = plan.per == "job"
    titles = ["#", "where", "chips", "buy", "time" if job else rated(plan), f"USD/{plan.per}"]
    titles += [f"USD per {single(plan.choices[0].unit)}", "kg CO2e", "memory", "estimate"]
    groups = alike(plan.choices)
    rows = [_row(rank, leader, job, _folded(twins, plan)) for rank, leader, twins in groups]
    visible = [at for at in range(len(titles)) if any(row[at].key is not None for row in rows)]
    titles, rows = [titles[at] for at in visible], [[row[at] for at in visible] for row in rows]
    head = tag("tr", *(_head(title, rows[0][at].number) for at, title in enumerate(titles)))
    body = [
        tag(
            "tr",
            *map(_cell, row, titles),
            data_family=choice.family,
            data_buy=choice.purchase,
            class_="more" if place > FIRST else None,
        )
        for place, ((_, choice, _), row) in enumerate(zip(groups, rows, strict=True), start=1)
    ]
    return _controls(plan, len(groups)) + tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", *body), id="ranking", class_="sortable"),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label="Ranking",
    )


def _folded(twins: Sequence[Choice], plan: Plan) -> str:
    """Below the best of its kind, closed until somebody asks."""
    if not twins:
        return ""
    costs = [one.usd for one in twins]
    span = usd(min(costs)) if min(costs) == max(costs) else f"{usd(min(costs))} to {usd(max(costs))}"
    entries = (
        tag(
            "li",
            text(f"{many_words(twin)}{twin.where}: {listed(usd(twin.usd), speed(twin, plan), f'price of {twin.price_of}')}"),
        )
        for twin in twins
    )
    return tag("details", tag("summary", text(f"{len(twins):,} more alike, {span}")), tag("ul", *entries), class_="alike")


def _row(rank: int, choice: Choice, job: bool, folded: str) -> list[Cell]:
    country = f", {choice.country}" if choice.country else ""
    location = (
        f"{tag('b', text(f'{many_words(choice)}{choice.machine}'))}<br>{text(f'{choice.provider}, {choice.place}{country}')}"
    )
    span = f"{duration(choice.low_s)} to {duration(choice.high_s)}" if choice.high_s > choice.low_s else ""
    time = Cell(stacked(duration(choice.seconds), span), choice.seconds, True)
    does = choice.rate if choice.seats is None else float(choice.seats)
    rate = Cell("-" if does is None else amount(does), does, True)
    share = choice.memory_share
    return [
        Cell(str(rank), float(rank), True),
        Cell(location + folded, f"{choice.machine} {choice.provider}"),
        Cell(stacked(chips(choice), choice.precision), chips(choice)),
        Cell(text(choice.purchase), choice.purchase),
        time if job else rate,
        Cell(stacked(usd(choice.usd), usd_interval(choice.low_usd, choice.high_usd, choice.usd)), choice.usd, True),
        Cell(number(choice.usd_per_unit, 4), choice.usd_per_unit, True),
        Cell(mass(choice.kg), choice.kg, True),
        Cell("-" if share is None else f"{share:.0%}", share, True),
        Cell(stacked(PROVENANCE.get(choice.provenance, choice.provenance), f"price of {choice.price_of}"), choice.provenance),
    ]


def stacked(first: str, second: str) -> str:
    """The second below the first, in small letters; nothing where it is empty."""
    return f"{text(first)}<br>{tag('small', text(second))}" if second else text(first)


def _head(title: str, number: bool) -> str:
    """Not a button element: browsers leave those out of a heading that is printed anew on every page."""
    return tag("th", tag("span", text(title), role="button", tabindex="0"), scope="col", class_="number" if number else None)


def _cell(cell: Cell, title: str) -> str:
    """With its column's title, which a narrow screen shows before it."""
    return tag("td", cell.inside, data_key=cell.key, data_label=title, class_="number" if cell.number else None)


def _controls(plan: Plan, count: int) -> str:
    """Shown by the script alone: without it they could do nothing."""
    search = tag("label", "Filter ", '<input type="search" id="filter" placeholder="machine, region, chip ...">')
    family = _select("family", "all families", sorted({one.family for one in plan.choices}))
    buy = _select("buy", "all ways to buy", sorted({one.purchase for one in plan.choices}))
    all_of = tag("button", f"Show all {count:,}", type="button", id="all") if count > FIRST else ""
    counter = tag("output", id="shown", for_="filter family buy")
    return tag("div", search, family, buy, all_of, counter, class_="controls")


def _select(name: str, everything: str, options: Sequence[str]) -> str:
    listed = (tag("option", text(one), value=one) for one in options)
    return tag("select", tag("option", everything, value=""), *listed, id=name, aria_label=everything)


def matrix(plan: Plan) -> str:
    """The least cost of every provider and chip family among the choices; the best of a row is bold, darker is dearer."""
    best: dict[tuple[str, str], Choice] = {}
    for choice in plan.choices:
        known = best.get((choice.provider, choice.family))
        if known is None or choice.usd < known.usd:
            best[choice.provider, choice.family] = choice
    providers = _by_cost({provider for provider, _ in best}, best, 0)
    families = _by_cost({family for _, family in best}, best, 1)
    lowest = min(one.usd for one in best.values())
    head = tag(
        "tr", tag("th", "provider", scope="col"), *(tag("th", text(name), scope="col", class_="number") for name in families)
    )
    body = []
    for provider in providers:
        offers = [best.get((provider, family)) for family in families]
        low = min(one.usd for one in offers if one is not None)
        cells = (_priced(one, lowest, low) for one in offers)
        body.append(tag("tr", tag("th", text(provider), scope="row"), *cells))
    return tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", *body), class_="matrix"),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label="Cost by provider and family",
    )


def _by_cost(names: Iterable[str], best: dict[tuple[str, str], Choice], at: int) -> list[str]:
    return sorted(names, key=lambda name: (min(one.usd for key, one in best.items() if key[at] == name), name))


def _priced(choice: Choice | None, lowest: float, low: float) -> str:
    if choice is None:
        return tag("td", "", class_="number none")
    ratio = choice.usd / lowest if lowest > 0 else 1.0
    shade = sum(ratio > step for step in (1.001, 1.25, 2.0, 4.0))
    price = tag("b", text(usd(choice.usd))) if choice.usd <= low else text(usd(choice.usd))
    return tag("td", price, class_=f"number shade{shade}", title=f"{many_words(choice)}{choice.where}, {choice.purchase}")


def losses(plan: Plan) -> str:
    """Families that lost with a number first; those that cannot do it are joined by their reason."""
    rows = [
        [text(loss.family), text(f"{many_words(loss.choice)}{loss.choice.where}, {loss.choice.purchase}"), text(lost(loss))]
        for loss in plan.losses
        if loss.choice is not None
    ]
    unable = [one for one in plan.losses if one.choice is None]
    rows += [
        [text(", ".join(one.family for one in unable if one.why == reason)), "", text(words(reason))]
        for reason in dict.fromkeys(one.why for one in unable)
    ]
    return simple(("family", "its best", "why it lost"), rows, stacks=True)


def refusals(plan: Plan) -> str:
    rows = [[f"{one.offers:,}", text(rule_words(one.rule)), text(example_words(one))] for one in plan.refused]
    return simple(("offers", "left out as", "such as"), rows, numbers=(0,), stacks=True)


def services(plan: Plan) -> str:
    """What is paid per use: the cheapest that may be used, then the cheapest that may not, with the first reason."""
    able = [one for one in plan.services if not one.refused]
    visible = [*able[:PER_USE], *[one for one in plan.services if one.refused][: PER_USE if not able else PER_USE // 2]]
    rows = [
        [
            text(usd(service.usd)),
            tag("b", text(service.provider)) + "<br>" + text(listed(service.name, service.hardware)),
            text(service.kind),
            text(words(service.refused[0]) if service.refused else service.break_even),
        ]
        for service in visible
    ]
    return simple(
        (f"USD/{plan.per}", "service", "paid", "why not, or when a machine is cheaper"), rows, numbers=(0,), stacks=True
    )


def cost_lines(choice: Choice) -> str:
    rows = [[text(usd(line.usd)), text(line.name), text(line.how)] for line in choice.cost.lines]
    rows.append([tag("b", text(usd(choice.usd))), tag("b", "together"), ""])
    return simple(("USD", "for", "computed as"), rows, numbers=(0,))


def pairs(told: Iterable[tuple[str, str]]) -> str:
    return tag("dl", *(f"{tag('dt', text(name))}{tag('dd', text(value))}" for name, value in told))


def simple(titles: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = (), *, stacks: bool = False) -> str:
    """Cells are markup; `stacks`: on a narrow screen they stand below each other."""

    def style(at: int) -> str | None:
        return "number" if at in numbers else None

    head = tag("tr", *(tag("th", text(title), scope="col", class_=style(at)) for at, title in enumerate(titles)))
    body = (tag("tr", *(tag("td", cell, class_=style(at)) for at, cell in enumerate(row))) for row in rows)
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body), class_="stacks" if stacks else None), class_="wide")
