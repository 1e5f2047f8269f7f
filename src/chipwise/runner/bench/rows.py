"""What a benchmark found, as rows that `chipwise calibrate` and `chipwise score` read.

Only what was measured becomes a row, and only what those two have a model for. A row says how the work was run as far as the
workload file and the prediction say it, so that both ask the same question: a factor that is fitted is then the chip's own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from chipwise.errors import BadInput
from chipwise.predictor.kinds.ask import Ask, by_samples, kind_of, known_model
from chipwise.predictor.known import Known
from chipwise.runner.bench.values import Allocation, BenchRequest, Result, Unknown
from chipwise.runner.comparing import number
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Finetune, Learning
from chipwise.workload.model.layers import Attention
from chipwise.workload.model.shape import DecoderShape, Shape

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
Row = dict[str, object]


def check_rows(known: Known, wanted: BenchRequest) -> None:
    """Refuses a file that could hold no row, before anything runs."""
    if all(one.simulated for one in wanted.places):
        raise BadInput("What is simulated was not measured: there is nothing to write.", remedy="Leave --out out.")
    if _described(known, wanted.path, wanted.work) is None:
        raise BadInput(
            f"calibrate fits training and the answers of language models, and {wanted.work.name} is of the kind"
            f" {kind_of(wanted.work)}.",
            remedy="Leave --out out; --json has all figures.",
        )


def rows(known: Known, wanted: BenchRequest, results: Sequence[Result]) -> tuple[str, list[str]]:
    """A CSV, which is empty where there is no row, and why places are not in it."""
    described = _described(known, wanted.path, wanted.work)
    assert described is not None, "check_rows was asked before"
    records: list[Row] = []
    left_out: list[str] = []
    for result in results:
        if reason := _unfit(result):
            left_out.append(f"{result.place.text} is not in the file: {reason}.")
            continue
        assert isinstance(result.allocation, Allocation)
        assert result.speed is not None
        metric, per_chip = described["metric_name"], described["metric_name"] == "tokens_per_s_per_chip"
        records.append(
            described
            | _as_run(result)
            | {
                "chip": result.allocation.chip,
                "chips": f"{result.allocation.chips:g}",
                "metric_name": metric,
                "metric_value": f"{result.speed / (result.allocation.chips if per_chip else 1.0):.6g}",
                "spread": "" if result.spread is None else f"{result.spread:.4g}",
                "notes": f"chipwise bench {result.place.text}, {len(result.speeds)} runs, {known.today.isoformat()}",
            }
        )
    if not records:
        return "", left_out
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue(), left_out


def _unfit(result: Result) -> str:
    if result.formula:
        return "it is a formula, and was not run"
    if result.speed is None:
        return "it was not measured"
    if isinstance(result.allocation, Unknown):
        return result.allocation.reason
    if result.allocation.share < 1.0:
        return f"it held {result.allocation.share:.1%} of a {result.allocation.chip}, and a row is about whole chips"
    return ""


def _as_run(result: Result) -> Row:
    """What the prediction assumed where the file leaves it open."""
    settings = result.predicted.get("as_run")
    assumed: dict[str, object] = dict(settings) if isinstance(settings, dict) else {}
    zero = {0.0: "DDP", 2.0: "ZeRO-2", 3.0: "FSDP"}.get(number(assumed.pop("zero_stage", None)) or 0.0)
    if zero is not None and isinstance(result.allocation, Allocation) and result.allocation.chips > 1:
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


def _described(known: Known, path: str, work: Common) -> Row | None:
    """What was run, in the columns of a measurement; None where nobody fits such work."""
    if not isinstance(work, Learning | Batch):
        return None
    _, model, shape = known_model(Ask(known, path, "", {}), work)
    cells: Row = {"model": model.partition(" (")[0]} | (_shape(shape) if not isinstance(work.model, str) else {})
    if isinstance(work, Batch):
        if by_samples(shape, "serve"):
            return None
        lengths = {"input_len": work.input_tokens, "output_len": work.output_tokens}
        cells |= {name: f"{one.mean:g}" for name, one in lengths.items() if one is not None}
        precision = work.precision.value if work.precision is not None else ""
        return cells | {"task": "llm-offline", "precision_weights": precision, "metric_name": "requests_per_s"}
    method = work.method.value if isinstance(work, Finetune) else "full"
    task = method if method != "full" else "finetune" if isinstance(work, Finetune) else "pretrain"
    cells |= {"task": task, "precision": work.precision.value}
    if by_samples(shape, "train"):
        return cells | {"task": "train", "global_batch_sequences": work.batch_samples or "", "metric_name": "samples_per_s"}
    return cells | {"metric_name": "tokens_per_s_per_chip" if work.tokens is not None else "samples_per_s"}


def _shape(shape: Shape) -> Row:
    """Of a model that only this file knows."""
    cells: Row = {"params_b": f"{shape.parameters / 1e9:.9g}"}
    if isinstance(shape, DecoderShape) and isinstance(shape.attention, Attention):
        cells |= {
            "layers": shape.layers,
            "hidden": shape.hidden,
            "ffn_hidden": shape.mlp.width,
            "heads": shape.attention.heads,
            "kv_heads": shape.attention.kv_heads,
            "vocab": shape.vocab,
        }
    return cells
