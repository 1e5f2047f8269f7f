"""Claims about serving: Inferentia, fp8, 4-bit weights, consumer cards, and hosting against paying per token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from chipwise.api.verbs import tco
from chipwise.money.tco_values import TcoRequest
from chipwise.planner.values.plan import Service
from sayings.bench import MANY, Asked, Bench, Cost, chips, named, per_machine, short
from sayings.judging import Number, Outcome, Table, Varied, every, figure, judge, middle, outcome
from sayings.measured import precision_pairs

Claim = Mapping[str, Any]
FULL = {"rate": 1000}  # requests a second: enough to fill machines of any size
GOALS = ("ttft", "tpot", "latency")
HALF_A_PERSON = 6_250.0  # USD a month: half of 150,000 a year, which is what `tco` counts an engineer as
DEEP = 150  # candidates, cheapest first, among which the cheapest per answer is looked for


def inferentia(bench: Bench, claim: Claim) -> Outcome:
    numbers: dict[str, Number] = {}
    lone: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        asked = bench.ask(path, goals=GOALS, arrival=FULL, limits=MANY | {"precision": ["bf16", "fp16"]})
        half = bench.ask(path, goals=GOALS, limits=MANY | {"precision": ["bf16", "fp16"]})
        for first, second in claim["compare"]:
            key = f"{short(path)}: {first} / {second}"
            pair = _pair(asked, first, second)
            if isinstance(pair, str):
                lost.append(f"{key}: {pair}")
                continue
            one, two = pair
            numbers[key] = one.usd.over(two.usd).saving()
            month = _pair(half, first, second)
            lone[key] = numbers[key] if isinstance(month, str) else Number.exact(1 - month[0].hourly / month[1].hourly)
            rows.append(
                (
                    short(path),
                    first,
                    second,
                    f"{one.hourly / one.choice.machines:.3f}",
                    figure(per_machine(one.choice)),
                    f"{two.hourly / two.choice.machines:.3f}",
                    figure(per_machine(two.choice)),
                    numbers[key].shown(".0%"),
                )
            )

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one >= 0.60):
            return "true"
        if every(values, lambda one: one < 0.10):
            return "false"
        return "partly" if middle(values) >= 0.30 or any(one >= 0.60 for one in values.values()) else "depends"

    found = judge(
        rule,
        numbers,
        (
            Varied("machines as full as each file's own rate makes them, whole machines paid", lone),
            Varied("fp16 or bf16 on both sides: other formats are claims of their own"),
        ),
    )
    titles = ("workload", "first", "second", "$/h", "req/s", "$/h", "req/s", "saving")
    return outcome(
        (Table(titles, tuple(rows)),),
        found,
        "plans of each file at 1000 req/s, so that whole machines are full within its goals; on-demand, us-east-1",
        tuple(lost),
    )


def _pair(asked: Asked | str, first: str, second: str) -> tuple[Cost, Cost] | str:
    if isinstance(asked, str):
        return asked
    one, two = (asked.one(named(side), machines=None) for side in (first, second))
    if one is None or two is None:
        return f"{first if one is None else second} cannot: memory, format or latency"
    return one, two


def fp8(bench: Bench, claim: Claim) -> Outcome:
    numbers: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        serving = "chat" in path
        change: dict[str, Any] = {"goals": GOALS if serving else (), **({"arrival": FULL, "limits": MANY} if serving else {})}
        asked = {name: bench.ask(path, precision=name, **change) for name in ("fp8", "bf16")}
        for first, _ in claim["compare"]:
            chip = first.split()[0]
            key = f"{short(path)}: {chip}"
            rates = {name: _rate(one, chip, serving) for name, one in asked.items()}
            if rates["fp8"] is None or rates["bf16"] is None:
                lost.append(f"{key}: {'bf16' if rates['bf16'] is None else 'fp8'} does not fit or keeps no goal on one machine")
                continue
            numbers[key] = rates["fp8"].over(rates["bf16"])
            rows.append((short(path), chip, figure(rates["bf16"].value), figure(rates["fp8"].value), numbers[key].shown()))

    def rule(values: Mapping[str, float]) -> str:
        if middle(values) >= 1.8:
            return "true"
        if middle(values) < 1.1:
            return "false"
        return "partly" if middle(values) >= 1.3 else "depends"

    pairs = precision_pairs(bench.session.parts, "fp8", "bf16")
    seen = {f"pair {at}": Number.exact(one) for at, one in enumerate(pairs)}
    found = judge(
        rule,
        numbers,
        (
            Varied(f"the {len(pairs)} pairs of published or own measurements that differ in precision only", seen or None),
            Varied("answers of the same quality: nothing here knows quality"),
        ),
    )
    titles = ("workload", "chip", "bf16, units/s", "fp8, units/s", "ratio")
    return outcome(
        (Table(titles, tuple(rows)),),
        found,
        "plans of each file in both precisions, one machine of up to 8 chips, its best split in each; packaged measurements",
        (*lost, "the median is that of the predictions; measured pairs stand beside it as a variation"),
    )


def _rate(asked: Asked | str, chip: str, serving: bool) -> Number | None:
    """Of one machine, the largest with up to eight chips."""
    if isinstance(asked, str):
        return None
    for many in (8, 4, 2, 1):
        found = asked.where(chips(chip, many), None)
        if not serving:
            found = found[asked.rows.priced.machines[found] == 1]
        if len(found):
            cost = asked.cost(int(found[0]))
            return cost.per_s.times(1 / cost.choice.machines)
    return None


def four_bit(bench: Bench, claim: Claim) -> Outcome:
    numbers: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        for way, arrival in (("one at a time", {"concurrency": 1}), ("full", FULL)):
            asked = {
                name: bench.ask(path, goals=GOALS if way == "full" else (), arrival=arrival, precision=name, limits=MANY)
                for name in ("int4", "bf16")
            }
            best = {name: cheapest(one) for name, one in asked.items()}
            four, sixteen = best["int4"], best["bf16"]
            if four is None or sixteen is None:
                lost.append(f"{short(path)}, {way}: nothing serves it in {'int4' if four is None else 'bf16'}")
                continue
            numbers[f"{short(path)}|{way}"] = sixteen.usd.over(four.usd)
            same = _on(asked["int4"], sixteen)
            told = sixteen.usd.over(same.usd).shown() if same is not None else "-"
            rows.append((short(path), way, _what(sixteen), _what(four), numbers[f"{short(path)}|{way}"].shown(), told))

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one >= 3.5):
            return "true"
        if every(values, lambda one: one < 1.2):
            return "false"
        alone = {name: one for name, one in values.items() if name.endswith("one at a time")}
        return "partly" if every(alone, lambda one: one >= 2) else "depends"

    found = judge(
        rule,
        numbers,
        (
            Varied("answers of the same quality: nothing here knows quality"),
            Varied("kernels of the usual engine: the fit has no others"),
        ),
    )
    titles = ("workload", "load", "cheapest in bf16", "cheapest in int4", "bf16 / int4", "on the same hardware")
    return outcome(
        (Table(titles, tuple(rows)),),
        found,
        "plans of each file without limits, on-demand anywhere; USD per answer, which is per output token too",
        (
            *lost,
            "one request at a time is planned without the file's latency goals: one caller, and the cheapest that serves them",
        ),
    )


def cheapest(
    asked: Asked | str, test: Callable[[str, str, str, int], bool] | None = None, purchase: str = "on-demand"
) -> Cost | None:
    """The least USD per unit of work; where a month is planned, among the cheapest by the month."""
    if isinstance(asked, str):
        return None
    found = asked.where(test or (lambda *_: True), purchase)
    if not len(found):
        return None
    priced = asked.rows.priced
    cost = priced.usd[found]
    if asked.plan.per == "job":
        cost = priced.seconds[found] * priced.machines[found] * [asked.hourly(at) for at in found.tolist()]
        return asked.cost(int(found[int(cost.argmin())]))
    order = found[cost.argsort(kind="stable")]
    seen, tried = set(), []
    for at in order.tolist():
        if (key := int(priced.machine[at])) not in seen:
            seen.add(key)
            tried.append(at)
        if len(tried) == DEEP:
            break

    def each(at: int) -> float:
        choice = asked.rows.choice(at)
        return asked.hourly(at) / max(per_machine(choice), 1e-12)

    return asked.cost(min(tried, key=each))


def _on(asked: Asked | str, other: Cost) -> Cost | None:
    if isinstance(asked, str):
        return None
    return asked.one(named(f"{other.choice.provider} {other.choice.machine}"), other.choice.purchase, machines=None)


def _what(one: Cost) -> str:
    return f"{one.choice.provider} {one.choice.chips} x {one.choice.chip}"


def consumer(bench: Bench, claim: Claim) -> Outcome:
    others = [second for _, second in claim["compare"]]
    numbers: dict[str, Number] = {}
    busy: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        serving = "chat" in path
        change: dict[str, Any] = {"arrival": FULL, "limits": MANY, "precision": "bf16"} if serving else {}
        asked = bench.ask(path, goals=GOALS, **change)
        card = cheapest(asked, chips("RTX-4090"))
        rivals = {chip: one for chip in others if (one := cheapest(asked, chips(chip))) is not None}
        if card is None or not rivals:
            lost.append(f"{short(path)}: {'RTX-4090' if card is None else 'no data-centre chip'} cannot: memory or latency")
            continue
        name, best = min(rivals.items(), key=lambda item: item[1].usd.value)
        rented = card.usd.over(best.usd)
        numbers[f"{short(path)}|rented"] = rented
        owned = {chip: _owned(bench, one, chip, 1.0) for chip, one in (("RTX-4090", card), *rivals.items())}
        rival, least = min(((chip, one) for chip, one in owned.items() if chip != "RTX-4090"), key=lambda item: item[1].value)
        bought = owned["RTX-4090"].over(least)
        numbers[f"{short(path)}|bought"] = bought
        third = {chip: _owned(bench, one, chip, 0.3) for chip, one in (("RTX-4090", card), (rival, rivals[rival]))}
        busy |= {f"{short(path)}|rented": rented, f"{short(path)}|bought": third["RTX-4090"].over(third[rival])}
        rows.append((short(path), _what(card), f"{name} ({best.choice.provider})", rented.shown(), rival, bought.shown()))

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one < 0.9) and not lost:
            return "true"
        if every(values, lambda one: one > 1.1):
            return "false"
        large = {name: one for name, one in values.items() if name.startswith("chat-70b")}
        small = {name: one for name, one in values.items() if name not in large}
        return "partly" if every(small, lambda one: one < 0.9) and not any(one < 0.9 for one in large.values()) else "depends"

    found = judge(
        rule,
        numbers,
        (
            Varied("own machines in use 30% of the hours instead of all", busy),
            Varied(
                "licence terms of consumer drivers forbid data centres (NVIDIA's GeForce licence); ignored, as the claim says"
            ),
            Varied("no ECC: nothing here knows what an error costs"),
        ),
    )
    titles = ("workload", "4090s", "cheapest rented rival", "rented ratio", "cheapest bought rival", "bought ratio")
    return outcome(
        (Table(titles, tuple(rows)),),
        found,
        "plans of each file without limits, on-demand anywhere; `chipwise tco` over three years in the USA for bought ones",
        tuple(lost),
    )


def _owned(bench: Bench, one: Cost, chip: str, used: float) -> Number:
    """USD per unit of work on as many chips of one's own, all hours of the clock paid for."""
    many = one.choice.chips
    found = tco(bench.session, TcoRequest(chip, many, years=3.0, country="USA", utilisation=used, interest=0.08))
    hour = [own.usd_per_machine_hour for own in (found.cost, found.low, found.high)]
    rate = one.per_s.times(used / one.choice.machines)
    least, most = sorted(hour[1:])
    return Number(hour[0] / 3600 / rate.value, least / 3600 / rate.high, most / 3600 / rate.low)


def self_hosting(bench: Bench, claim: Claim) -> Outcome:
    numbers: dict[str, Number] = {}
    staffed: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        asked = bench.ask(path, goals=GOALS, precision="bf16")
        if isinstance(asked, str) or asked.plan.winner is None:
            lost.append(f"{short(path)}: no plan")
            continue
        tokens = [one for one in asked.plan.services if one.kind == "per token"]
        found = asked.where(lambda *_: True)
        if not tokens or not len(found):
            lost.append(f"{short(path)}: {'no price per token of this model' if not tokens else 'no on-demand machine'}")
            continue
        best: Service = min(tokens, key=lambda one: one.usd)
        host = asked.rows.choice(int(found[int(asked.rows.priced.usd[found].argmin())]))
        numbers[short(path)] = Number.exact(host.usd / best.usd)
        staffed[short(path)] = Number.exact((host.usd + HALF_A_PERSON) / best.usd)
        rows.append(
            (
                short(path),
                f"{host.machines} x {host.provider} {host.machine}",
                f"{host.usd:,.0f}",
                f"{best.provider}",
                f"{best.usd:,.2f}",
                f"{host.usd / best.usd:.2f}",
                best.break_even,
            )
        )

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one < 1):
            return "true"
        if every(values, lambda one: one > 1):
            return "false"
        busy = values.get("chat-8b-busy", 2.0) < 1
        others = [one for name, one in values.items() if name != "chat-8b-busy"]
        return "partly" if busy and all(one >= 1 for one in others) else "depends"

    found_ = judge(
        rule,
        numbers,
        (
            Varied(f"half a person, ${HALF_A_PERSON:,.0f} a month", staffed),
            Varied("the same model and precision: services do not all state theirs"),
        ),
    )
    titles = (
        "workload",
        "cheapest hosting, on-demand",
        "USD a month",
        "cheapest per token",
        "USD a month",
        "ratio",
        "hosting is cheaper",
    )
    return outcome(
        (Table(titles, tuple(rows)),),
        found_,
        "plans of each file without limits; the table of token prices",
        (*lost, "bands are left out: a month's cost moves in whole machines, and the rates have room"),
    )
