"""Attention is split by heads: over a number of devices that does not divide them, an engine refuses to start."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.commands import PROCESSES, TENSOR, number_of, words_of_container
from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.models import known, model_of
from chipwise.auditor.pods import pods_of, title_of
from chipwise.auditor.source import Sources
from chipwise.workload.model.decoder import DecoderShape

ABOUT = "a model is split over a number of devices that divides its heads"


def check(sources: Sources) -> Iterator[Finding]:
    for pod in pods_of(sources, partial=True):
        for container in pod.mains:
            words = words_of_container(container)
            split, name = number_of(words, TENSOR), model_of(pod, container)
            ranks = number_of(words, PROCESSES)
            if split and ranks and split.value > 1 and ranks.value % split.value:
                yield Finding(
                    rule="uneven-split",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=split.line,
                    what=f"{title_of(pod, container)}: {ranks.value} ranks do not divide into groups of {split.value}",
                    fix="Split over a number that divides the ranks.",
                )
                continue
            model = known(name.text) if name and split else None
            heads = model.shape.attention.heads if model and isinstance(model.shape, DecoderShape) else 0
            if split and name and heads and heads % split.value:
                fitting = max(one for one in range(1, split.value + 1) if heads % one == 0)
                yield Finding(
                    rule="uneven-split",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=split.line,
                    what=f"{title_of(pod, container)}: {name.text} has {heads} heads, which {split.value} devices cannot share",
                    fix=f"Split it over {fitting} devices.",
                )
