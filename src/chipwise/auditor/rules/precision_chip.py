"""A chip without units for a number format runs it by way of another one, slower than without, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from chipwise.auditor.commands import Word, value_of, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import chips_for, chips_named
from chipwise.auditor.pods import pods_of, title_of
from chipwise.auditor.source import Sources
from chipwise.auditor.tasks import offered, tasks_of
from chipwise.catalog.chip import Chip, ChipKind, Precision

ABOUT = "chips have units for the number formats that a command names"
_WEIGHTS_ONLY = 8.0  # of NVIDIA: from here on, engines unpack weights of 8 bits as they go
_SERVED = ("--quantization", "-q", "--kv-cache-dtype", "--kv_cache_dtype", "--quantize")
_TRAINED = ("--fp8-format", "--fp8", "--fp8-recipe", "--mixed_precision", "--mixed-precision")
_ALONE = ("--fp8", "--fp8-hybrid", "--fp8-e4m3", "--bf16")
_BF16 = ("--dtype", "--torch_dtype", "--mixed_precision", "--mixed-precision", "--precision")


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        chips = chips_for(pod) if pod.chips else ()
        for container in pod.mains if chips else ():
            yield from _lacking(pod.owner.path, title_of(pod, container), words_of_container(container), chips)
    for task in tasks_of(sources):
        for machine, _ in offered(task):
            if machine.chip:
                yield from _lacking(task.path, "the task", task.words, chips_named(machine.chip))


def _lacking(path: str, title: str, words: Sequence[Word], chips: Sequence[Chip]) -> Iterator[Finding]:
    for wanted, place, trained in _formats(words):
        if chips and all(_lacks(chip, wanted) for chip in chips):
            name = chips[0].name
            unpacked = not trained and all((chip.compute_capability or 0) >= _WEIGHTS_ONLY for chip in chips)
            yield Finding(
                rule="precision-chip",
                weight=Weight.LOW if unpacked else Weight.HIGH,
                path=path,
                line=place.line,
                what=f"{title} holds weights in {wanted}, and {name} computes them in 16 bits: smaller, no faster"
                if unpacked
                else f"{title} computes in {wanted}, for which {name} has no units",
                fix=f"Take a chip with {wanted} units, or a format that {name} has"
                f" ({'fp16' if wanted is Precision.BF16 else 'bf16, or int8 or int4 weights'}).",
            )


def _formats(words: Sequence[Word]) -> Iterator[tuple[Precision, Word, bool]]:
    """What a command names, where it does, and whether it trains by it."""
    for flag in (*_SERVED, *_TRAINED):
        value = value_of(words, (flag,))
        text = value.text.lower() if value else ""
        if value and (text.startswith("fp8") or text in ("hybrid", "e4m3", "e5m2")):
            yield Precision.FP8, value, flag in _TRAINED
        elif value and text in ("nvfp4", "mxfp4", "modelopt_fp4"):
            yield Precision.FP4, value, flag in _TRAINED
    for word in words:
        if word.text in _ALONE:
            yield (Precision.BF16 if word.text == "--bf16" else Precision.FP8), word, True
    value = value_of(words, _BF16)
    if value and value.text.lower() in ("bf16", "bfloat16"):
        yield Precision.BF16, value, True


def _lacks(chip: Chip, wanted: Precision) -> bool:
    return chip.kind is ChipKind.GPU and bool(chip.rates) and chip.rate(wanted) is None
