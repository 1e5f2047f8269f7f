"""The planner's answer found the slow way: every machine, region, count, split, batch, precision and purchase, one by one.

Nothing here prunes or ranks, and nothing of the planner is used but the fleet (which shape a machine has) and the jobs. The
space is written down again from the planner's docs; times, memory, rates and prices come from `perf` and `money` directly.
`Wanted` is a random workload, as a file for the planner and as values for this one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from itertools import product
from math import ceil, exp, inf, log, sqrt
from pathlib import Path
from random import Random
from statistics import NormalDist, median
from typing import Any, NamedTuple

import numpy as np

from chipwise.api.session.wiring import Session
from chipwise.catalog.machine import Machine
from chipwise.catalog.names import providers
from chipwise.catalog.offer import NEVER_WIN, Offer, Purchase
from chipwise.money import spot
from chipwise.money.interruption import FirstWait, Rates
from chipwise.money.storage import Tiers
from chipwise.money.transfer import Gravity
from chipwise.perf import predict_serving, predict_training
from chipwise.perf.arrays import Array, Coded, column
from chipwise.perf.feeding import tiers
from chipwise.perf.hardware import Hardware
from chipwise.perf.memory_serving import kv_budget_bytes, kv_bytes
from chipwise.perf.memory_training import training_memory
from chipwise.perf.rows import model_key
from chipwise.perf.setup import ServingSetup, TrainingSetup
from chipwise.perf.transformer import Layer, Transformers, layer_of
from chipwise.perf.under_load import highest_rate, percentiles
from chipwise.planner.fleet import Fleet, Shape, fleet_of
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.units import HOUR, MONTH, YEAR

BOOT_S, REPAIR_S, SAVE_BYTES_PER_S = 600.0, 900.0, 2e9
DEVIATIONS = np.array([NormalDist().inv_cdf((place + 0.5) / 4000) for place in range(4000)])
HORIZON_S, MOST_MACHINES, NEARLY = 30 * 86400.0, 64, 0.03
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
MONTH_H = MONTH / HOUR
YEAR_H = YEAR / HOUR
COMMITTED_H = {Purchase.RESERVED_1Y: YEAR_H, Purchase.RESERVED_3Y: 3 * YEAR_H, Purchase.RESERVED_1Y_UPFRONT: YEAR_H}
CHIPS = (
    "H100-SXM",
    "A100-80",
    "A100-40",
    "L4",
    "L40S",
    "A10G",
    "T4",
    "V100-16",
    "H200",
    "B200",
    "TPU v5e",
    "TPU v6e",
    "Trainium1",
    "Trainium2",
    "Inferentia2",
    "MI300X",
    "RTX 4090",
    "Gaudi 2",
)
DENSE = ("llama-3.1-8b", "llama-3.2-1b", "qwen2.5-7b", "gpt2-xl", "gemma-2-9b", "llama-2-13b", "pythia-1.4b", "phi-2")
MODELS = (*DENSE, "mixtral-8x7b", "qwen1.5-moe-a2.7b", "bert-large")
CONTEXT = {  # of those that read less than any of the sequences drawn here
    "gpt2-xl": 1024,
    "pythia-1.4b": 2048,
    "phi-2": 2048,
    "llama-2-13b": 4096,
    "gemma-2-9b": 8192,
    "qwen1.5-moe-a2.7b": 8192,
    "bert-large": 512,
}
PLACES = ("aws:eu-central-1", "gcp:us-central1", "azure:westeurope", "https://example.org/set.tar")


@dataclass(frozen=True)
class Wanted:
    """A workload: `file` as YAML values; the rest of the fields repeat what brute force needs of it."""

    file: Mapping[str, Any]

    @property
    def limits(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.file["limits"]
        return found

    def write(self, path: Path) -> str:
        """As a workload file: JSON is YAML."""
        file: dict[str, Any] = {key: value for key, value in self.file.items() if key not in ("goals", "arrival", "data")}
        if every := file.pop("checkpoint_every_s", None):
            file["checkpoint_every"] = f"{every}s"
        if data := self.file.get("data"):
            file["data"] = {"size": f"{data['size_bytes']:.0f}B", "place": data["place"], "access": "once"}
        if arrival := self.file.get("arrival"):
            file["arrival"] = {"rate": f"{arrival['rate_per_s']} req/s"}
        goals: dict[str, float] = self.file.get("goals", {})
        limits: dict[str, Any] = {}
        if "deadline_s" in goals:
            limits["deadline"] = f"{goals['deadline_s']}s"
        for name in ("ttft", "tpot"):
            if f"{name}_s" in goals:
                limits[name] = {"p95": f"{goals[f'{name}_s'] * 1000:g}ms"}
        path.write_text(json.dumps(file | {"goals": {"objective": "cost"} | limits}))
        return str(path)


@dataclass
class Found:
    """All candidates that keep the goals, with what each costs and how long it takes; and how many there were at all."""

    kept: list[tuple[float, float, tuple[Any, ...], int]] = field(default_factory=list)  # USD, seconds, who, chips
    unsure: list[tuple[float, float, tuple[Any, ...], int]] = field(default_factory=list)  # with less confidence; over it
    considered: int = 0

    def offer(self, usd: float, seconds: float, who: tuple[Any, ...], chips: int, chance: float = 1.0) -> None:
        """`chance`: that the latency goals are kept. Of what is not sure a kept goal's cost counts."""
        sure = chance >= 0.9
        (self.kept if sure else self.unsure).append((usd if sure else usd / max(chance, 1e-6), seconds, who, chips))

    def sensible(self, timed: bool) -> list[tuple[float, tuple[Any, ...]]]:
        """Without what is not sure of the latency goals, without fleets, and without a deadline times, that nobody asked for,
        where something else is left."""
        every = self.kept or self.unsure
        kept = [one for one in every if one[2][3] <= MOST_MACHINES and one[3] <= 8 * MOST_MACHINES] or every
        if not timed:
            fastest = min((one[1] for one in kept), default=0.0)
            kept = [one for one in kept if one[1] <= (HORIZON_S if fastest <= HORIZON_S else 1.5 * fastest)]
        return [(usd, who) for usd, _, who, _ in kept]


def counted(winner: Choice) -> float:
    """USD of a plan as candidates are compared: where it is not as sure as asked, of a kept goal."""
    chance = 1.0 if winner.request_chance is None else winner.request_chance
    return winner.usd if chance >= 0.9 else winner.usd / chance


def most_usd(found: Plan, cheapest: float) -> float:
    """That the winner may cost: nearly as much as the cheapest. A tenth more where the cheapest may well be too few machines
    for its load and the winner is not."""
    winner, tie = found.winner, found.near_tie
    if winner is None or tie is None or counted(tie.choice) > cheapest * (1 + 1e-9):
        return (1 + NEARLY) * cheapest
    surer = (winner.load_chance or 1.0) >= found.confidence > (tie.choice.load_chance or 1.0) + 0.05
    return (1.1 if surer else 1.0) * (1 + NEARLY) * cheapest


class Brute:
    def __init__(self, session: Session) -> None:
        self.session, catalog = session, session.catalog
        self.fleet: Fleet = fleet_of(catalog, session.parts)
        self.wide: Fleet = fleet_of(catalog, session.parts, wide=True)  # with slices and processors, which serve and train not
        self.rates = Rates(catalog.rows("interruptions"), catalog.machines)
        self.gravity = Gravity(catalog.rows("storage"), catalog.regions)
        self.tiers = Tiers(catalog.rows("storage"), tiers())
        self.model = session.known.model
        self._offers = list(catalog.offers)
        self._sellers = {one.name: one for one in providers(catalog.data)}
        self._counted = cache(self._counted_price)
        self._single = {
            (one.provider, one.machine, one.region)
            for one in self._offers
            if one.purchase is Purchase.ON_DEMAND and str(one.verdict) in ("verify", "currency_unknown")
        }
        failing = [row for row in catalog.rows("failures") if not row.planned]
        self._broken = {
            kind: median(row.per_1000_chip_days for row in failing if row.chip.startswith("TPU") == (kind == "tpu"))
            / 1000
            / 86400
            for kind in ("tpu", "gpu")
        }
        self.layer = cache(self._layer)
        self._trained = cache(self._learning)

    def _layer(self, name: str) -> tuple[str, Layer, float]:
        found = self.session.find_model(name, online=False)
        shape: Any = found.shape
        return model_key(found.name), layer_of(shape), float(shape.parameters)

    def _learning(self, name: str, method: str) -> float:
        """Parameters that learn: all, or 16 for every input and output of the matrices of a layer, but for experts."""
        shape: Any = self.session.find_model(name, online=False).shape
        if method == "full":
            return float(shape.parameters)
        stack = getattr(shape, "stack", shape)
        one, mlp = stack.attention, stack.mlp
        query, key = one.heads * one.head_dim, one.kv_heads * one.head_dim
        matrices = [(one.hidden, query), (one.hidden, key), (one.hidden, key), (query, one.hidden)]
        if not getattr(shape, "experts", None):
            matrices += [(mlp.hidden, mlp.width)] * (3 if mlp.gated else 2)
        return 16.0 * float(stack.layers * sum(inputs + outputs for inputs, outputs in matrices))

    def allowed(self, wanted: Wanted, spot_too: bool, fleet: Fleet) -> Iterator[tuple[Offer, Machine, int]]:
        limits, catalog = wanted.limits, self.session.catalog
        chips = {chip.name for text in limits["chips"] for chip in self.session.names.chips(text)}
        usable = []
        for number, offer in enumerate(self._offers):
            at = catalog.machine_index[offer.provider, offer.machine]
            machine, shape = catalog.machines[at], int(fleet.shape_of[at])
            if shape < 0 or offer.verdict in NEVER_WIN or machine.retired or machine.chip not in chips:
                continue
            if offer.provider not in limits.get("clouds", [offer.provider]):
                continue
            if offer.purchase is Purchase.SPOT and not spot_too:
                continue
            if offer.purchase in COMMITTED_H and wanted.limits.get("commit") != "any":
                continue
            usable.append((number, offer, machine, shape))
        lasting = frozenset(offer.provider for _, offer, _, _ in usable if self._lasts(offer))
        for number, offer, machine, shape in usable:
            if self._takes_part(offer, wanted, lasting):
                yield replace(offer, usd_per_hour=self._counted(number)), machine, shape

    def _takes_part(self, offer: Offer, wanted: Wanted, lasting: frozenset[str]) -> bool:
        """What lasts; all of a market that is asked for; of clouds that are named those of whom nothing lasts."""
        if self._lasts(offer) or wanted.limits.get("market") == "any":
            return True
        return offer.provider in wanted.limits.get("clouds", ()) and offer.provider not in lasting

    def _lasts(self, offer: Offer) -> bool:
        seller = self._sellers[offer.provider]
        days = (self.session.today - date.fromisoformat(offer.as_of)).days
        limit = 180 if offer.purchase is Purchase.SPOT or not seller.observed else 10**6
        return seller.durable and days <= limit

    def _counted_price(self, at: int) -> float:
        """USD an hour: the middle of the zones; of a doubtful price the median of its peers, if that is higher."""
        offer = self._offers[at]
        own = self._middle(offer)
        if str(offer.verdict) not in ("verify", "currency_unknown", "stale", "floor", "outlier") and not self._beside(offer):
            return own
        sound = [
            one
            for one in self._offers
            if one.purchase is offer.purchase and str(one.verdict) in ("", "no_saving") and not self._beside(one)
        ]
        machine = self._machine(offer)
        same = [self._middle(one) for one in sound if (one.provider, one.machine) == (offer.provider, offer.machine)]
        kind = (machine.chip, machine.chips)
        alike = [self._middle(one) for one in sound if (self._machine(one).chip, self._machine(one).chips) == kind]
        if len(same) >= 3 or (len(alike) < 3 and same):
            return max(own, median(same))
        return max(own, median(alike) if len(alike) >= 3 else self._usual_spot(offer))

    def _beside(self, offer: Offer) -> bool:
        """A spot price far below its machine's others, of a list that is the only source of the price on demand."""
        if offer.purchase is not Purchase.SPOT or (offer.provider, offer.machine, offer.region) not in self._single:
            return False
        own = (offer.provider, offer.machine)
        peers = [
            self._middle(one) for one in self._offers if one.purchase is Purchase.SPOT and (one.provider, one.machine) == own
        ]
        return len(peers) > 3 and self._middle(offer) < 0.6 * median(peers)

    def _usual_spot(self, offer: Offer) -> float:
        """Of spot: what the provider usually takes of the price on demand."""
        listed = {
            (one.provider, one.machine, one.region): one.usd_per_hour
            for one in self._offers
            if one.purchase is Purchase.ON_DEMAND
        }
        shares = [
            self._middle(one) / listed[one.provider, one.machine, one.region]
            for one in self._offers
            if one.purchase is Purchase.SPOT
            and one.provider == offer.provider
            and str(one.verdict) in ("", "no_saving")
            and (one.provider, one.machine, one.region) in listed
            and self._machine(one).chip is not None
        ]
        there = listed.get((offer.provider, offer.machine, offer.region), 0.0)
        return median(shares) * there if offer.purchase is Purchase.SPOT and shares else 0.0

    def _middle(self, offer: Offer) -> float:
        return (offer.usd_per_hour + max(offer.usd_per_hour_max or offer.usd_per_hour, offer.usd_per_hour)) / 2

    def _machine(self, offer: Offer) -> Machine:
        catalog = self.session.catalog
        return catalog.machines[catalog.machine_index[offer.provider, offer.machine]]

    def _joined(self, machine: Machine, count: int) -> bool:
        """Whether so many can work on one job: by a network of 10 Gbit/s or one that has a name, a pod or a rack."""
        part, network = self.session.parts[machine.chip or ""], machine.fabric_bytes_per_s or machine.network_bytes_per_s
        if count == 1 or part.kind == "tpu":
            return True
        if machine.fabric == "no":
            return False
        if network is not None or machine.fabric is not None:
            return network is None or network >= 1.25e9
        rack = part.domain if part.kind == "gpu" and part.domain > 8 else 0
        return (machine.chips or 1) > 1 and count * (machine.chips or 1) <= rack

    # -- training

    def training(self, wanted: Wanted) -> Found:
        found = Found()
        spot_too = wanted.limits.get("interruptible") is not False
        times: dict[tuple[int, int], tuple[float, float, int]] = {}
        for offer, machine, shape in self.allowed(wanted, spot_too, self.fleet):
            for count in COUNTS:
                chips = count * self.fleet.shapes[shape].chips
                if chips > min(wanted.limits["chip_count"]["max"], 4096) or not self._joined(machine, count):
                    continue
                if (shape, count) not in times:
                    times[shape, count] = self._fastest(wanted, self.fleet.shapes[shape], count)
                seconds, high, splits = times[shape, count]
                found.considered += splits
                if seconds < float("inf"):
                    usd, took, in_time = self._job_cost(wanted, offer, machine, count, seconds, high, alone=False)
                    if in_time:
                        who = (offer.provider, offer.machine, offer.region, count, str(offer.purchase))
                        found.offer(usd, took, who, chips)
        return found

    def _fastest(self, wanted: Wanted, shape: Shape, count: int) -> tuple[float, float, int]:
        """(seconds of the split that is taken, over which one time in ten it takes this much longer, number of splits): of
        those within 2% of the fastest the one with the least pipeline, then tensor, context and expert parallelism."""
        file, part = wanted.file, self.fleet.parts[shape.part]
        name, layer, _ = self.layer(file["model"])
        precision = file["precision"]
        if part.name.startswith(("Inferentia", "Cloud-AI")) or (precision != "fp32" and not part.has(precision)):
            return float("inf"), 1.0, 0
        if file.get("method") == "qlora" and part.kind != "gpu":
            return float("inf"), 1.0, 0
        seq, batch = file["sequence_length"], max(round(file["batch_tokens"] / file["sequence_length"]), 1)
        rows = list(_splits(layer, shape.chips * count, shape.chips, part.kind != "tpu", seq, batch))
        if part.kind == "neuron":  # its software shards the optimiser's state alone and keeps no scores
            rows = [row for row in rows if row[5] < 3 and row[6] > 0]
        if not rows:
            return float("inf"), 1.0, 0
        tp, pp, cp, ep, dp, shard, recompute, micro = np.array(rows, dtype=np.float64).T
        megatron = (tp * pp * ep > 1) | ((shard == 1) & (file.get("method", "full") == "full"))
        setup = TrainingSetup.of(
            seq=float(seq),
            global_batch=float(batch),
            method=file.get("method", "full"),
            rank=16.0,
            precision=precision,
            optimizer=file["optimizer"],
            states=["master" if one else "autocast" for one in megatron],
            sequence_parallel=(tp > 1).astype(float),
            tp=tp,
            pp=pp,
            cp=cp,
            ep=ep,
            dp=dp,
            shard=shard,
            recompute=recompute,
            micro_batch=micro,
        )
        many = Transformers.of([layer])
        hardware = Hardware.of(Coded.of(shape.part), self.fleet.parts.by_name, column(float(shape.chips)), column(shape.fabric))
        step = predict_training.predict(predict_training.Training(many, Coded.of(name), hardware, setup), self.model).step
        needed = training_memory(many, setup).total
        fits = needed < 0  # what fills a chip counts only where nothing else fits, what our program cannot run in the end
        runnable = (tp * pp * cp * ep == 1) & ((shard < 2) | (_read_whole(file, layer) < 0.85 * shape.memory_bytes))
        runnable |= file["kind"] != "finetune" or part.kind != "gpu"
        for rows_of, share in product((runnable, True), (0.95, 1.0)):
            fits = fits if fits.any() else rows_of & (needed <= share * shape.memory_bytes)
        columns = zip(pp, tp, cp, ep, step.value, step.high, fits, strict=True)
        steps = [(cut, float(one), float(high)) for *cut, one, high, fine in columns if fine]
        fastest = min((one for _, one, _ in steps), default=inf)
        _, best, high = min((one for one in steps if one[1] <= 1.02 * fastest), default=([], inf, inf))
        return best * file["tokens"] / (batch * seq), high / best, len(rows)

    def _job_cost(
        self, wanted: Wanted, offer: Offer, machine: Machine, count: int, seconds: float, high: float, alone: bool
    ) -> tuple[float, float, bool]:
        """(USD, seconds from asking for machines to the end, whether nine runs in ten keep the deadline) of a job that works
        for `seconds`, one time in ten for `high` times as long; `alone`: each machine by itself."""
        file = wanted.file
        trained = self._trained(file["model"], file.get("method", "full"))
        boot_s = 0.0 if file["kind"] == "serve" else BOOT_S  # a service has started before the month
        is_spot = offer.purchase is Purchase.SPOT
        rate, wait, first = 0.0, REPAIR_S, FirstWait(0.0, 0.0)
        if file["kind"] != "serve":
            shape = self.wide.shapes[self.wide.shape_of[self.session.catalog.machine_index[offer.provider, offer.machine]]]
            rate = shape.chips * self._broken["tpu" if self.wide.parts[shape.part].kind == "tpu" else "gpu"]
        if is_spot:
            if file["kind"] != "serve":
                first = self.rates.first_wait(offer.provider, offer.region, machine.chip, machine.chips)
                if count > 1 and not alone:
                    first = _wait_for_all(first, count ** _independence(machine.chips or 1))
            taken = self.rates.of(offer.provider, offer.region, offer.machine, machine.chip, machine.chips).per_hour / 3600
            wait = (self.rates.wait_hours(offer.provider, offer.region, machine.chip) or 0.0) * 3600
            rate += taken
            if count > 1 and not alone:  # others can be lost before it is back
                counted = count ** _independence(machine.chips or 1)
                wait = ((1 + taken * wait) ** counted - 1) / (counted * taken)
        saves = file["kind"] in ("train", "finetune")
        kept_bytes = {"adamw": 8.0, "adamw-8bit": 2.0, "sgd": 4.0}[file["optimizer"]] if saves else 0.0
        save = max(trained * (6.0 + kept_bytes) / (SAVE_BYTES_PER_S * count), 1.0) if saves else 1.0
        groups = (count ** (_independence(machine.chips or 1) if is_spot else 1.0)) if alone else None
        run = _interrupted(seconds, rate, count, save, wait, file.get("checkpoint_every_s"), groups)
        expected, paid = run.mean + boot_s, run.mean + boot_s - (run.waited if is_spot else 0.0)
        moving = 0.0
        committed = COMMITTED_H.get(offer.purchase, 0.0)
        if file["kind"] == "serve":  # of a month, a month
            committed = min(committed, MONTH_H)
        hours = (
            ceil((seconds + boot_s) / 3600 / committed - 1e-9) * committed if committed else max(paid, seconds + boot_s) / 3600
        )
        usd = hours * count * offer.usd_per_hour
        data = file.get("data")
        if data:
            results = 2.0 * trained if saves else 4.0 * file["items"] * file["output_tokens"]["mean"]
            moves = (
                self.gravity.bring(data["place"], offer.provider, offer.region, data["size_bytes"]),
                self.gravity.send(data["place"], offer.provider, offer.region, results),
            )
            usd += sum(moved.usd for moved in moves)
            moving = sum(moved.hours for moved in moves) * 3600
            expected += moving
            passes = 1.0
            needed = data["size_bytes"] * passes / max(expected, 1.0)
            usd += self.tiers.choose(
                offer.provider,
                offer.region,
                data["size_bytes"],
                needed,
                count,
                expected / 3600,
                machine.disk_bytes,
                machine.memory_bytes,
                passes,
                None,
                in_place=all(moved.kind == "in place" for moved in moves),
            ).usd
        expected += first.mean * 3600
        deadline = file.get("goals", {}).get("deadline_s", inf)
        in_time = expected <= deadline
        if in_time and deadline < inf:
            in_time = _late(deadline - boot_s - moving, run, exp(-rate * (groups or count) * run.needed), high, first) <= 0.1
        return usd, expected, in_time

    # -- serving and offline generation

    def generation(self, wanted: Wanted) -> Found:
        file, found = wanted.file, Found()
        online = file["kind"] == "serve"
        spot_too = wanted.limits.get("interruptible", not online)
        most = wanted.limits["chip_count"]["max"]
        rows: list[tuple[int, str, int, int]] = []
        offers = list(self.allowed(wanted, spot_too, self.wide))
        _, layer, _ = self.layer(file["model"])
        for shape in sorted({shape for _, _, shape in offers}):
            chips, part = self.wide.shapes[shape].chips, self.wide.part(shape)
            for precision in wanted.limits["precision"]:
                if chips <= most and (precision in ("int8", "int4", "fp32") or part.has(precision)):
                    rows += [(shape, precision, tp, pp) for tp, pp in self._ways(layer, shape) if tp * pp <= most]
        rates = self._rates(wanted, rows) if rows else {}
        for offer, machine, shape in offers:
            chips = self.wide.shapes[shape].chips
            for precision, (tp, pp) in product(wanted.limits["precision"], self._ways(layer, shape)):
                if (shape, precision, tp, pp) not in rates:
                    continue
                across = -(-tp * pp // chips)
                if not self._joined(machine, across):
                    continue
                rate, spread, chance = rates[shape, precision, tp, pp]
                for count in range(1, most // chips + 1) if online else COUNTS:
                    if count * chips > most:
                        break
                    found.considered += 1
                    replicas = count // across if across > 1 else count * (chips // (tp * pp))
                    if count % across or rate <= 0 or not replicas:
                        continue
                    who = (offer.provider, offer.machine, offer.region, count, str(offer.purchase))
                    if not online:
                        seconds = file["items"] / (rate * replicas)
                        usd, took, in_time = self._job_cost(wanted, offer, machine, count, seconds, spread, across == 1)
                        if in_time:
                            found.offer(usd, took, who, count * chips)
                    elif replicas >= file["replicas"]["min"] and replicas * rate >= 1.25 * file["arrival"]["rate_per_s"] * (
                        1 - 1e-9
                    ):
                        usd, took, _ = self._job_cost(wanted, offer, machine, count, MONTH_H * HOUR, 1.0, across == 1)
                        found.offer(usd, 0.0, who, count * chips, chance)
        return found

    def _ways(self, layer: Layer, shape: int) -> tuple[tuple[int, int], ...]:
        """Slices of a chip hold one replica each."""
        one = self.wide.shapes[shape]
        return ((1, 1),) if one.base_chip else _serving_splits(layer, one.chips)

    def _rates(
        self, wanted: Wanted, rows: list[tuple[int, str, int, int]]
    ) -> dict[tuple[int, str, int, int], tuple[float, float, float]]:
        """Requests per second of one replica within the goals, row by row, by what factor they may be fewer, and how likely a
        request alone keeps the goals."""
        file = wanted.file
        name, layer, _ = self.layer(file["model"])
        shapes = [self.wide.shapes[row[0]] for row in rows]
        hardware = Hardware.of(
            Coded.of([one.part for one in shapes]),
            self.wide.parts.by_name,
            np.array([float(one.chips) for one in shapes]),
            np.array([one.fabric for one in shapes]),
        )
        setup = ServingSetup.of(
            batch=1.0,
            input_len=float(file["input_tokens"]["mean"]),
            output_len=float(file["output_tokens"]["mean"]),
            prefix_len=0.0,
            tp=np.array([float(row[2]) for row in rows]),
            pp=np.array([float(row[3]) for row in rows]),
            precision_weights=[row[1] for row in rows],
            precision_kv="bf16",
            engine=predict_serving.usual_engines(hardware),
        )
        ask = predict_serving.Generation(
            Transformers.of([layer]), Coded.of(name), hardware, setup, Coded.of("full"), column(0.0), column(1.0)
        )
        memory: Array = np.array([one.memory_bytes for one in shapes])
        fits = kv_bytes(ask.model, setup) <= kv_budget_bytes(ask.model, setup, memory)
        estimate = predict_serving.predict(ask, self.model, ("requests_per_s",))["requests_per_s"]
        full = estimate.value
        rate, spread, chance = full, estimate.high / estimate.value, np.ones(len(rows))
        if file["kind"] == "serve":
            goals = {("ttft", 0.95): file["goals"]["ttft_s"], ("tpot", 0.95): file["goals"]["tpot_s"]}
            rate = np.minimum(highest_rate(ask, self.model, goals), 0.8 * full)
            lone = replace(ask, scenario=Coded.of("closed"))
            alone = predict_serving.predict(lone, self.model, ("ttft_ms", "tpot_ms"))
            prompt = predict_serving.predict(replace(ask, scenario=Coded.of("prefill")), self.model, ("ttft_ms",))["ttft_ms"]
            seconds = percentiles(lone, self.model, alone, (0.95,))
            slowest = {"ttft": prompt.high / prompt.value, "tpot": alone["tpot_ms"].high / alone["tpot_ms"].value}
            for (metric, share), limit in goals.items():
                far = np.log(limit / seconds[metric][share]) / np.log(np.maximum(slowest[metric], 1 + 1e-9))
                chance = np.minimum(chance, [NormalDist().cdf(NormalDist().inv_cdf(0.9) * float(one)) for one in far])
        columns = zip(rows, rate, np.broadcast_to(spread, rate.shape), fits, chance, strict=True)
        return {row: (float(one) if fine else 0.0, float(wide), float(sure)) for row, one, wide, fine, sure in columns}


class Run(NamedTuple):
    """Seconds."""

    mean: float
    spread: float
    needed: float  # without a loss
    waited: float  # for machines, after losses


@cache
def _interrupted(
    seconds: float, rate: float, count: int, save: float, wait: float, every: float | None, groups: float | None
) -> Run:
    """`groups`: as so many machines that are lost independently those count that work apart; None: they work together."""
    run = spot.run(seconds, rate, count, save, BOOT_S + save, every, wait_s=wait, together=groups is None)
    spread = float(run.spread_s) * sqrt(count / (count if groups is None else groups))
    return Run(float(run.expected_s), spread, float(run.needed_s), float(run.waiting_s))


def _late(limit: float, run: Run, spared: float, high: float, first: FirstWait) -> float:
    """The probability of ending later, by many values of the speed: runs without a loss, and those with one, whose mean and
    spread follow from those of all; a machine is there at first, or comes after an exponential time."""
    speed, late = log(max(high, 1.0)) / NormalDist().inv_cdf(0.9), 0.0
    parts = [(spared, run.needed, speed)]
    if spared < 1 - 1e-9:
        mean = (run.mean - spared * run.needed) / (1 - spared)
        square = (run.spread**2 + run.mean**2 - spared * run.needed**2) / (1 - spared)
        varied = log(max(square / mean**2, 1.0))
        parts.append((1 - spared, mean / exp(varied / 2), sqrt(varied + speed**2)))
    for share, middle, width in parts:
        left = limit - middle * np.exp(width * DEVIATIONS)
        waiting = first.absent * np.exp(-np.maximum(left, 0.0) / max(first.hours * 3600, 1e-9))
        late += share * float(np.mean(np.where(left < 0, 1.0, waiting)))
    return late


def _independence(chips: float) -> float:
    """Of machines of one chip and of eight, by what four or sixteen of them were seen to do together; see `money.gathering`."""
    return 0.03002049 + (0.88380953 - 0.03002049) * min(log(chips) / log(8), 1.0)


@cache
def _wait_for_all(one: FirstWait, number: float) -> FirstWait:
    """Until the last of so many comes: the mean by the area under the probability of still waiting."""
    hours = np.linspace(0.0, 60.0, 200_001) * one.hours
    waiting = 1 - (1 - one.absent * np.exp(-hours / max(one.hours, 1e-9))) ** number
    absent = 1 - (1 - one.absent) ** number
    return FirstWait(absent, float(np.trapezoid(waiting, hours)) / max(absent, 1e-12))


def _read_whole(file: Mapping[str, Any], layer: Layer) -> float:
    """Bytes that each GPU reads before ranks divide them: all weights of four bits."""
    return 0.29 * 2 * layer.parameters if file.get("method") == "qlora" else 0.0


def _splits(layer: Layer, chips: int, node: int, piped: bool, seq: int, batch: int) -> Iterator[tuple[int, ...]]:
    for tp in (1, 2, 4, 8):
        for pp in (1, 2, 4, 8, 16):
            for cp in (1, 2, 4, 8):
                if tp > node or layer.heads % tp or layer.hidden % tp or pp > layer.layers or (pp > 1 and not piped):
                    continue
                if (cp > 1 and seq < 32768) or chips % (tp * pp * cp):
                    continue
                dp = chips // (tp * pp * cp)
                for ep, shard, recompute, micro in product(
                    (1, 2, 4, 8, 16, 32, 64), (0, 1, 3), (0, 1, 2), (1, 2, 4, 8, 16, 32, 64)
                ):
                    if ep > 1 and (not layer.experts or layer.experts % ep or (tp * cp * dp) % ep):
                        continue
                    if (shard == 0) != (dp * cp == 1) or (shard == 3 and pp > 1) or micro * dp > batch:
                        continue
                    yield tp, pp, cp, ep, dp, shard, recompute, micro


@cache
def _serving_splits(layer: Layer, chips: int) -> tuple[tuple[int, int], ...]:
    found = []
    widest = max(tp for tp in (1, 2, 4, 8) if tp <= chips and layer.heads % tp == 0 and layer.hidden % tp == 0)
    for tp, pp in product((1, 2, 4, 8), (1, 2, 4)):
        if tp > chips or layer.heads % tp or layer.hidden % tp or pp > layer.layers:
            continue
        if tp * pp <= chips or (tp == widest == chips >= 4):
            found.append((tp, pp))
    return tuple(found)


# -- random workloads


def _log(random: Random, low: float, high: float) -> float:
    return float(f"{low * (high / low) ** random.random():.3g}")


def random_training(random: Random) -> Wanted:
    model = random.choice(MODELS)
    seq = random.choice((512,) if model == "bert-large" else (512, 1024, 2048, 4096, 8192, 32768))
    seq = min(seq, CONTEXT.get(model, seq))
    file: dict[str, Any] = {
        "kind": "train",
        "name": "random",
        "model": model,
        "tokens": _log(random, 1e8, 1e11),
        "sequence_length": seq,
        "batch_tokens": seq * random.choice((8, 32, 60, 128, 512, 1000)),
        "precision": random.choice(("bf16", "bf16", "fp8")),
        "optimizer": random.choice(("adamw", "adamw-8bit", "sgd")),
        "limits": _limits(random, random.choice((4, 8, 16, 48))),
    }
    if random.random() < 0.3:
        file |= {"kind": "finetune", "method": random.choice(("lora", "qlora", "full"))}
    if random.random() < 0.4:
        file["checkpoint_every_s"] = random.choice((600, 1800, 7200))
    return _with_data(random, file)


def random_generation(random: Random, online: bool) -> Wanted:
    file: dict[str, Any] = {
        "kind": "serve" if online else "batch",
        "name": "random",
        "model": random.choice((*DENSE, "mixtral-8x7b")),
        "input_tokens": {"mean": random.choice((100, 500, 1500))},
        "output_tokens": {"mean": random.choice((20, 150, 400))},
        "limits": _limits(random, random.choice((8, 16, 64)))
        | {"precision": random.choice((["bf16"], ["bf16", "fp8"], ["bf16", "int8"]))},
    }
    if file["model"] == "gpt2-xl":
        file["input_tokens"] = {"mean": min(file["input_tokens"]["mean"], 600)}
    if online:
        file["arrival"] = {"rate_per_s": _log(random, 0.1, 60)}
        file["goals"] = {"ttft_s": random.choice((0.3, 1.0, 3.0)), "tpot_s": random.choice((0.02, 0.04, 0.1))}
        file["replicas"] = {"min": random.choice((1, 1, 2, 3))}
        return Wanted(file)
    file["items"] = _log(random, 1e4, 1e8)
    return _with_data(random, file)


def _limits(random: Random, most: int) -> dict[str, Any]:
    found: dict[str, Any] = {"chips": random.sample(CHIPS, 3), "chip_count": {"max": most}}
    if random.random() < 0.5:
        found["clouds"] = random.sample(("aws", "gcp", "azure", "lambda", "vast", "runpod", "oci"), 4)
    if random.random() < 0.3:
        found["market"] = "any"
    if random.random() < 0.3:
        found["commit"] = "any"
    if random.random() < 0.6:
        found["interruptible"] = random.random() < 0.7
    return found


def _with_data(random: Random, file: dict[str, Any]) -> Wanted:
    if random.random() < 0.4:
        file["data"] = {"size_bytes": _log(random, 1e9, 1e13), "place": random.choice(PLACES)}
    if random.random() < 0.4:
        file.setdefault("goals", {})["deadline_s"] = random.choice((86400, 10 * 86400, 60 * 86400))
    return Wanted(file)
