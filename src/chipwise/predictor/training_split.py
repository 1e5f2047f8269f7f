"""The split of a training that nobody stated, where the plain one is not enough.

Within one machine a model that fits is trained data parallel with sharded weights: that is what people run. Over several
machines, where that does not fit, or where a step has fewer sequences than there are chips, every way to cut is predicted:
tensor, pipeline and expert parallel, ZeRO stage, micro-batch, recomputation and pieces per stage, all at once. The fastest that
fits is taken, or the simplest of those that take at most `SIMPLER` longer, as `plan` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from chipwise.perf.fits import fits
from chipwise.perf.setup import FULL, NONE, RECOMPUTE, SELECTIVE
from chipwise.perf.transformer import Layer
from chipwise.predictor.named import chip_named, layer_named
from chipwise.predictor.transformer import INTERLEAVED, Trained, train
from chipwise.text import number

if TYPE_CHECKING:
    from chipwise.predictor.known import Known

SIMPLER = 0.02  # of the time of the fastest split: within it the one is taken that cuts the model least
MACHINE_CHIPS = 8  # of a usual machine
TENSOR, STAGES, EXPERTS = (1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 4, 8, 16, 32, 64)
MICRO_BATCHES = (1, 2, 4, 8, 16)
CUTS = ("tp", "pp", "cp", "ep", "shard")  # settings of which one that is stated leaves the split to whoever asks
LAYERED = ("megatron", "nemo")  # starts of the names of software that cuts layers
COLUMNS = ("pp", "tp", "ep", "interleave", "recompute", "shard", "micro_batch")  # what is simpler comes first in each
Ways = tuple[tuple[int, ...], ...]


def train_searched(known: Known, model: str, *, on: str, chips: float, **settings: Any) -> Trained:
    """`transformer.train` of one configuration, with the split searched where that is called for."""
    stated = [name for name in CUTS if name in settings]
    framework = settings.get("framework")
    cuts_layers = framework is None or framework.startswith(LAYERED)
    if stated or chips < 2 or not cuts_layers or settings.get("method", "full") != "full":
        return train(known, model, on=on, chips=chips, **settings)
    machine = settings.get("chips_per_node") or MACHINE_CHIPS
    plain: Trained | None = None
    if "global_batch" not in settings or settings["global_batch"] >= chips * settings.get("micro_batch", 1):
        plain = train(known, model, on=on, chips=chips, **settings)
        if chips <= machine and plain.fit is not None and plain.fit.fits[0]:
            return plain
    ways = _ways(known, model, on, int(chips), int(machine), settings)
    chosen, note = _fastest(known, model, {**settings, "on": on, "chips": chips}, ways)
    if chosen is None:
        return plain or train(known, model, on=on, chips=chips, **settings)
    searched = train(known, model, on=on, chips=chips, **{**settings, **chosen})
    return replace(searched, notes=(*searched.notes, note))


def _ways(known: Known, model: str, on: str, chips: int, machine: int, settings: Mapping[str, Any]) -> Ways:
    """Rows of `COLUMNS` that divide the chips, the model and the batch."""
    layer: Layer = layer_named(known, model)[1]
    part = known.parts[chip_named(known, on)]
    batch = int(settings.get("global_batch", chips * settings.get("micro_batch", 1)))
    tensor = [ways for ways in TENSOR if ways <= machine and layer.heads % ways == 0 and layer.hidden % ways == 0]
    stages = [ways for ways in STAGES if ways <= layer.layers and (ways == 1 or (part.kind != "tpu" and not layer.source))]
    micros = [int(settings["micro_batch"])] if "micro_batch" in settings else list(MICRO_BATCHES)
    recomputes = [int(settings["recompute"])] if "recompute" in settings else [NONE, SELECTIVE, FULL]
    rows = []
    for pp, tp in product(stages, tensor):
        copies, rest = divmod(chips, pp * tp)
        if rest or not copies:
            continue
        experts = (
            [ways for ways in EXPERTS if layer.experts % ways == 0 and (tp * copies) % ways == 0] if layer.experts else [1]
        )
        shards = (0,) if copies == 1 else (1, 3) if pp == 1 else (1,)
        for micro in (micro for micro in micros if batch % (micro * copies) == 0):
            rounds = batch // (micro * copies)
            pieces = [one for one in INTERLEAVED if one == 1 or (pp > 1 and rounds % pp == 0 and pp * one <= layer.layers)]
            pieces = [int(settings["interleave"])] if "interleave" in settings else pieces
            rows += [(pp, tp, *way, micro) for way in product(experts, pieces, recomputes, shards)]
    return tuple(rows)


def _fastest(known: Known, model: str, settings: Mapping[str, Any], ways: Ways) -> tuple[dict[str, float] | None, str]:
    """Of ways that fit, and what is to be said of it; None where none fits."""
    if not ways:
        return None, ""
    table = np.array(ways, dtype=np.float64)
    columns = dict(zip(COLUMNS, table.T, strict=True))
    batch = settings.get("global_batch", settings["chips"] * settings.get("micro_batch", 1))
    all_settings = {**settings, **columns, "global_batch": batch, "fit": False}
    trained = train(known, model, **all_settings)
    room = fits(trained.ask.model, trained.part, trained.ask.setup, changes=False).fits
    seconds = np.where(room, trained.step.value, np.inf)
    if not np.isfinite(seconds).any():
        return None, ""
    near = np.flatnonzero(seconds <= (1.0 + SIMPLER) * seconds.min())
    taken = min(near, key=lambda row: ways[row])
    cuts = {way[:3] for way in ways}
    best = {cut: min(seconds[row] for row, way in enumerate(ways) if way[:3] == cut) for cut in cuts}
    others = sorted(value for cut, value in best.items() if cut != ways[taken][:3] and np.isfinite(value))
    chosen = {**dict(zip(COLUMNS, table[taken].tolist(), strict=True)), "global_batch": float(batch)}
    return chosen, _note(chosen, len(ways), int(room.sum()), others)


def _note(chosen: Mapping[str, float], count: int, fitting: int, others: list[float]) -> str:
    names = {"tp": "--tp", "pp": "--pp", "ep": "--ep", "interleave": "--interleave", "micro_batch": "--micro-batch"}
    flags = " ".join(f"{flag} {chosen[name]:g}" for name, flag in names.items() if chosen[name] > 1)
    label = next(name for name, code in RECOMPUTE.items() if code == chosen["recompute"])
    taken = f"{flags} --zero {chosen['shard']:g} --recompute {label}".strip()
    span = f" The best of other cuts take {number(others[0])} to {number(others[-1])} s a step." if others else ""
    return f"No split is stated: {taken} taken of {count:,} ways, of which {fitting:,} fit.{span}"
