"""What an expectation may compare: attributes of a recommended plan, as numbers and words; tests/cases/README.md lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chipwise.api.session.wiring import Session
from chipwise.api.verbs import predict
from chipwise.catalog.load import DATA
from chipwise.catalog.names import Provider, own_provider, providers
from chipwise.countries import members
from chipwise.planner.explain.words import headline
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan

HOURS_PER_MONTH = 730.0
UNKNOWN = float("nan")  # keeps no comparison
SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": lambda number, limit: number >= limit,
    "<=": lambda number, limit: number <= limit,
    "=": lambda number, limit: number == limit,
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A recommended choice, as JSON has it, and what it is part of; `plan` is None of a stage of a pipeline."""

    session: Session
    path: str
    choice: Mapping[str, Any]
    view: Mapping[str, Any]
    plan: Plan | None

    def matches(self, name: str, sign: str, values: Sequence[str]) -> bool:
        if name in NUMBERS:
            number = NUMBERS[name](self)
            return any(SIGNS["=" if sign == "in" else sign](number, float(value)) for value in values)
        return WORDS.get(name, plain(name))(self, values)


def _region(subject: Subject) -> Any:
    catalog = subject.session.catalog
    return catalog.regions[catalog.region_index[subject.choice["provider"], subject.choice["region"]]]


def _known(number: float | None, factor: float = 1.0) -> float:
    return UNKNOWN if number is None else number * factor


def _winner(subject: Subject) -> Choice:
    assert subject.plan is not None
    assert subject.plan.winner is not None
    return subject.plan.winner


def _over_time(subject: Subject) -> float:
    """As the load goes over the peak at all times; a schedule's hours are part of the former."""
    plan, choice = subject.plan, subject.choice
    if plan is None or plan.load is None:
        return UNKNOWN
    always = choice["usd_per_machine_hour"] * choice["machines"] * HOURS_PER_MONTH
    return float(min(plan.load.usd, plan.layered_usd or plan.load.usd, _winner(subject).usd) / always)


def _predicted(subject: Subject) -> Mapping[str, Any]:
    """All replicas of the choice: each gets its part of a burst."""
    split = {name: subject.choice["split"].get(name, 1) for name in ("tp", "pp")}
    replicas = subject.choice["replicas"]
    settings = {**split, "chips": split["tp"] * split["pp"] * replicas, "replicas": replicas}
    settings |= {"precision": subject.choice["precision"]}
    return predict(subject.session, subject.path, subject.choice["chip"], None, settings)


def _capacity(subject: Subject) -> float:
    found = _predicted(subject)
    return float(found["highest_rate_per_s"] / found["most_requests_per_s"])


def _agreement(subject: Subject) -> float:
    return float(subject.choice["requests_per_s"] / _predicted(subject)["highest_rate_per_s"])


NUMBERS: Mapping[str, Callable[[Subject], float]] = {
    "chips": lambda one: one.choice["machines"] * one.choice["chips_per_machine"],
    "machines": lambda one: one.choice["machines"],
    "replicas": lambda one: one.choice["replicas"] or 1,
    "usd": lambda one: one.choice["usd"],
    "watts": lambda one: one.choice["watts"]["machine"],
    "grid": lambda one: _known(_region(one).grid_g_per_kwh),
    "price_days": lambda one: one.choice["price_days"],
    "counted": lambda one: one.choice["usd_per_machine_hour"] / one.choice["listed_usd_per_machine_hour"],
    "spread": lambda one: one.choice["usd_range"][1] / one.choice["usd_range"][0],
    "transfer_usd": lambda one: sum(line["usd"] for line in one.choice["lines"] if line["name"].startswith("transfer")),
    "hours": lambda one: one.choice["seconds"]["value"] / 3600,
    "late": lambda one: _known(_winner(one).late_share),
    "rate": lambda one: _known(one.choice["requests_per_s"]),
    "memory": lambda one: _known(one.choice["memory_share"]),
    "round_trip": lambda one: _known(one.choice["network_s"], 1e3),
    "over_time": _over_time,
    "capacity": _capacity,
    "agreement": _agreement,
}


def _chip(subject: Subject, values: Sequence[str]) -> bool:
    names = subject.session.names
    return subject.choice["chip"] in {chip.name for value in values for chip in names.chips_or_none(value) or ()}


def _family(subject: Subject, values: Sequence[str]) -> bool:
    """Of a hybrid workload that of the quantum part."""
    choice = subject.choice
    if subject.view.get("service_is_cheaper"):
        return "serverless" in values
    if choice.get("quantum"):
        return choice["quantum"]["kind"] in values
    part = subject.session.parts.find(choice["chip"].partition(" (")[0])
    return (part.kind if part else choice["family"].split()[0].lower()) in values


def _country(subject: Subject, values: Sequence[str]) -> bool:
    return any(subject.choice["country"] in members(value) for value in values)


def _provider(subject: Subject) -> Provider:
    name = subject.choice["provider"]
    return next((one for one in providers(DATA) if one.name == name), own_provider(name))


def _first(subject: Subject, values: Sequence[str]) -> bool:
    assert subject.plan is not None
    follows = "as the load goes" in headline(subject.plan).lower()
    return ("service" if subject.plan.service is not None else "layers" if follows else "machines") in values


def plain(name: str) -> Callable[[Subject, Sequence[str]], bool]:
    """What JSON has under this name; `reserved` stands for all terms."""

    def matches(subject: Subject, values: Sequence[str]) -> bool:
        text = str(subject.choice.get(name))
        return text in values or text.split("-1y")[0].split("-3y")[0] in values

    return matches


WORDS: Mapping[str, Callable[[Subject, Sequence[str]], bool]] = {
    "chip": _chip,
    "family": _family,
    "country": _country,
    "market": lambda one, values: _provider(one).kind.replace(" ", "-") in values,
    "durable": lambda one, values: ("yes" if _provider(one).durable else "no") in values,
    "first": _first,
    "beside": lambda one, values: any(other["kind"] in values for other in one.view["alternatives"]),
    "services": lambda one, values: any(other["provider"] in values for other in one.view["services"]),
}


def says(view: Mapping[str, Any], plan: Plan | None, word: str) -> bool:
    """Whether the answer holds the word in what it prints."""
    texts = list(view["notes"])
    texts += [one["text"] for name in ("turns", "answers") for one in view.get(name, ())]
    texts += [f"{one['what']} {one['how_much']} {one['remedy']}" for one in view["missing"]]
    texts += [headline(plan)] if plan is not None and plan.winner is not None else []
    return any(word.lower() in text.lower() for text in texts)
