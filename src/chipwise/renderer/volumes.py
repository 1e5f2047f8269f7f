"""What a deployment keeps on disks: data, weights, checkpoints, with sizes and reasons."""

from __future__ import annotations

from dataclasses import replace

from chipwise.planner.values.choice import Choice
from chipwise.renderer.deployment import FORMAT_BYTES, Form, Model, Volume
from chipwise.units import GB
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Learning, Transcode
from chipwise.workload.model.registry import Model as Known
from chipwise.workload.program import Cache, Program

FLOAT_BYTES, ANSWER_BYTES = 21.0, 500.0  # of a number of an embedding as JSON, and of what stands around all of them
TOKEN_BYTES, REQUEST_BYTES = 5.0, 300.0  # of a token of a request, and of what stands around all of them


def answers_bytes(work: Common, known: Known | None, model: Model | None) -> float | None:
    """Of a batch whose answers are embeddings, in the JSON that vLLM writes: far more than what was asked."""
    hidden = getattr(known.shape, "hidden", None) if known is not None else None
    if not isinstance(work, Batch) or model is None or not model.pooled or not hidden:
        return None
    return float(work.items * (hidden * FLOAT_BYTES + ANSWER_BYTES))


def volumes_of(
    work: Common,
    choice: Choice,
    model: Model | None,
    form: Form,
    hosts: int,
    answered: float | None = None,
    again: bool = False,
) -> list[Volume]:
    """`hosts`: machines that use them, those of a slice of TPUs each. `answered`: bytes of answers that are kept beside the
    data. `again`: a clock starts it, and the last run's are kept."""
    volumes = _kept(work, choice, model, form, hosts)
    if answered is None:
        return volumes
    runs, reason = (2, " of two runs") if again else (1, "")
    return [
        replace(
            volume,
            size_bytes=max(volume.size_bytes, 1.1 * (2 * _asked_bytes(work) + runs * answered)),
            reason=f"requests, their copy in shards, and answers{reason} as text",
        )
        if volume.name == "data"
        else volume
        for volume in volumes
    ]


def _asked_bytes(work: Common) -> float:
    if work.data is not None and work.data.read_bytes:
        return work.data.read_bytes
    assert isinstance(work, Batch)
    tokens = work.input_tokens.mean if work.input_tokens is not None else 0.0
    return work.items * (tokens * TOKEN_BYTES + REQUEST_BYTES)


def _kept(work: Common, choice: Choice, model: Model | None, form: Form, hosts: int) -> list[Volume]:
    volumes = []
    shared = hosts > 1 or form is Form.SERVICE
    if work.data is not None:
        place = work.data.place
        volumes.append(
            Volume(
                name="data",
                path="/data",
                size_bytes=work.data.read_bytes,
                shared=shared,
                url=place if place and "//" in place else None,
                reason=f"the data set, as the plan keeps it: {choice.storage or 'object store'}",
            )
        )
    elif isinstance(work, Transcode) and work.streams is not None:
        pass  # live streams come over the network and leave by it
    elif isinstance(work, Batch | Transcode) or getattr(work, "kind", "") == "render":
        volumes.append(
            Volume(
                name="data",
                path="/data",
                size_bytes=_worked_bytes(work) or 100 * GB,
                shared=shared,
                url=None,
                reason="input and results" + ("" if _worked_bytes(work) else "; its size is not stated"),
            )
        )
    if model is not None and model.weight_bytes and form is not Form.DEVICES:
        volumes.append(_models(work, model.weight_bytes, shared, form))
    if isinstance(work, Learning) and model is not None and model.weight_bytes:
        url = work.program.checkpoints if work.program else None
        size = model.weight_bytes / FORMAT_BYTES.get(choice.precision, 2.0) * 14.0 * 3  # fp32 weights, two moments; three kept
        if getattr(work, "method", "full") != "full":
            size = max(model.weight_bytes * 0.1, 20 * GB)
        volumes.append(
            Volume(
                name="checkpoints",
                path="/checkpoints",
                size_bytes=max(size, 20 * GB),
                shared=shared,
                url=url,
                reason="room for three checkpoints",
            )
        )
    elif form is Form.JOB and choice.purchase == "spot" and not isinstance(work, Transcode):  # whose results are in `data`
        url = work.program.checkpoints if work.program else None
        volumes.append(
            Volume(
                name="checkpoints",
                path="/checkpoints",
                size_bytes=50 * GB,
                shared=shared,
                url=url,
                reason="what is done must outlive a lost machine",
            )
        )
    return volumes


def _models(work: Common, weight_bytes: float, shared: bool, form: Form) -> Volume:
    """Weights, and what engines compile for them, which is small."""
    program = work.program or Program()
    own = program.cache is Cache.MACHINE and form is Form.SERVICE
    reason = "weights are fetched once, not at every start"
    return Volume(
        name="models",
        path="/models",
        size_bytes=max(2.2 * weight_bytes, 10 * GB),
        shared=shared and not own,
        url=None,
        reason="weights and kernels, as long as the pod lives" if own else reason,
        on_machine=own,
        storage_class=program.cache_class or "",
    )


def _worked_bytes(work: Common) -> float | None:
    """Of the sources and results of an archive, with room for what is being written; None: a bitrate is not stated."""
    if not isinstance(work, Transcode) or work.duration is None:
        return None
    rates = [one.bitrate for one in (work.source, *work.outputs)]
    known = [rate for rate in rates if rate is not None]
    return 1.1 * work.duration * sum(known) if len(known) == len(rates) else None
