"""A model whose weights, or the keys and values of one whole context, exceed its devices' memory ends while it loads.

The least that it needs is counted: weights at the stated precision and one sequence of the stated length. Engines want more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chipwise.auditor.commands import TENSOR, Number, Word, number_of, value_of, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import chips_for, chips_named, machines_for, machines_named
from chipwise.auditor.models import MODEL_FLAGS, known, model_of, model_of_task, weight_bytes
from chipwise.auditor.pods import Pod, chips_of, pods_of, title_of, variables
from chipwise.auditor.source import Located, Sources, mapped
from chipwise.auditor.started import containers_of, has_accelerators
from chipwise.auditor.tasks import Task, offered, tasks_of
from chipwise.auditor.workloads import group_of
from chipwise.text import gib
from chipwise.workload.model.decoder import DecoderShape
from chipwise.workload.model.layers import Attention
from chipwise.workload.model.registry import Model

_RULE = "model-memory"
_SERVING = ("serve", "vllm.entrypoints.openai.api_server", "sglang.launch_server", "text-generation-launcher")
ABOUT = "models fit into the memory of their devices"
_LENGTH = ("--max-model-len", "--max_model_len", "--context-length", "--max-total-tokens")
_SHARE = ("--gpu-memory-utilization", "--gpu_memory_utilization", "--mem-fraction-static")
_DEVICES = ("nvidia.com/gpu", "amd.com/gpu")
_DEFAULT_SHARE = 0.9
_MOST_SHARE = 0.98
_MIG = re.compile(r"nvidia\.com/mig-\d+g\.(\d+)gb\S*")
_FIX = "Take more or larger devices, weights in fewer bits, or a shorter context."


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        if pod.is_job or pod.owner.kind.startswith("Ray"):
            continue
        size = _device_bytes(pod)
        for container in pod.mains:
            yield from _greedy(pod.owner.path, title_of(pod, container), words_of_container(container))
            slices = [float(mig[1]) * 1e9 for name in chips_of(container) if (mig := _MIG.fullmatch(name))]
            if slices or size:
                yield from _fits(pod, container, min(slices) if slices else size)
    for task in tasks_of(sources):
        for machine, places in offered(task):
            yield from _task(machine, places)
        yield from _greedy(task.path, "the task", task.words)
    yield from _started(sources)
    for compose in sources.compose:
        for name, service in mapped(compose.body.get("services")).items():
            if isinstance(service, Located):
                yield from _greedy(compose.path, f"service {name}", words_of_container(service))


def _greedy(path: str, title: str, words: Sequence[Word]) -> Iterator[Finding]:
    share = value_of(words, _SHARE)
    if share and _number(share) > _MOST_SHARE:
        message = f"{title} takes {share.text} of the memory: nothing is left for peaks"
        yield Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=share.line, what=message, fix="Set 0.95 or less.")


def _started(sources: Sources) -> Iterator[Finding]:
    """Of containers that machines start by themselves."""
    for container in containers_of(sources):
        machines = machines_named(container.machine) if has_accelerators(container.machine) else ()
        room = max(((one.chips or 0) * (one.chip_memory_bytes or 0.0) for one in machines), default=0.0) * _DEFAULT_SHARE
        name = value_of(container.words, MODEL_FLAGS)
        weights = weight_bytes(container.words, name.text) if name and "$" not in name.text else 0.0
        if name and room and weights > room:
            place = f"a {container.machine} offers {room / 2**30:.0f}"
            message = f"{container.block.title}: weights of {name.text} take {gib(weights, 0)}, and {place}"
            yield Finding(rule=_RULE, weight=Weight.HIGH, path=container.block.path, line=name.line, what=message, fix=_FIX)


def _task(task: Task, places: tuple[tuple[str, int], ...] = ()) -> Iterator[Finding]:
    """Of a command that serves; a program that trains holds more, and splits it in ways that no flag tells. One whose weights
    alone are more than all devices together does neither."""
    sizes = [chip.memory_bytes or 0.0 for chip in chips_named(task.chip)] if task.chip else []
    name, split = model_of_task(task), number_of(task.words, TENSOR)
    if not name or not sizes or not all(sizes):
        return
    if not any(word.text in _SERVING for word in task.words) and not places:
        return
    usable = max(sizes) * task.devices * task.nodes * _DEFAULT_SHARE
    weights = weight_bytes(task.words, name.text)
    if weights > usable and (not split or split.value <= task.devices or weights > max(sizes) * split.value):
        message = f"the task: weights of {name.text} take {gib(weights, 0)}, and its devices offer {usable / 2**30:.0f}"
        if places:
            message += f" where it gets {task.devices} x {task.chip}"
        yield Finding(rule=_RULE, weight=Weight.HIGH, path=task.path, line=name.line, what=message, fix=_FIX, also=places)


def _fits(pod: Pod, container: Located, size: float) -> Iterator[Finding]:
    words = words_of_container(container)
    flag, room = model_of(pod, container), size * _devices(pod, container)
    split = number_of(words, TENSOR)
    if not flag or not room or (split and split.value > _devices(pod, container)):
        return  # that it has too few devices is said by another rule
    name = flag.text.strip("/")
    model = known(name)
    share = value_of(words, _SHARE)
    usable = room * (_number(share) or _DEFAULT_SHARE)
    weights = weight_bytes(words, name)
    if weights > usable:
        message = f"{title_of(pod, container)}: weights of {name} take {gib(weights, 0)}"
        yield _finding(pod, flag.line, f"{message}, and its devices offer {usable / 2**30:.0f}")
        return
    length = number_of(words, _LENGTH)
    if length and model and model.context and length.value > model.context and not _stretched(pod, words):
        message = (
            f"{title_of(pod, container)}: {name} knows contexts of {model.context:,} tokens, and {length.value:,} are asked for"
        )
        yield _finding(pod, length.line, message)
        return
    token_bytes = _kv_bytes(model)
    if length and token_bytes and weights + length.value * token_bytes > usable:
        yield _too_long(pod, container, length, token_bytes, usable - weights)


def _stretched(pod: Pod, words: list[Word]) -> bool:
    """Whether somebody says that the model may go beyond what it was trained on."""
    text = " ".join(word.text for word in words).lower()
    allowed = any(name == "VLLM_ALLOW_LONG_MAX_MODEL_LEN" for one in pod.mains for name, _, _ in variables(one))
    return allowed or any(sign in text for sign in ("rope", "yarn", "hf-overrides", "hf_overrides"))


def _too_long(pod: Pod, container: Located, length: Number, token_bytes: float, left: float) -> Finding:
    fits = int(left / token_bytes) // 1024 * 1024
    message = f"{title_of(pod, container)}: a context of {length.value:,} tokens takes {gib(length.value * token_bytes, 0)}"
    return _finding(pod, length.line, f"{message}, and {left / 2**30:.0f} are left beside the weights (about {fits:,} tokens)")


def _device_bytes(pod: Pod) -> float:
    """Memory of the largest device that its labels leave open; 0 where they are not known."""
    sizes = [one.chip_memory_bytes or 0.0 for one in machines_for(pod)] or [one.memory_bytes or 0.0 for one in chips_for(pod)]
    return max(sizes, default=0.0) if all(sizes) else 0.0


def _devices(pod: Pod, container: Located) -> int:
    group = group_of(pod.owner) if pod.owner.kind == "LeaderWorkerSet" else None
    return sum(count for name, count in chips_of(container).items() if name in _DEVICES or _MIG.fullmatch(name)) * (
        group.size if group else 1
    )


def _kv_bytes(model: Model | None) -> float:
    """Of one token in 16 bits; 0 where the shape is another than keys and values of heads in every layer."""
    shape = model.shape if model else None
    if not isinstance(shape, DecoderShape) or not isinstance(shape.attention, Attention) or shape.window:
        return 0.0
    return 2.0 * shape.layers * shape.attention.kv_heads * shape.attention.head_dim * 2.0


def _number(word: Word | None) -> float:
    try:
        return float(word.text) if word else 0.0
    except ValueError:
        return 0.0


def _finding(pod: Pod, line: int, message: str, fix: str = _FIX) -> Finding:
    return Finding(rule=_RULE, weight=Weight.HIGH, path=pod.owner.path, line=line, what=message, fix=fix)
