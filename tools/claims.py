"""Writes docs/claims.md: sayings of the field, put to the test by the rules of docs/claims.yaml.

`python tools/claims.py` takes some minutes; names of claims after it make only these (printed, nothing is written). The rules,
thresholds and workloads were fixed before the first run; this tool only computes the numbers and applies them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from sayings import money, peaks, serving, training
from sayings.bench import DAY, Bench
from sayings.judging import Outcome, Table

DOCS = Path(__file__).resolve().parent.parent / "docs"
CLAIMS: Mapping[str, Callable[[Bench, Mapping[str, Any]], Outcome]] = {
    "trainium-half-price": training.trainium,
    "inferentia-70-percent": serving.inferentia,
    "cloud-always-dearer": money.cloud_dearer,
    "ten-to-thirty-percent": peaks.share_of_peak,
    "serverless-no-gpu": money.serverless,
    "spot-saves-90": money.spot,
    "dearer-chip-cheaper-job": training.dearer_chip,
    "fp8-doubles": serving.fp8,
    "four-bit-four-times": serving.four_bit,
    "decode-is-bandwidth": peaks.decode,
    "consumer-cards-cheapest": serving.consumer,
    "tpu-cheaper-training": training.tpu,
    "self-hosting-cheaper": serving.self_hosting,
    "infiniband-needed": training.infiniband,
    "green-region-dearer": money.green,
}


def claims() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load((DOCS / "claims.yaml").read_text(encoding="utf-8"))["claims"]
    return found


def section(claim: Mapping[str, Any], outcome: Outcome) -> list[str]:
    """One claim of the page."""
    alone = f" By the values alone: {outcome.plain}." if outcome.plain != outcome.verdict else ""
    rules = "; ".join(f"*{name}*: {rule}" for name, rule in claim["verdicts"].items())
    return [
        f"## {claim['saying']}",
        "",
        f"**Verdict: {outcome.verdict}.**{alone} {_sentence(outcome.why)}",
        "",
        f"Origin: {claim['origin']}. Number: {claim['number'].strip()}. Rules: {rules}.",
        "",
        *(line for table in outcome.tables for line in [*_drawn(table), ""]),
        *(["Depends on:", "", *(f"- {one}" for one in outcome.hangs), ""] if outcome.hangs else []),
        *(
            ["Left out, or computed otherwise than the claim's text says:", "", *(f"- {one}" for one in outcome.nearest), ""]
            if outcome.nearest
            else []
        ),
        f"From: {outcome.sources}.",
        "",
    ]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _drawn(table: Table) -> Iterator[str]:
    if not table.rows:
        yield "No number could be computed."
        return
    for row in (table.titles, ("---",) * len(table.titles), *table.rows):
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"


def page(outcomes: Mapping[str, Outcome], known: list[dict[str, Any]]) -> str:
    lines = [
        "# Common claims, tested",
        "",
        "Written by `python tools/claims.py` from `docs/claims.yaml`, whose rules were fixed before the first run.",
        f"Prices are those of the packaged catalog; dates count from {DAY.isoformat()}. A cost is hours times price of whole",
        "machines, on-demand unless a table says otherwise. Numbers in brackets are bands of 80%; where a band covers a",
        "threshold, or an assumption turns the verdict over, the verdict is *depends*, and what the values alone say stands",
        "beside it.",
        "",
        "| Saying | Verdict | By the values alone |",
        "| --- | --- | --- |",
        *(f"| [{one['saying']}](#{_anchor(one['saying'])}) | {_verdicts(outcomes[one['name']])} |" for one in known),
        "",
        *(line for one in known for line in section(one, outcomes[one["name"]])),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _verdicts(outcome: Outcome) -> str:
    return f"{outcome.verdict} | {outcome.plain}"


def _anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def main() -> None:
    only = sys.argv[1:]
    known = claims()
    bench, outcomes = Bench(), {}
    for one in known:
        if only and one["name"] not in only:
            continue
        started = time.perf_counter()
        outcomes[one["name"]] = CLAIMS[one["name"]](bench, one)
        print(
            f"{one['name']}: {outcomes[one['name']].verdict}, {time.perf_counter() - started:.1f} s",
            file=sys.stderr,
            flush=True,
        )
    if only:
        print("\n".join(line for one in known if one["name"] in outcomes for line in section(one, outcomes[one["name"]])))
    else:
        (DOCS / "claims.md").write_text(page(outcomes, known), encoding="utf-8")


if __name__ == "__main__":
    main()
