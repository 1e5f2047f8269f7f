"""Prints how far the packaged model is from `data/measurements/networks.jsonl`, by domain,
and the efficiency of each class of operator in `operators.csv`, as tables of docs/h200.md. No factor of language models
has seen these rows; those of other networks have since, and tools/source_out.py judges them with whole sources left out.

    python tools/score_networks.py
    python tools/score_networks.py --take FOLDER    first take over what tools/measure_networks.py wrote there
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accuracy import percent, table
from chipwise.calibration.measurements import DATA, read
from chipwise.calibration.score import Scored, figures, predict
from chipwise.catalog.load import load
from chipwise.errors import UnknownName
from chipwise.perf.model import packaged
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row
from chipwise.workload.model import registry

ROWS, OPERATORS = DATA / "networks.jsonl", DATA / "operators.csv"
COLUMNS = ("row_id", "domain", "compiled", "class", "calls", "gflop", "gbytes", "ideal_ms", "measured_ms")
SMALL = 0.02  # of a domain's kernel time that a class must take to be shown
WORST = 30
BUSY, STEADY = 0.8, 0.1
DRIVER = "580.159.04"  # of the machines of 2026-11-17; torch does not tell it


def take(folder: Path) -> None:
    """Keeps what was measured, rounded; failed cases are left out. `folder` holds first.jsonl and first_operators.jsonl, and
    again*.jsonl where cases were run a second time, on another machine."""
    first, again = _lines(folder / "first.jsonl"), {line["row_id"]: line for line in _lines(folder / "again.jsonl")}
    operators = _lines(folder / "first_operators.jsonl")
    later = _lines(folder / "again_operators.jsonl")
    newer = {line["row_id"] for line in later}
    operators = [line for line in operators if line["row_id"] not in newer] + later
    kernels: dict[str, float] = {}
    for line in operators:
        kernels[line["row_id"]] = kernels.get(line["row_id"], 0.0) + 1e3 * line["measured_s"]
    rows = [_finished(line, again.get(line["row_id"]), kernels.get(line["row_id"])) for line in first if line["metric_value"]]
    ROWS.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    order = {str(row["row_id"]): number for number, row in enumerate(rows)}
    with OPERATORS.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for line in sorted((line for line in operators if line["row_id"] in order), key=lambda line: order[line["row_id"]]):
            scaled = (line.get(name, 0.0) * scale for name, scale in (("flop", 1e-9), ("bytes", 1e-9), ("ideal_s", 1e3)))
            numbers = [f"{value:.5g}" if value else "" for value in (*scaled, 1e3 * line["measured_s"])]
            writer.writerow([line["row_id"], line["domain"], line["mode"], line["class"], int(line["calls"]), *numbers])


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _finished(line: Mapping[str, Any], again: Mapping[str, Any] | None, kernel_ms: float | None) -> dict[str, object]:
    """With the second run, the kernels' own time, and what decides: the host where kernels fill less than BUSY of the time or
    the second run is more than STEADY off. The spread is the largest of those within the runs and the one between them."""
    batch = line.get("batch_or_concurrency") or line.get("micro_batch")
    value, metric = line["metric_value"], line["metric_name"]
    call_ms = value if metric.endswith("_ms") else 1e3 * (value if metric == "step_time_s" else batch / value)
    apart = abs(math.log(again["metric_value"] / value)) if again else 0.0
    host = apart > STEADY or (kernel_ms is not None and kernel_ms < BUSY * call_ms)
    spread = max(line["spread"], apart, again["spread"] if again else 0.0)
    cells = {**line, "spread": spread, "again": again and again["metric_value"], "kernel_ms": kernel_ms}
    bound = "host" if host else "device" if again or kernel_ms is not None else "unknown"
    cells |= {"bound": bound, "software": f"{line['software']}, driver {DRIVER}"}
    known = {name: cell for name, cell in cells.items() if cell is not None}
    return {name: float(f"{cell:.6g}") if isinstance(cell, float) else cell for name, cell in known.items()}


def question(row: Row) -> Row:
    """The row in the words that the model reads: size and steps of pictures stand in the notes of published rows."""
    side, steps = row.text("image_size"), row.text("steps")
    if not side:
        return row
    notes = f"{side}x{side}" + (f"; {steps} Euler steps" if steps else "")
    single = {"input_len": side} if steps == "1" else {}
    return Row({**row.cells, **single, "notes": notes})


def error_rows(rows: Sequence[Row], answers: Sequence[Scored]) -> Iterator[list[str]]:
    domains = list(dict.fromkeys(row.text("domain") for row in rows))
    known = [is_known(row) for row in rows]
    for domain in (*domains, ""):
        for mode in ("eager", "compiled", "graph") if domain else ("",):
            members = [i for i, row in enumerate(rows) if domain in ("", row.text("domain")) and mode in ("", _mode(row))]
            if members:
                yield [domain or "all", mode or "all", *_figures(rows, answers, members)]
    for bound in ("device", "host"):
        yield ["all", f"bound by the {bound}", *_figures(rows, answers, _where(rows, bound, known, True, False))]
    yield ["networks known by name", "bound by the device", *_figures(rows, answers, _where(rows, "device", known, True))]
    yield ["networks not known", "bound by the device", *_figures(rows, answers, _where(rows, "device", known, False))]


def _where(rows: Sequence[Row], bound: str, known: Sequence[bool], *wanted: bool) -> list[int]:
    return [i for i, row in enumerate(rows) if row.text("bound") == bound and known[i] in wanted]


def is_known(row: Row) -> bool:
    """Whether the model was answered as that model, not as one of a guessed size."""
    if row.text("layers"):
        return True
    try:
        registry.find(row.text("model"))
    except UnknownName:
        return False
    return True


def _figures(rows: Sequence[Row], answers: Sequence[Scored], members: Sequence[int]) -> list[str]:
    scored = figures([rows[i] for i in members], [answers[i] for i in members])
    if scored is None:
        return [str(len(members)), "0", *["-"] * 6]
    ratios = [_ratio(rows[i], answers[i]) for i in members if answers[i].predicted is not None]
    shares = (scored.median_ape, scored.p90_ape, scored.within_25pct, scored.interval_coverage, scored.interval_width)
    return [str(len(members)), str(scored.rows), f"{float(np.median(ratios)):.2f}", *map(percent, shares)]


def _mode(row: Row) -> str:
    return {"compile": "compiled", "blocks": "compiled"}.get(row.text("compiled"), row.text("compiled"))


def _ratio(row: Row, answer: Scored) -> float:
    """Predicted over measured speed."""
    ratio = (answer.predicted or np.nan) / row.number("metric_value", np.nan)
    return ratio if row.text("metric_name") == "samples_per_s" else 1.0 / ratio


def miss_rows(rows: Sequence[Row], answers: Sequence[Scored]) -> Iterator[list[str]]:
    pairs = [(row, answer) for row, answer in zip(rows, answers, strict=True) if answer.predicted is not None]
    for row, answer in sorted(pairs, key=lambda pair: -abs(float(np.log(_ratio(*pair)))))[:WORST]:
        size = row.text("image_size") or row.text("input_len") or row.text("seq_len")
        batch = row.text("batch_or_concurrency") or row.text("micro_batch")
        what = [row.text("domain"), row.text("model"), row.text("task"), row.text("precision_weights") or row.text("precision")]
        numbers = f"{row.number('metric_value', 0.0):.4g}", f"{answer.predicted:.4g}", f"{_ratio(row, answer):.2f}"
        yield [*what, row.text("compiled"), row.text("bound"), row.text("metric_name"), batch, size, *numbers]


def operator_rows(lines: Iterable[Mapping[str, str]]) -> Iterator[list[str]]:
    sums: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for line in lines:
        if line["compiled"] == "eager" and line["ideal_ms"]:
            pair = (float(line["ideal_ms"] or 0), float(line["measured_ms"] or 0))
            sums.setdefault(line["domain"], {}).setdefault(line["class"], []).append(pair)
    for domain, classes in sums.items():
        total = sum(measured for pairs in classes.values() for _, measured in pairs)
        for name, pairs in sorted(classes.items(), key=lambda item: -sum(measured for _, measured in item[1])):
            spent = sum(measured for _, measured in pairs)
            if spent > SMALL * total:
                shares = [ideal / measured for ideal, measured in pairs if measured > 0]
                low, middle, high = np.quantile(shares, (0.1, 0.5, 0.9))
                weighted = sum(ideal for ideal, _ in pairs) / spent
                yield [domain, name, str(len(shares)), *map(percent, (spent / total, weighted, low, middle, high))]


def main() -> int:
    if sys.argv[1:2] == ["--take"]:
        take(Path(sys.argv[2]))
    rows = read(ROWS).rows
    answers = predict([question(row) for row in rows], Parts(load().chips.values()), packaged())
    header = [
        "Domain",
        "mode",
        "rows",
        "answered",
        "predicted / measured speed",
        "median",
        "90th",
        "within 25%",
        "inside",
        "width",
    ]
    print(table(header, error_rows(rows, answers), names=2))
    header = [
        "Domain",
        "Model",
        "Task",
        "Format",
        "Mode",
        "Bound",
        "Metric",
        "batch",
        "size",
        "measured",
        "predicted",
        "speed ratio",
    ]
    print(table(header, miss_rows(rows, answers), names=7))
    with OPERATORS.open(encoding="utf-8", newline="") as lines:
        header = ["Domain", "Operators", "rows", "kernel time", "efficiency", "10th", "median", "90th"]
        print(table(header, operator_rows(csv.DictReader(lines)), names=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
