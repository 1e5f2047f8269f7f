"""What a benchmark or a run measured, as rows that `chipwise calibrate` and `chipwise score` read.

Only what was measured becomes a row, and only what those two have a model for. A row says how the work was run as far as the
workload file and the prediction say it, so that both ask the same question: a factor that is fitted is then the chip's own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from chipwise.errors import BadInput
from chipwise.predictor.kinds.ask import kind_of
from chipwise.predictor.known import Known
from chipwise.runner.bench.values import Allocation, BenchRequest, Result, Unknown
from chipwise.runner.comparing import number
from chipwise.runner.submission.described import Cells, described

COLUMNS = (
    "model",
    "task",
    "chip",
    "chips",
    "tp",
    "pp",
    "cp",
    "ep",
    "dp_or_fsdp",
    "framework",
    "engine",
    "precision",
    "precision_weights",
    "seq_len",
    "micro_batch",
    "global_batch_sequences",
    "activation_checkpointing",
    "input_len",
    "output_len",
    "params_b",
    "layers",
    "hidden",
    "ffn_hidden",
    "heads",
    "kv_heads",
    "vocab",
    "metric_name",
    "metric_value",
    "spread",
    "group",
    "notes",
)
_PER_CHIP = "tokens_per_s_per_chip"


def check_rows(known: Known, wanted: BenchRequest) -> None:
    """Refuses a file that could hold no row, before anything runs."""
    if all(one.simulated for one in wanted.places):
        raise BadInput("What is simulated was not measured: there is nothing to write.", remedy="Leave --out out.")
    if described(known, wanted.path, wanted.work) is None:
        raise BadInput(
            f"calibrate fits training and the answers of language models, and {wanted.work.name} is of the kind"
            f" {kind_of(wanted.work)}.",
            remedy="Leave --out out; --json has all figures.",
        )


def rows(known: Known, wanted: BenchRequest, results: Sequence[Result]) -> tuple[str, list[str]]:
    """A CSV, which is empty where there is no row, and why places are not in it."""
    cells = described(known, wanted.path, wanted.work)
    assert cells is not None, "check_rows was asked before"
    records: list[Cells] = []
    left_out: list[str] = []
    for result in results:
        reason = "it is a formula, and was not run" if result.formula else unfit(result.speed, result.allocation)
        if reason:
            left_out.append(f"{result.place.text} is not in the file: {reason}.")
            continue
        assert isinstance(result.allocation, Allocation)
        assert result.speed is not None
        note = f"chipwise bench {result.place.text}, {len(result.speeds)} runs, {known.today.isoformat()}"
        spread = "" if result.spread is None else f"{result.spread:.4g}"
        records.append(row(cells, result.predicted, result.allocation, result.speed) | {"spread": spread, "notes": note})
    return written(records), left_out


def unfit(speed: float | None, allocation: Allocation | Unknown) -> str:
    """Why it can be no row; empty where it can."""
    if speed is None:
        return "it was not measured"
    if isinstance(allocation, Unknown):
        return allocation.reason
    if allocation.share < 1.0:
        return f"it held {allocation.share:.1%} of a {allocation.chip}, and a row is about whole chips"
    return ""


def row(cells: Cells, predicted: Mapping[str, object], allocation: Allocation, speed: float) -> Cells:
    """`speed`: of all chips, in the units of the work."""
    per_chip = allocation.chips if cells["metric_name"] == _PER_CHIP else 1.0
    return (
        cells
        | _as_run(predicted, allocation)
        | {"chip": allocation.chip, "chips": f"{allocation.chips:g}", "metric_value": f"{speed / per_chip:.6g}"}
    )


def written(records: Sequence[Cells]) -> str:
    """As CSV; empty where there is none."""
    if not records:
        return ""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _as_run(predicted: Mapping[str, object], allocation: Allocation) -> Cells:
    """What the prediction assumed where the file leaves it open."""
    settings = predicted.get("as_run")
    assumed: dict[str, object] = dict(settings) if isinstance(settings, dict) else {}
    zero = {0.0: "DDP", 2.0: "ZeRO-2", 3.0: "FSDP"}.get(number(assumed.pop("zero_stage", None)) or 0.0)
    if zero is not None and allocation.chips > 1:
        assumed["zero"] = zero
    names = {
        "tp": "tp",
        "pp": "pp",
        "cp": "cp",
        "ep": "ep",
        "zero": "dp_or_fsdp",
        "micro_batch": "micro_batch",
        "global_batch": "global_batch_sequences",
        "seq": "seq_len",
        "framework": "framework",
        "engine": "engine",
        "recompute": "activation_checkpointing",
    }
    return {
        column: f"{value:g}" if isinstance(value, int | float) else str(value)
        for name, column in names.items()
        if (value := assumed.get(name)) not in (None, "")
    }
