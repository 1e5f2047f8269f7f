"""What a workload is, in the columns of a measurement: `calibrate` is then asked what `predict` was asked."""

from __future__ import annotations

from chipwise.predictor.kinds.ask import Ask, by_samples, known_model
from chipwise.predictor.known import Known
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Finetune, Learning
from chipwise.workload.model.layers import Attention
from chipwise.workload.model.shape import DecoderShape, Shape

Cells = dict[str, object]


def described(known: Known, path: str, work: Common) -> Cells | None:
    """What was run, in the columns of a measurement; None where nobody fits such work."""
    if not isinstance(work, Learning | Batch):
        return None
    _, model, shape = known_model(Ask(known, path, "", {}), work)
    cells: Cells = {"model": model.split(" ", 1)[0]} | (_shape(shape) if not isinstance(work.model, str) else {})
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


def _shape(shape: Shape) -> Cells:
    """Of a model that only this file knows."""
    cells: Cells = {"params_b": f"{shape.parameters / 1e9:.9g}"}
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
