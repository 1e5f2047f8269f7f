"""Claims about prices: owning, spot, serverless, green regions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chipwise.api.verbs import tco
from chipwise.catalog.offer import NEVER_WIN, PURCHASES, VERDICTS, Purchase
from chipwise.money.tco_values import TcoRequest
from chipwise.planner.values.choice import Choice
from sayings.bench import Asked, Bench, short
from sayings.judging import Number, Outcome, Table, Varied, every, judge, outcome

Claim = Mapping[str, Any]
ENGINEER_USD = 150_000.0  # a year; as `tco` counts one
GREEN_G = 100.0  # per kWh
MOVED = "100GB"


def cloud_dearer(bench: Bench, claim: Claim) -> Outcome:
    asked: dict[str, dict[str, Any]] = {
        "usual": {"country": "USA"},
        "DEU": {"country": "DEU"},
        "five years": {"country": "USA", "years": 5.0},
        "capital 4%": {"country": "USA", "interest": 0.04},
        "a person per 20 machines": {"country": "USA", "staff_usd_per_machine_year": ENGINEER_USD / 20},
    }
    found: dict[str, dict[str, Number]] = {name: {} for name in asked}
    rows, lost = [], []
    for name, change in asked.items():
        for chip, many, purchase, providers in (
            ("H100-SXM", 8, "on-demand", ("aws", "gcp", "azure", "lambda", "coreweave")),
            ("H100-SXM", 8, "reserved-3y", ()),
            ("A100-80", 8, "spot", ()),
            ("RTX-4090", 1, "on-demand", ()),
        ):
            base: dict[str, Any] = {
                "years": 3.0,
                "interest": 0.08,
                "utilisation": 1.0,
                "staff_usd_per_machine_year": ENGINEER_USD / 100,
            }
            own = tco(bench.session, TcoRequest(chip, many, **(base | change)))
            hours = [one.usd_per_machine_hour for one in (own.cost, own.low, own.high)]
            for provider in providers or ("",):
                price = _rented(bench, chip, many, purchase, provider)
                key = f"{many} x {chip}, {purchase}{f' at {provider}' if provider else ''}"
                if price is None:
                    if name == "usual":
                        lost.append(f"{key}: no real offer")
                    continue
                even = Number(hours[0] / price[0], min(hours) / price[0], max(hours) / price[0])
                found[name][key] = even
                if name == "usual":
                    rows.append((key, price[1], f"{price[0]:.2f}", f"{hours[0]:.2f}", even.shown()))

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one < 0.10):
            return "true"
        if any(one > 1.0 for one in values.values()):
            return "false"
        return "partly" if every(values, lambda one: one < 0.60) else "depends"

    judged = judge(rule, found["usual"], tuple(Varied(name, found[name]) for name in asked if name != "usual"))
    titles = ("pair", "rented from", "rented $/h", "owned $/h", "break-even share of hours")
    return outcome(
        (Table(titles, tuple(rows)),),
        judged,
        "`chipwise tco` over three years in the USA (8% capital, a person per 100 machines), all hours in use; the newest "
        "real offers in us-east-1, us-central1, eastus, or the cheapest of a provider without these",
        tuple(lost),
    )


def _rented(bench: Bench, chip: str, many: int, purchase: str, provider: str) -> tuple[float, str] | None:
    """The newest price of so many chips in one machine, the cheapest of equally new ones."""
    catalog = bench.session.catalog
    offers = catalog.offers
    best: tuple[int, float, str] | None = None
    for at in range(len(offers)):
        machine = catalog.machines[offers.machine[at]]
        if machine.chip != chip or machine.chips != many or (provider and machine.provider != provider):
            continue
        if str(PURCHASES[offers.purchase[at]]) != purchase or VERDICTS[offers.verdict[at]] in NEVER_WIN or machine.retired:
            continue
        region = catalog.regions[offers.region[at]].name
        home = region in ("us-east-1", "us-central1", "eastus")
        rank = (-int(offers.as_of[at]) if provider else 0, offers.price[at])
        told = f"{machine.provider} {machine.name}, {region}"
        if provider in ("aws", "gcp", "azure") and not home:
            continue
        if best is None or rank < best[:2]:
            best = (*rank, told)
    return None if best is None else (best[1], best[2])


def serverless(bench: Bench, claim: Claim) -> Outcome:
    rows = bench.session.catalog.rows("serverless")
    both = [one for one in rows if _gpu(one) and str(one.scale_to_zero or "").startswith("yes")]
    providers = sorted({one.provider for one in both})
    without = sorted(
        {f"{one.provider} {one.service}" for one in rows} - {f"{one.provider} {one.service}" for one in rows if _gpu(one)}
    )
    asked = bench.ask("tests/cases/chat-8b-rare.yaml", goals=("latency",))
    fit = []
    if not isinstance(asked, str):
        fit = [
            one
            for one in asked.plan.services
            if one.kind == "serverless" and not one.refused and one.provider in providers and not one.hardware.startswith("CPU")
        ]
    answers = Table(
        ("service that serves chat-8b-rare within 120 s", "hardware", "USD a month", "cold starts"),
        tuple(
            (
                f"{one.provider} {one.name}",
                one.hardware,
                f"{one.usd:.2f}",
                "" if one.cold_share is None else f"{one.cold_share:.0%}",
            )
            for one in fit[:8]
        ),
    )
    count = Table(
        ("provider", "services with a GPU that scale to zero"),
        tuple((name, ", ".join(sorted({one.service for one in both if one.provider == name}))) for name in providers),
    )
    verdict = "true" if not both else "false" if len(providers) >= 3 and fit else "partly"
    why = (
        f"{len(providers)} providers have both, {len(fit)} of their offers serve chat-8b-rare within its goal, cold starts too"
    )
    return Outcome(
        (count, answers),
        verdict,
        verdict,
        why,
        ("cold start as stated by the service: not varied; the goal is 120 s.",),
        "the table of serverless prices, and the services of the plan",
        (f"services without a GPU: {', '.join(without)}",),
    )


def _gpu(one: Any) -> bool:
    return one.usd_per_gpu_hour is not None and not re.search(r"inf\d|trn\d", one.hardware)


def spot(bench: Bench, claim: Claim) -> Outcome:
    ratios = _price_ratios(bench)
    table = [("price only, every accelerator machine and region", str(len(ratios)), *_quantiles(ratios))]
    numbers: dict[str, Number] = {}
    often: dict[str, Number] = {}
    best = {"price only": float(ratios.max())}
    for path in claim["workloads"]:
        asked = bench.ask(path)
        if isinstance(asked, str):
            continue
        savings = _finished(asked)
        table.append((f"{short(path)}, finished on one machine", str(len(savings)), *_quantiles(savings)))
        numbers[short(path)] = Number(*(float(np.quantile(savings, share)) for share in (0.5, 0.1, 0.9)))
        best[short(path)] = float(savings.max())
        often[short(path)] = Number.exact(float(np.median(_finished(asked, 3.0))))
    highest = max(best[name] for name in numbers)

    def rule(values: Mapping[str, float]) -> str:
        typical = float(np.median(list(values.values())))
        if typical >= 0.80:
            return "true"
        if highest < 0.85:
            return "false"
        return "partly" if typical >= 0.40 else "depends"

    plain = {name: Number.exact(one.value) for name, one in numbers.items()}
    found = judge(
        rule,
        plain,
        (
            Varied("time lost to interruptions three times as long", often),
            Varied("checkpoints at their best interval: the planner takes no other"),
        ),
    )
    titles = ("saving", "machines x regions", "10th percentile", "median", "90th percentile", "most")
    return outcome(
        (Table(titles, tuple(table)),),
        found,
        "real offers that have both prices for the same machine in the same region (doubtful prices left out); plans of "
        "each file, one machine",
        (
            (
                "the median is over machines and regions for each workload, then over workloads; the "
                "spread between machines is shown instead of a band"
            ),
        ),
    )


def _price_ratios(bench: Bench) -> np.ndarray[Any, np.dtype[np.float64]]:
    catalog = bench.session.catalog
    offers = catalog.offers
    prices: dict[tuple[int, int], dict[Purchase, float]] = {}
    for at in range(len(offers)):
        machine = catalog.machines[offers.machine[at]]
        purchase = PURCHASES[offers.purchase[at]]
        if (
            not machine.chips
            or VERDICTS[offers.verdict[at]] in NEVER_WIN
            or purchase not in (Purchase.SPOT, Purchase.ON_DEMAND)
        ):
            continue
        both = prices.setdefault((offers.machine[at], offers.region[at]), {})
        both[purchase] = min(offers.price[at], both.get(purchase, np.inf))
    return np.array([1 - one[Purchase.SPOT] / one[Purchase.ON_DEMAND] for one in prices.values() if len(one) == 2])


def _finished(asked: Asked, worse: float = 1.0) -> np.ndarray[Any, np.dtype[np.float64]]:
    """1 - USD to finish on spot / on-demand, of every machine and region with both; `worse` stretches what is lost."""
    priced, ranked = asked.rows.priced, asked.rows.ranked
    one = ranked[priced.machines[ranked] == 1]
    by_place: dict[tuple[int, int], dict[str, float]] = {}
    for at in one.tolist():
        purchase = str(PURCHASES[priced.purchase[at]])
        if purchase in ("spot", "on-demand"):
            usd = float(priced.compute_usd[at]) + worse * float(priced.restart_usd[at])
            both = by_place.setdefault((int(priced.machine[at]), int(priced.region[at])), {})
            both[purchase] = min(usd, both.get(purchase, np.inf))
    return np.array([1 - one["spot"] / one["on-demand"] for one in by_place.values() if len(one) == 2])


def _quantiles(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[str, ...]:
    return (*(f"{np.quantile(values, share):.0%}" for share in (0.1, 0.5, 0.9)), f"{values.max():.0%}")


def green(bench: Bench, claim: Claim) -> Outcome:
    clouds: Sequence[str | None] = (None, "aws", "gcp", "azure")
    numbers: dict[str, Number] = {}
    still: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        for cloud in clouds:
            key = f"{short(path)}: {cloud or 'all'}"
            bare = bench.ask(path, goals=("deadline",))
            found = _greenest(bare, cloud)
            if found is None or isinstance(bare, str):
                lost.append(f"{key}: no candidate below {GREEN_G:g} g")
                continue
            home = found[0]
            region = bare.rows.fleet.catalog.regions[bare.rows.priced.region[home]]
            moved = bench.ask(path, goals=("deadline",), data={"size": MOVED, "place": f"{region.provider}:{region.name}"})
            pair = _greenest(moved, cloud)
            if pair is None or isinstance(moved, str):
                lost.append(f"{key}: with {MOVED} to move there is no plan")
                continue
            cheap, clean = (moved.rows.choice(at) for at in pair)
            numbers[key] = _extra(cheap, clean)
            still[key] = _extra(*(bare.rows.choice(at) for at in found))
            rows.append(
                (
                    short(path),
                    cloud or "all",
                    f"{cheap.provider} {cheap.region}",
                    f"{cheap.usd:,.2f}",
                    f"{clean.provider} {clean.region}",
                    f"{clean.usd:,.2f}",
                    numbers[key].shown("+.0%"),
                    f"{clean.kg / cheap.kg:.2f}",
                )
            )

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one > 0.10):
            return "true"
        if every(values, lambda one: one <= 0.02):
            return "false"
        return "partly" if sum(one > 0.10 for one in values.values()) >= len(values) / 2 else "depends"

    found_ = judge(
        rule,
        numbers,
        (
            Varied("no data to move", still),
            Varied("yearly mean of the grid: hours differ, and the catalog has no hours"),
        ),
    )
    titles = ("workload", "providers", "cheapest", "USD", f"cheapest below {GREEN_G:g} g", "USD", "extra", "emissions ratio")
    return outcome(
        (Table(titles, tuple(rows)),),
        found_,
        f"plans of each file by cost, its deadline kept, any purchase option; {MOVED} of data lie where the cheapest is",
        lost,
    )


def _extra(cheap: Choice, clean: Choice) -> Number:
    """The same machine is as fast in every region: only machines that differ have errors of their own."""
    sides = [Number(one.usd, one.usd * one.low_s / one.seconds, one.usd * one.high_s / one.seconds) for one in (clean, cheap)]
    if (clean.machine, clean.machines, clean.precision) == (cheap.machine, cheap.machines, cheap.precision):
        sides = [Number.exact(one.value) for one in sides]
    ratio = sides[0].over(sides[1])
    return Number(ratio.value - 1, ratio.low - 1, ratio.high - 1)


def _greenest(asked: Asked | str, cloud: str | None) -> tuple[int, int] | None:
    """Positions of the cheapest candidate that keeps the goals, anywhere and on a grid below the limit."""
    if isinstance(asked, str):
        return None
    rows = asked.rows
    good = rows.ranked[: rows.kept]
    if cloud is not None:
        fine = np.array([one[0] == cloud for one in asked.machine], dtype=bool)
        good = good[fine[rows.priced.machine[good]]]
    grams = np.array([np.nan if one.grid_g_per_kwh is None else one.grid_g_per_kwh for one in rows.fleet.catalog.regions])
    clean = good[grams[rows.priced.region[good]] < GREEN_G]
    return (int(good[0]), int(clean[0])) if len(good) and len(clean) else None
