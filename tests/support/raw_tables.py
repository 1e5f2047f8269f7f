"""The packaged tables as they lie on disk, read with nothing but `csv`: what costs and emissions are worked out from a second
time. The rules are those of the docs, written down again in a few lines each; nothing of the product is used."""

from __future__ import annotations

import csv
from functools import cache
from math import exp, log
from pathlib import Path
from statistics import fmean, median

DATA = Path(__file__).resolve().parents[2] / "src" / "chipwise" / "data"
HOURS_PER_MONTH, HOURS_PER_YEAR = 730.0, 8760.0
TERM_YEARS = {"reserved-1y": 1, "reserved-1y-upfront": 1, "reserved-3y": 3}
DOUBTFUL = {"verify", "currency_unknown", "stale", "floor", "outlier"}
LIFETIME_H = 4 * HOURS_PER_YEAR
WORLD_G_PER_KWH, BOARD_MEMORY_KG, GIB = 480.0, 546.0, 2.0**30
EGRESS = {"aws": "us-east-1", "gcp": "us-central1"}  # whose bands are stated, and where
Row = dict[str, str]


@cache
def rows(name: str) -> tuple[Row, ...]:
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def only(table: str, /, **wanted: str) -> Row:
    matching = [row for row in rows(table) if all(row[column] == value for column, value in wanted.items())]
    assert len(matching) == 1, (table, wanted, len(matching))
    return matching[0]


@cache
def listed_usd(provider: str, machine: str, region: str, purchase: str) -> tuple[float, float]:
    """USD an hour in the cheapest and in the dearest zone."""
    row, column = only(f"offers/{provider}", machine=machine, region=region), purchase.replace("-", "_")
    return float(row[column]), float(row.get(f"{column}_max") or row[column])


@cache
def is_doubtful(provider: str, machine: str, region: str, purchase: str) -> bool:
    wanted = (provider, machine, region, purchase)
    return any(
        (r["provider"], r["machine"], r["region"], r["purchase"]) == wanted
        for r in rows("verdicts")
        if r["verdict"] in DOUBTFUL
    )


@cache
def grid_of(provider: str, region: str, country: str | None) -> tuple[float, float]:
    """(g CO2e per kWh, PUE): the region's own, else its country's middle and its provider's mean, else the world's."""
    place = only("regions", provider=provider, name=region)
    grams, pue = place["grid_g_per_kwh"], place["pue"]
    if not grams:
        of_country = [r for r in rows("regions") if r["country"] == country and r["grid_g_per_kwh"]]
        wide = [r for r in of_country if r["grid_scope"] == "country"] or of_country
        grams = str(median(float(r["grid_g_per_kwh"]) for r in wide) if wide else WORLD_G_PER_KWH)
    if not pue:
        known = [float(r["pue"]) for r in rows("regions") if r["provider"] == provider and r["pue"]]
        surveys = {
            r["year"]: r["value"] for r in rows("tables/energy") if (r["measure"], r["place"]) == ("pue", "world average")
        }
        pue = str(fmean(known)) if known else surveys[max(surveys)]
    return float(grams), float(pue)


def making_kg(chip: str, chips: float, machines: float, host_gib: float | None, part: float, hours: float) -> float | None:
    """A share of making chips and hosts, of which a machine is a `part`; None: nobody says."""
    kg = {row["item"]: float(row["kg_co2e"]) for row in rows("tables/embodied") if row["kg_co2e"]}
    board, bare = kg["HGX H100 baseboard (8 x H100 SXM)"], kg["Server, baseline 1 CPU"]
    known = {
        "H100-SXM": kg["H100 SXM GPU"],
        "H200": kg["HGX H200 baseboard (8 x H200)"] / 8,
        "B200": kg["B200 GPU"],
        "A100-40": kg["A100 SXM4 40GB"],
        "A100-40-PCIe": kg["A100 PCIe 40GB"],
    }
    with_host = {"TPU-v6e": kg["TPU v6e"], "TPU-v5e": kg["TPU v6e"] / 2, "TPU-v5p": kg["TPU v5p"]}
    row = next((row for row in rows("chips") if row["name"] == chip), None)
    if row is None:
        return None
    if chip in with_host:
        return chips * with_host[chip] * hours / LIFETIME_H
    if row["kind"] == "cpu":
        each = 0.0
    elif chip in known:
        each = known[chip]
    elif row["die_mm2"] and row["memory_gb"]:
        each = (board - BOARD_MEMORY_KG) / 8 / 814.0 * float(row["die_mm2"]) + BOARD_MEMORY_KG / 8 / 80.0 * float(
            row["memory_gb"]
        )
    else:
        return None
    host = 0.0
    if host_gib is not None:
        host = machines * (bare * part + (kg["AWS p5.48xlarge host without GPUs"] - bare) * host_gib / 2048.0)
    return (chips * each + host) * hours / LIFETIME_H


def egress_usd(provider: str, size_bytes: float) -> float:
    """Out to the internet, as if nothing else left the account this month."""
    home = EGRESS[provider]
    ends = {
        "internet egress first 10 TB": (0, 10),
        "internet egress next 40 TB": (10, 50),
        "internet 0-1 TB": (0, 1),
        "internet 1-10 TB": (1, 10),
    }
    bands = [
        row for row in rows("tables/storage") if (row["provider"], row["region"]) == (provider, home) and row["item"] in ends
    ]
    sizes = {row["item"]: min(size_bytes, ends[row["item"]][1] * 1e12) - ends[row["item"]][0] * 1e12 for row in bands}
    return sum(max(sizes[row["item"]], 0.0) / 1e9 * float(row["usd"]) for row in bands)


def host_gib(provider: str, machine: str) -> float | None:
    text = only("machines", provider=provider, name=machine)["memory_gib"]
    return float(text) if text else None


def host_part(provider: str, machine: str) -> float:
    """Of the largest machine with the same chip, and with the same name before the size: by vCPUs or by memory."""
    own = only("machines", provider=provider, name=machine)
    family = own["name"].rpartition(".")[0]
    alike = [row for row in rows("machines") if (row["provider"], row["chip"]) == (provider, own["chip"])]
    alike = [row for row in alike if row["name"].rpartition(".")[0] == family]
    sizes = ("chips", "vcpus", "memory_gib")
    whole = max(alike, key=lambda row: [float(row[name] or 0) for name in sizes])
    shares = [float(own[name]) / float(whole[name]) for name in ("vcpus", "memory_gib") if own[name] and whole[name]]
    shares = shares or [float(own["chips"]) / float(whole["chips"])] if own["chips"] else shares
    return min(max(shares, default=1.0), 1.0)


@cache
def wait_h(provider: str, region: str, chip: str) -> float:
    """Until a spot machine is had again: the middle of the nearest traces."""
    waits = [row for row in rows("tables/interruptions") if row["measure"] == "mean_wait_for_capacity"]
    names = [chip.rsplit("-", n)[0] for n in range(chip.count("-") + 1)]

    def place(row: Row) -> str:
        return row["region_or_zone"].rstrip("abcdef").rstrip("-")

    def label(row: Row) -> str:
        return row["machine_or_chip"].split(" x")[0].split("(")[-1].rstrip(")")

    own = [row for row in waits if row["provider"] == provider]
    pools = [[row for row in own if label(row) == name and place(row) == region] for name in names]
    pools += [[row for row in own if label(row) == name] for name in names]
    gpus = [row for row in waits if label(row) not in ("INTEL", "C3-88")]
    pools += [[row for row in gpus if row["provider"] == provider]]
    if nearest := next((pool for pool in pools if pool), None):
        return median(float(row["value"]) for row in nearest)
    return max(median(float(row["value"]) for row in gpus if row["provider"] == one) for one in {r["provider"] for r in gpus})


@cache
def first_wait(provider: str, region: str, chip: str, chips: float) -> tuple[float, float]:
    """(share of the time in which there is no spot machine, hours that a request waits for one on average): of machines of
    one chip or of eight the middle of the nearest traces, and in between by the logarithm of the number. Larger ones are not
    traced: their chips count as so many machines of eight, to the power of 0.550396, by how losses grow from one to eight."""
    every = rows("tables/interruptions")
    trace = ("provider", "region_or_zone", "machine_or_chip", "period")
    there = {tuple(row[one] for one in trace): float(row["value"]) for row in every if row["measure"] == "availability_share"}
    names = [chip.rsplit("-", n)[0] for n in range(chip.count("-") + 1)]

    def of(size: int) -> tuple[float, float]:
        known = [row for row in every if row["measure"] == "mean_wait_of_request" and f" x{size}" in row["machine_or_chip"]]
        own = [row for row in known if row["provider"] == provider and row["machine_or_chip"].split(" x")[0] in names]
        near = [row for row in own if row["region_or_zone"].rstrip("abcdef").rstrip("-") == region]
        nearest = (near or own or known) if chips in (1, 8) else known
        absent = 1 - median(there[tuple(row[one] for one in trace)] for row in nearest)
        return absent, median(float(row["value"]) for row in nearest)

    if chips <= 1 or chips >= 8:
        return _until_all(of(1 if chips <= 1 else 8), max(chips / 8, 1.0) ** 0.550396)
    (rare, short), (often, long), share = of(1), of(8), log(chips) / log(8)
    return rare + share * (often - rare), short * (long / short) ** share


@cache
def fleet_wait(provider: str, region: str, chip: str, chips: float, machines: int) -> tuple[float, float]:
    """As `first_wait`, of so many at once. What four or sixteen of them did together says how many of them count as
    coming and going alone, n to the power of 0.03002 of one chip and 0.88381 of eight; the mean is drawn as an area."""
    if machines == 1:
        return first_wait(provider, region, chip, chips)
    return _until_all(first_wait(provider, region, chip, chips), alone(machines, chips))


def alone(machines: int, chips: float) -> float:
    return float(machines ** (0.030020489 + (0.883809529 - 0.030020489) * min(log(chips) / log(8), 1.0)))


def _until_all(wait: tuple[float, float], number: float) -> tuple[float, float]:
    absent, mean = wait
    if number == 1 or not absent:
        return wait
    steps, hours = 100_000, mean / absent
    width = 60.0 * hours / steps
    waiting = [1 - (1 - absent * exp(-at * width / hours)) ** number for at in range(steps + 1)]
    return 1 - (1 - absent) ** number, width * (sum(waiting) - (waiting[0] + waiting[-1]) / 2)
