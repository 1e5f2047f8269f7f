"""Claims about training: Trainium, TPUs, networks, and the dearer chip that does the job for less."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from chipwise.planner.tails import BOOT_S
from sayings.bench import Asked, Bench, Cost, chips, named, short
from sayings.judging import Number, Outcome, Table, Varied, every, figure, judge, middle, outcome

Claim = Mapping[str, Any]
PORTING_USD = 20_000.0  # four weeks of an engineer: our assumption, to vary "no cost of porting"
UNPLANNED = "not planned: it does not fit, its batch is too small, or more machines do not help"
WEIGHTY = ("train (example)", "chat-70b")


def trainium(bench: Bench, claim: Claim) -> Outcome:
    numbers: dict[str, Number] = {}
    dearer: dict[str, Number] = {}
    ported: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        asked = bench.ask(path)
        for first, second in claim["compare"]:
            key = f"{short(path)}: {first} / {second}"
            pair = _pair(asked, named(first), named(second))
            if isinstance(pair, str):
                lost.append(f"{key}: {pair}")
                continue
            one, two = pair
            saving = one.usd.over(two.usd).saving()
            numbers[key] = saving
            assert isinstance(asked, Asked)
            year = _pair(asked, named(first), named(second), "reserved-1y")
            dearer[key] = saving if isinstance(year, str) else year[0].usd.over(year[1].usd).saving()
            job = asked.rows.units * one.usd.value
            ported[key] = Number.exact(1 - (1 - saving.value) * (job + PORTING_USD) / job)
            rows.append((short(path), first, second, *_told(one), *_told(two), saving.shown(".0%")))

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one >= 0.45):
            return "true"
        if every(values, lambda one: one < 0.10):
            return "false"
        return "partly" if middle(values) >= 0.25 else "depends"

    found = judge(
        rule,
        numbers,
        (
            Varied("prices of a one-year commitment instead of on-demand, where both are sold so", dearer),
            Varied(f"porting costs ${PORTING_USD:,.0f} (assumed), once per job", ported),
            Varied("software that runs on both: where it does not, there is no number"),
        ),
    )
    titles = ("workload", "first", "second", "$/h", "Mtok/s x 1000", "$/h", "Mtok/s x 1000", "saving")
    return outcome(
        (Table(titles, tuple(rows)),),
        found,
        "plans of each file without limits; rows of one machine, on-demand, us-east-1 where it is offered",
        tuple(lost),
    )


def _told(one: Cost) -> tuple[str, str]:
    return f"{one.hourly:.2f}{f' ({one.away})' if one.away else ''}", figure(one.per_s.value * 1e3)


def _pair(
    asked: Asked | str,
    first: Callable[..., bool],
    second: Callable[..., bool],
    purchase: str = "on-demand",
    machines: int | None = 1,
) -> tuple[Cost, Cost] | str:
    if isinstance(asked, str):
        return asked
    one, two = asked.one(first, purchase, machines), asked.one(second, purchase, machines)
    if one is None or two is None:
        return "no candidate on the first" if one is None else "no candidate on the second"
    return one, two


def tpu(bench: Bench, claim: Claim) -> Outcome:
    """At equal deadlines: the cheapest number of machines of each within the file's deadline."""
    numbers: dict[str, Number] = {}
    committed: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        asked = bench.ask(path, goals=("deadline",))
        for first, second in claim["compare"]:
            key = f"{short(path)}: {first} / {second}"
            pair = _timely(asked, first, second, "on-demand")
            if isinstance(pair, str):
                lost.append(f"{key}: {pair}")
                continue
            one, two = pair
            ratio = one.usd.over(two.usd)
            numbers[key] = ratio
            year = _timely(asked, first, second, "reserved-1y")
            committed[key] = ratio if isinstance(year, str) else year[0].usd.over(year[1].usd)
            rows.append(
                (
                    short(path),
                    first,
                    second,
                    _size(one),
                    _size(two),
                    f"{one.usd.value:.4g}",
                    f"{two.usd.value:.4g}",
                    ratio.shown(),
                )
            )

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one < 0.9):
            return "true"
        if every(values, lambda one: one > 1.1):
            return "false"
        return "partly" if middle(values) < 0.9 else "depends"

    found = judge(
        rule,
        numbers,
        (
            Varied("prices of a one-year commitment instead of on-demand, where both are sold so", committed),
            Varied("models that run on both without rewriting: where they do not, there is no number"),
        ),
    )
    titles = ("workload", "TPU", "GPU", "TPU machines", "GPU machines", "TPU $/M", "GPU $/M", "ratio")
    return outcome(
        (Table(titles, tuple(rows)),),
        found,
        "plans of each file without limits, its deadline kept; cheapest number of machines of each kind, on-demand at "
        "gcp, us-central1 where it is offered",
        tuple(lost),
    )


def _timely(asked: Asked | str, first: str, second: str, purchase: str) -> tuple[Cost, Cost] | str:
    if isinstance(asked, str):
        return asked
    found = []
    for side in (first, second):
        provider, chip = side.split()
        cost = _kept(asked, chips(chip, provider=provider), purchase)
        if cost is None:
            return f"no candidate of {side} keeps the deadline"
        found.append(cost)
    return found[0], found[1]


def _kept(asked: Asked, test: Callable[..., bool], purchase: str) -> Cost | None:
    """The cheapest of such candidates that keeps the goals."""
    good = set(asked.rows.ranked[: asked.rows.kept].tolist())
    found = [at for at in asked.where(test, purchase).tolist() if at in good]
    if not found:
        return None
    home = [at for at in found if asked.region(at) == "us-central1"]
    best = min(
        home or found, key=lambda at: (asked.hourly(at) * asked.rows.priced.machines[at] * asked.rows.priced.seconds[at], at)
    )
    return asked.cost(best, "" if home else asked.region(best))


def _size(one: Cost) -> str:
    return f"{one.choice.machines} x {one.choice.machine}{f' ({one.away})' if one.away else ''}"


def infiniband(bench: Bench, claim: Claim) -> Outcome:
    machine = "aws p5.48xlarge"
    speeds = (3200.0, 400.0, 100.0)
    counts = (2, 16, 64)
    benches = {speed: bench.networked(machine, speed) for speed in speeds}
    numbers: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        for many in counts:
            seconds = {speed: _seconds(benches[speed].ask(path, objective="time"), machine, many) for speed in speeds}
            fast = seconds[3200.0]
            if fast is None:
                lost.append(f"{short(path)} at {many} machines: {UNPLANNED}")
                continue
            cells = []
            for speed in speeds[1:]:
                slow = seconds[speed]
                if slow is None:
                    cells.append("-")
                    continue
                ratio = slow.over(fast)
                numbers[f"{short(path)}|{many}|{speed:.0f}"] = ratio
                cells.append(ratio.shown())
            rows.append((short(path), str(many), *cells))

    def rule(values: Mapping[str, float]) -> str:
        def some(many: int, speed: int, only: tuple[str, ...] = ()) -> dict[str, float]:
            return {
                key: one
                for key, one in values.items()
                if key.endswith(f"|{many}|{speed}") and (not only or key.startswith(only))
            }

        if every(some(2, 100), lambda one: one > 1.5) and len(some(2, 100)) == len(claim["workloads"]):
            return "true"
        if every(some(64, 400), lambda one: one < 1.1):
            return "false"
        large = {key: one for key, one in values.items() if key.startswith(("pretrain-175b", "full-70b"))}
        small = {key: one for key, one in values.items() if key not in large}
        both = any(one > 1.5 for one in large.values()) and not any(one > 1.5 for one in small.values())
        return "partly" if both else "depends"

    found = judge(rule, numbers, (Varied("bandwidth counts and not the name on the cable: the page has no other number"),))
    return Outcome(
        (Table(("workload", "machines", "400 / 3200 Gbit/s", "100 / 3200 Gbit/s"), tuple(rows)),),
        found.plain,
        found.verdict,
        found.why,
        found.hangs,
        f"plans with {machine} (8 x H100-SXM) whose network was set to 3200, 400 and 100 Gbit/s; the best split of each",
        (
            *lost,
            "bands of both sides are taken as independent; part of their errors is one, so the ratios are surer than shown",
            (
                '"for the 70B and 175B models only" is read as: above 1.5 for one of them at some number of machines, '
                "and for no other workload"
            ),
        ),
    )


def _seconds(asked: Asked | str, machine: str, many: int) -> Number | None:
    """Of the whole job without its boot, with its band."""
    if isinstance(asked, str):
        return None
    priced, at = asked.rows.priced, asked.where(named(machine))
    at = at[priced.machines[at] == many]
    if not len(at):
        return None
    best = int(at[int(priced.seconds[at].argmin())])
    seconds = float(priced.seconds[best])
    work = seconds - BOOT_S
    return Number(work, work * float(priced.low_s[best]) / seconds, work * float(priced.high_s[best]) / seconds)


def dearer_chip(bench: Bench, claim: Claim) -> Outcome:
    numbers: dict[str, Number] = {}
    fp8: dict[str, Number] = {}
    rows, lost = [], []
    for path in claim["workloads"]:
        by_size = []
        for many in (8, 1):
            ratios = _ratios(bench, path, many, "bf16")
            if not ratios:
                lost.append(f"{short(path)}, {many} x each: no provider sells both, or the model does not fit")
                continue
            by_size.append(median_of(list(ratios.values())))
            told = ", ".join(f"{name} {one.value:.2f}" for name, one in ratios.items())
            rows.append((short(path), f"{many}", str(len(ratios)), told, by_size[-1].shown()))
        if by_size:
            numbers[short(path)] = median_of(by_size)
            others = [one for many in (8, 1) if (one := _ratios(bench, path, many, "fp8"))]
            fp8[short(path)] = median_of([median_of(list(one.values())) for one in others]) if others else numbers[short(path)]

    def rule(values: Mapping[str, float]) -> str:
        if every(values, lambda one: one < 0.95):
            return "true"
        if every(values, lambda one: one > 1.05):
            return "false"
        heavy = {name: one for name, one in values.items() if name in WEIGHTY}
        light = {name: one for name, one in values.items() if name not in WEIGHTY}
        return "partly" if every(heavy, lambda one: one < 0.95) and not any(one < 0.95 for one in light.values()) else "depends"

    found = judge(rule, numbers, (Varied("fp8 on the H100, bf16 on the A100", fp8),))
    titles = ("workload", "chips a machine", "providers", "ratio by provider", "median")
    return outcome(
        (Table(titles, tuple(rows)),),
        found,
        "plans of each file without limits on where; for each provider that sells both, its cheapest machine of that size, "
        "on-demand",
        (*lost, "a workload's number is the middle of its two sizes"),
    )


def _ratios(bench: Bench, path: str, many: int, precision: str) -> dict[str, Number]:
    """By provider: USD per unit of work on H100-SXM over that on A100-80."""
    serving = "chat" in path
    goals = ("ttft", "tpot") if serving else ()
    change: dict[str, Any] = {"arrival": {"rate": 1000}} if serving else {}
    limits = {"chip_count": {"max": 1_000_000}} if serving else None
    sampled = "resnet" in path
    new = bench.ask(path, goals=goals, limits=limits, **change, **({} if sampled else {"precision": precision}))
    old = bench.ask(path, goals=goals, limits=limits, **change, **({} if sampled else {"precision": "bf16"}))
    if isinstance(new, str) or isinstance(old, str):
        return {}
    providers = sorted(
        {one[0] for one in new.machine if one[2] == "H100-SXM"} & {one[0] for one in old.machine if one[2] == "A100-80"}
    )
    found = {}
    for name in providers:
        one = new.one(chips("H100-SXM", many, name), machines=None if serving else 1)
        two = old.one(chips("A100-80", many, name), machines=None if serving else 1)
        if one is not None and two is not None:
            found[name] = one.usd.over(two.usd)
    return found


def median_of(numbers: list[Number]) -> Number:
    """The middle one, with its own band; of an even count the geometric middle of two."""
    ordered = sorted(numbers, key=lambda one: one.value)
    a, b = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return Number(*(median((getattr(a, end), getattr(b, end))) for end in ("value", "low", "high")))
