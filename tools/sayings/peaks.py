"""Claims about what limits a chip: the share of its peak that work reaches, and bandwidth in token generation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import yaml

from chipwise.perf.family_training import ARITHMETIC
from chipwise.perf.operators import COMPUTE_EFFICIENCY, MEMORY_EFFICIENCY
from chipwise.planner.tails import BOOT_S
from chipwise.predictor import transformer as estimating
from sayings.bench import ROOT, Asked, Bench
from sayings.judging import Outcome, Table
from sayings.measured import Reached, chip_pairs, reached

Claim = Mapping[str, Any]
CENTRE = ("gpu", "tpu", "neuron", "gaudi")
CONTEXT = 1000.0
BATCHES = (1.0, 16.0, 64.0, 256.0)
CONSUMER = re.compile(r"(RTX|GTX)-?\d{4}|RTX-(20|30|40|50)\d\d|TITAN", re.IGNORECASE)
DECODING = 16.0  # sequences together, where a file of requests does not say


def workload_files() -> list[Path]:
    """Examples and cases: the page says how many they were, so that a test sees when there are more."""
    return sorted([*ROOT.glob("examples/*/workload.yaml"), *ROOT.glob("tests/cases/*.yaml")])


def share_of_peak(bench: Bench, claim: Claim) -> Outcome:
    measured = list(reached(bench.session.parts))
    predicted = [one for path in workload_files() for one in _predicted(bench, path)]
    every = [*measured, *predicted]
    rows = []
    for name, some in (("measured", measured), ("predicted", predicted)):
        rows += [
            (name, kind, *_counted([one.share for one in some if one.kind == kind]))
            for kind in dict.fromkeys(one.kind for one in some)
        ]
    rows.append(("all", "", *_counted([one.share for one in every])))
    kinds = {kind: median(one.share for one in every if one.kind == kind) for kind in {one.kind for one in every}}
    verdict = _verdict([one.share for one in every], list(kinds.values()))
    ends = [
        _verdict(
            [one.share * getattr(one, end) for one in every],
            [median(one.share * getattr(one, end) for one in every if one.kind == kind) for kind in kinds],
        )
        for end in ("low", "high")
    ]
    hangs = [f"predictions at the low ends of their bands: {ends[0]}; at the high ends: {ends[1]}."]
    for told, some in (("measurements alone", measured), ("predictions alone", predicted)):
        own = [median(one.share for one in some if one.kind == kind) for kind in {one.kind for one in some}]
        hangs.append(f"{told}: {_verdict([one.share for one in some], own)}.")
    hangs.append(
        "dense peaks: with the sparse ones of data sheets every share on recent NVIDIA and AMD chips is half as large."
    )
    turned = len({verdict, *ends, *(one.split(": ")[1].rstrip(".") for one in hangs[1:3])}) > 1
    titles = ("from", "kind", "rows", "below 10%", "10 to 30%", "above 30%", "median")
    return Outcome(
        (Table(titles, tuple(rows)),),
        verdict,
        "depends" if turned else verdict,
        f"{verdict} over all rows"
        + (", and it turns over with the bands or with where the numbers come from" if turned else ""),
        tuple(hangs),
        "packaged measurements of transformers with a known chip; predictions for each of "
        f"{len(workload_files())} files on each data-centre chip it fits",
        (
            "requests under load are a kind of their own, serving: prefill and decode together",
            f"prefill of one prompt and decode of {DECODING:g} sequences stand for files of requests",
            "measurements of latency under load are left out: they state no rate",
        ),
    )


def _verdict(shares: list[float], medians: list[float]) -> str:
    inside = sum(0.10 <= one <= 0.30 for one in shares) / max(len(shares), 1)
    if inside >= 0.60 and all(0.10 <= one <= 0.30 for one in medians):
        return "true"
    if inside < 0.25:
        return "false"
    return "partly" if 0.10 <= median(shares) <= 0.30 else "depends"


def _counted(shares: list[float]) -> tuple[str, ...]:
    count = len(shares)
    parts = (sum(one < 0.10 for one in shares), sum(0.10 <= one <= 0.30 for one in shares), sum(one > 0.30 for one in shares))
    return (str(count), *(f"{one / count:.0%}" for one in parts), f"{median(shares):.1%}")


def _predicted(bench: Bench, path: Path) -> list[Reached]:
    work = yaml.safe_load(path.read_text(encoding="utf-8"))
    kind = work.get("kind")
    if kind in ("train", "finetune", "hpc"):
        return _jobs(bench, str(path.relative_to(ROOT)), work, kind)
    model = work.get("model")
    if kind in ("serve", "batch") and isinstance(model, str) and work.get("output_tokens"):
        return _generated(bench, work, kind)
    return []


def _jobs(bench: Bench, path: str, work: Mapping[str, Any], kind: str) -> list[Reached]:
    """Of every chip the smallest way that fits: one number of machines, its best split."""
    asked = bench.ask(path)
    if isinstance(asked, str) or (kind != "hpc" and asked.plan.rows is not None and "samples" in _unit(asked)):
        return []
    rows = asked.rows
    total = _flop(bench, asked, work, kind)
    found = {}
    if total is None:
        return []
    for at in rows.ranked[np.argsort(rows.priced.machines[rows.ranked], kind="stable")].tolist():
        shape = rows.fleet.shapes[rows.fleet.shape_of[rows.priced.machine[at]]]
        part = rows.fleet.parts[shape.part]
        if shape.part in found or part.kind not in CENTRE or shape.share < 1 or CONSUMER.match(shape.part):
            continue
        choice = rows.choice(at)
        if choice.purchase == "spot":
            continue
        name = ARITHMETIC.get(choice.precision, choice.precision)
        peak = part.rate(name) if part.has(name) or name.startswith("fp64") or name == "fp32" else None
        if not peak:
            continue
        seconds = float(rows.priced.seconds[at]) - BOOT_S
        found[shape.part] = Reached(
            "HPC" if kind == "hpc" else "training",
            shape.part,
            total / (seconds * choice.chips * choice.machines * peak),
            choice.seconds / choice.high_s,
            choice.seconds / choice.low_s,
        )
    return list(found.values())


def _unit(asked: Asked) -> str:
    return asked.plan.choices[0].unit if asked.plan.choices else ""


def _flop(bench: Bench, asked: Asked, work: Mapping[str, Any], kind: str) -> float | None:
    if kind == "hpc":
        from chipwise.units import parse_flop

        steps = work.get("steps", 1)
        many = float(str(steps).lower().replace("k", "e3").replace("m", "e6"))
        return parse_flop(work["flop_per_step"]) * many * float(work.get("runs", 1)) if "flop_per_step" in work else None
    seq = float(work.get("sequence_length") or 2048)
    frozen = work.get("method", "full") != "full"
    found = estimating.train(
        bench.session.known,
        str(work["model"]),
        on="h100",
        chips=1.0,
        seq=seq,
        fit=False,
        **({"method": work["method"]} if frozen else {}),
    )
    per_token = float(found.estimate.mfu[0]) * found.part.rate("bf16") / float(found.estimate.tokens_per_s[0])
    return per_token * asked.rows.units * 1e6


def _generated(bench: Bench, work: Mapping[str, Any], kind: str) -> list[Reached]:
    length, out = (
        float(one["mean"] if isinstance(one, Mapping) else one) for one in (work["input_tokens"], work["output_tokens"])
    )
    rented = {one.chip for one in bench.session.catalog.machines if one.chip and not CONSUMER.match(one.chip)}
    parts = [one for name in sorted(rented) if (one := bench.session.parts.find(name)) is not None]
    parts = [one for one in parts if one.kind in CENTRE and not one.unstated and one.has("bf16")]
    found = []
    names = [one.name for one in parts]
    peaks = np.array([one.rate("bf16") for one in parts])
    room = np.array([one.memory_bytes for one in parts])
    for name, metric in (("prefill", "ttft_ms"), ("decode", "tpot_ms"), ("full", "requests_per_s")):
        asked = estimating.serve(
            bench.session.known,
            str(work["model"]),
            on=names,
            tp=1.0,
            input_len=length,
            output_len=out,
            scenario=name,
            batch=1.0 if name == "prefill" else DECODING,
            precision_weights="bf16",
            fit=False,
            metrics=(metric,),
        )
        fits = np.broadcast_to(asked.memory.total, peaks.shape) <= room
        model = asked.ask.model
        weights = float((model.layers * (model.attention_weights + model.mlp_weights) + model.head)[0])
        value = np.broadcast_to(asked.metrics[metric].value, peaks.shape)
        tokens = {"prefill": length / (value / 1e3), "decode": DECODING / (value / 1e3), "full": value * (length + out)}[name]
        label = ("serving" if kind == "serve" else "batch") if name == "full" else name
        shares = tokens * 2 * weights / peaks
        answer = asked.metrics[metric]
        slow, fast = (np.broadcast_to(one / answer.value, peaks.shape) for one in (answer.low, answer.high))
        if name != "full":  # times: the longer, the smaller the share
            slow, fast = 1 / fast, 1 / slow
        rows = zip(names, shares, slow, fast, fits, strict=True)
        found += [Reached(label, chip, float(share), float(a), float(b)) for chip, share, a, b, fine in rows if fine]
    return found


def decode(bench: Bench, claim: Claim) -> Outcome:
    chips = list(dict.fromkeys(one for pair in claim["compare"] for one in pair))
    rows, verdict = _limits(bench, chips, CONTEXT)
    _, longer = _limits(bench, chips, 4 * CONTEXT)
    pairs = []
    for one, two in claim["compare"]:
        parts = bench.session.parts[one], bench.session.parts[two]
        seen = [ratio for task in ("decode", "llm") for ratio in chip_pairs(one, two, task=task)]
        told = f"{median(seen):.2f} ({len(seen)} pairs)" if seen else "no pair"
        pairs.append(
            (
                f"{one} / {two}",
                f"{parts[0].bandwidth / parts[1].bandwidth:.2f}",
                f"{parts[0].rate('bf16') / parts[1].rate('bf16'):.2f}",
                told,
            )
        )
    titles = ("model", "chips", *(f"memory at batch {one:g}" for one in BATCHES), "arithmetic overtakes at batch")
    why = "memory (weights and cache) against arithmetic, links and the engine's own work, term by term"
    return Outcome(
        (Table(titles, tuple(rows)), Table(("pair", "bandwidth", "bf16 peak", "measured output tokens/s"), tuple(pairs))),
        verdict,
        verdict if longer == verdict else "depends",
        why,
        (f"a context of {4 * CONTEXT:g} tokens: {longer}.",),
        "terms of the predicted decode step, bf16; packaged measurements for the pairs",
        (
            (
                "the 8B model on one chip stands for chat-8b-low and chat-8b-busy, the 70B model on eight for chat-70b; "
                "whether that many sequences fit is not asked"
            ),
            "bands are left out: the shares are of one estimate",
        ),
    )


def _limits(bench: Bench, chips: Sequence[str], context: float) -> tuple[list[tuple[str, ...]], str]:
    """Rows of the table, and the verdict by the claim's rule."""
    rows, largest = [], []
    sizes = np.array(BATCHES)
    for name, ways in (("llama-3.1-8b", 1.0), ("llama-3.1-70b", 8.0)):
        for chip in chips:
            asked = estimating.serve(
                bench.session.known,
                name,
                on=chip,
                tp=ways,
                input_len=context,
                output_len=2.0,
                scenario="decode",
                batch=list(BATCHES),
                metrics=("tpot_ms",),
                precision_weights="bf16",
                fit=False,
            )
            terms = asked.metrics["tpot_ms"].terms
            model, part = asked.ask.model, asked.part
            weights = float((model.layers * (model.attention_weights + model.mlp_weights) + model.head)[0]) / ways
            each = 2 * weights / (part.rate("bf16") * COMPUTE_EFFICIENCY)  # seconds of arithmetic for one sequence
            read = 2 * weights / (part.bandwidth * MEMORY_EFFICIENCY)
            bound = read >= each * sizes  # else the products are limited by arithmetic
            memory = terms["cache"] + np.where(bound, terms["weights"], 0.0)
            others = (
                np.where(bound, 0.0, terms["weights"]),
                terms["communication"] + np.zeros(len(sizes)),
                terms["launches"] + terms["engine"] + terms["sequences"],
            )
            largest.append(memory >= np.maximum.reduce(others))
            whole = sum(terms.values(), np.zeros(len(sizes)))
            cached = float(terms["cache"][-1]) / BATCHES[-1]
            even = f"{read / (each - cached):,.0f}" if each > cached else "never: the cache grows faster"
            rows.append((name, f"{ways:g} x {chip}", *(f"{a / b:.0%}" for a, b in zip(memory, whole, strict=True)), even))
    if all(one.all() for one in largest):
        return rows, "true"
    if not any(one[1] for one in largest):
        return rows, "false"
    return rows, "partly" if all(one[:2].all() for one in largest) else "depends"
