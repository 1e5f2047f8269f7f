"""The planner asked the same thing in many ways: files with limits taken away, and rows of the plan picked by machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from chipwise.api.session.config import read_config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.catalog.offer import PURCHASES
from chipwise.errors import ChipwiseError
from chipwise.planner.fleet import Index
from chipwise.planner.tails import BOOT_S
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan, Rows
from chipwise.planner.values.split import GenerationSplit
from chipwise.predictor import transformer as estimating
from chipwise.predictor.samples import predict_samples
from sayings.judging import Number

ROOT = Path(__file__).resolve().parents[2]
DAY = date(2026, 9, 1)  # fixed: a page must not change because a day has passed
REGIONS = ("us-east-1", "us-central1", "eastus", "default", "*")
HOME = {"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus"}
MANY = {"chip_count": {"max": 1_000_000}}  # a rate that fills machines may need more of them than anybody has


@dataclass(frozen=True, slots=True)
class Cost:
    """One machine (or so many) at work: what a unit of work costs there."""

    usd: Number  # a unit of work
    hourly: float  # USD of all machines
    per_s: Number  # units of work a second, of all machines
    choice: Choice
    away: str = ""  # the region, where the machine is not to be had in the one that was asked for

    @property
    def place(self) -> str:
        return f"{self.choice.where}{' (elsewhere not offered)' if self.away else ''}"


@dataclass(frozen=True)
class Asked:
    """A workload as it was planned, with all candidates."""

    bench: Bench
    plan: Plan
    model: str
    lengths: tuple[float, float]

    @property
    def rows(self) -> Rows:
        assert self.plan.rows is not None
        return self.plan.rows

    @cached_property
    def machine(self) -> tuple[tuple[str, str, str, int], ...]:
        """(provider, name, chip, chips) of every machine of the catalog; no chips: of no use here."""
        fleet = self.rows.fleet
        return tuple(
            (one.provider, one.name, fleet.shapes[at].part if at >= 0 else "", fleet.shapes[at].chips if at >= 0 else 0)
            for one, at in zip(fleet.catalog.machines, fleet.shape_of.tolist(), strict=True)
        )

    def where(self, test: Callable[[str, str, str, int], bool], purchase: str | None = "on-demand") -> Index:
        """Candidates on machines that pass (provider, name, chip, chips), bought so; best-ranked ones first."""
        fine = np.array([test(*one) for one in self.machine], dtype=bool)
        priced, ranked = self.rows.priced, self.rows.ranked
        kept = fine[priced.machine[ranked]]
        if purchase is not None:
            code = next(at for at, one in enumerate(PURCHASES) if str(one) == purchase)
            kept &= priced.purchase[ranked] == code
        found: Index = ranked[kept]
        return found

    def region(self, at: int) -> str:
        return str(self.rows.fleet.catalog.regions[self.rows.priced.region[at]].name)

    def hourly(self, at: int) -> float:
        return float(self.rows.fleet.catalog.offers.price[self.rows.priced.offer[at]])

    def cost(self, at: int, away: str = "") -> Cost:
        """Hours times price of whole machines; boots are left out, since a unit of work has none."""
        priced, choice = self.rows.priced, self.rows.choice(at)
        hourly = self.hourly(at) * choice.machines
        if self.plan.per == "job":
            seconds = float(priced.seconds[at])
            stretch = seconds / max(seconds - BOOT_S, 1.0)
            rate = self.rows.units / seconds * stretch
            low, high = choice.seconds / choice.high_s, choice.seconds / choice.low_s
        else:
            rate, (low, high) = per_machine(choice) * choice.machines, self.bench.band(self, choice)
        per_s = Number(rate, rate * low, rate * high)
        usd = Number(hourly / 3600 / rate, hourly / 3600 / per_s.high, hourly / 3600 / per_s.low)
        return Cost(usd, hourly, per_s, choice, away)

    def one(
        self, test: Callable[[str, str, str, int], bool], purchase: str = "on-demand", machines: int | None = 1
    ) -> Cost | None:
        """The cheapest candidate of such machines in the usual region of its cloud; elsewhere where there is none."""
        found = self.where(test, purchase)
        priced = self.rows.priced
        if machines is not None:
            found = found[priced.machines[found] == machines]
        if not len(found):
            return None
        home = [at for at in found.tolist() if self.region(at) in REGIONS]
        picked = home or found.tolist()
        best = min(picked, key=lambda at: (self.hourly(at) * float(priced.seconds[at]) * float(priced.machines[at]), at))
        return self.cost(best, "" if home else self.region(best))


def per_machine(choice: Choice) -> float:
    """Units a second that one machine takes when it is full."""
    each = (choice.rate or 0.0) / (choice.replicas or 1)
    if not isinstance(choice.split, GenerationSplit):
        return each * choice.chips
    width = choice.split.tp * choice.split.pp
    return each / -(-width // choice.chips) if width > choice.chips else each * (choice.chips // width)


@dataclass
class Bench:
    """Plans are kept: several claims ask the same."""

    session: Session = field(default_factory=lambda: Session(read_config(), DAY, []))
    known: dict[str, Asked | str] = field(default_factory=dict)

    def ask(
        self,
        path: str,
        *,
        drop: Iterable[str] = ("limits", "data"),
        goals: Iterable[str] = (),
        limits: Mapping[str, Any] | None = None,
        objective: str = "cost",
        **changes: Any,
    ) -> Asked | str:
        """A file planned with `drop` taken out, only the goals named kept, and changes on top; or why it cannot be."""
        work = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
        kept = {name: value for name, value in (work.get("goals") or {}).items() if name in goals}
        work = {name: value for name, value in work.items() if name not in drop and name not in ("goals", "environments")}
        work |= changes
        work |= {"goals": kept} if kept else {}
        work |= {"limits": dict(limits)} if limits else {}
        text = yaml.safe_dump(work, sort_keys=True)
        key = f"{objective}\n{text}"
        if key not in self.known:
            try:
                made = plan(self.session, path, objective, 1, text=text)
                lengths = (_mean(work.get("input_tokens")), _mean(work.get("output_tokens")))
                self.known[key] = Asked(self, made, str(work.get("model", "")), lengths) if made.rows is not None else "no rows"
            except ChipwiseError as error:
                self.known[key] = str(error)
        return self.known[key]

    def networked(self, machine: str, gbit: float) -> Bench:
        """The same catalog with another network at one machine."""
        provider, name = machine.split()
        catalog = self.session.catalog
        speed = gbit * 1e9 / 8
        changed = tuple(
            replace(one, network_bytes_per_s=speed, network_baseline_bytes_per_s=speed, fabric_bytes_per_s=speed)
            if (one.provider, one.name) == (provider, name)
            else one
            for one in catalog.machines
        )
        session = Session(self.session.config, DAY, [])
        session.__dict__["catalog"] = replace(catalog, machines=changed)
        return Bench(session)

    def band(self, asked: Asked, choice: Choice) -> tuple[float, float]:
        """How much less and more a replica may answer than it is estimated to, as the serving model states it."""
        length, out = asked.lengths
        if not isinstance(choice.split, GenerationSplit) or not out:
            settings = {"input_tokens": length} if length else {}
            chosen = {**settings, "task": "serve", "precision": choice.precision}
            rate = predict_samples(self.session.known, asked.model, choice.chip, chosen).samples_per_s
            return rate.low / rate.value, rate.high / rate.value
        found = estimating.serve(
            self.session.known,
            asked.model,
            on=choice.chip.partition(" (")[0],
            tp=float(choice.split.tp),
            pp=float(choice.split.pp),
            input_len=length,
            output_len=out,
            precision_weights=choice.precision,
            metrics=("requests_per_s",),
            fit=False,
        ).metrics["requests_per_s"]
        return float(found.low[0] / found.value[0]), float(found.high[0] / found.value[0])


def _mean(value: Any) -> float:
    return float(value["mean"] if isinstance(value, Mapping) else value or 0.0)


def named(machine: str) -> Callable[[str, str, str, int], bool]:
    """From "aws trn1.32xlarge"."""
    provider, name = machine.split()
    return lambda owner, called, _, __: (owner, called) == (provider, name)


def chips(chip: str, many: int | None = None, provider: str | None = None) -> Callable[[str, str, str, int], bool]:
    def test(owner: str, _: str, part: str, count: int) -> bool:
        return part == chip and (many is None or count == many) and (provider is None or owner == provider)

    return test


def short(path: str) -> str:
    return "train (example)" if path == "examples/train/workload.yaml" else Path(path).stem
