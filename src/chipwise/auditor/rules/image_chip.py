"""An image has code for one maker's chips: on another's it finds no device."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.hardware import architectures_for, chips_for
from chipwise.auditor.pods import Pod, chips_of, node_labels, pods_of, title_of
from chipwise.auditor.source import Instruction, Located, Sources, line_of

ABOUT = "images have code for the chips that they run on"
_MAKERS = {"nvidia.com/": "NVIDIA", "amd.com/gpu": "AMD", "aws.amazon.com/neuron": "Neuron", "google.com/tpu": "TPU"}
_SIGNS = (
    (re.compile(r"neuron"), "Neuron"),
    (re.compile(r"rocm"), "AMD"),
    (re.compile(r"(?:^|[-_/:])tpu(?:$|[-_/:])"), "TPU"),
    (re.compile(r"intel|gaudi|hpu|xpu|cpu"), "another"),
    (re.compile(r"cuda|[-_:]cu\d{2,3}(?:$|[-_.])|^nvcr\.io/|^vllm/vllm-openai[:@]|^vllm/vllm-openai$"), "NVIDIA"),
    (re.compile(r"huggingface/text-generation-inference[:@]"), "NVIDIA"),
)

_PACKAGES = (
    (re.compile(r"\b(?:torch-neuronx|neuronx-cc|neuronx-distributed\S*|libneuronxla)\b"), "Neuron"),
    (re.compile(r"\bjax\[tpu\]|\btorch[-_]xla\[tpu\]"), "TPU"),
    (re.compile(r"whl/rocm\d"), "AMD"),
    (re.compile(r"whl/cu\d"), "NVIDIA"),
)
_TEI = (("turing-", (7.5,)), ("86-", (8.6,)), ("89-", (8.9,)), ("hopper-", (9.0,)), ("1.", (8.0,)))
_NO_CHIPS = re.compile(r":[\w.-]*[-_.]cpu$|:cpu(?:$|[-_.])")
_BUILT = (
    (re.compile(r"(?:^|[-_.:])(?:arm64|aarch64|arm64v8)(?:$|[-_.:])"), "arm64"),
    (re.compile(r"(?:^|[-_.:])(?:amd64|x86_64|x86-64|x64)(?:$|[-_.:])"), "amd64"),
)


def check(sources: Sources) -> Iterator[Finding]:
    for file in sources.dockerfiles:
        yield from _built_on(file)
    for pod in pods_of(sources, partial=True):
        wanted = architectures_for(pod)
        for container in pod.mains:
            image = str(container.get("image") or "")
            made_for = next((maker for sign, maker in _SIGNS if sign.search(image.lower())), None)
            chips = {maker for name in chips_of(container) for sign, maker in _MAKERS.items() if name.startswith(sign)}
            if any(name.startswith("amd.com/") for name in node_labels(pod.spec)):
                chips = {"AMD"}  # where it runs says more than what it asks for
            if (finding := _of_one_architecture(pod, container, image)) is not None:
                yield finding
            built = _architecture(image)
            if built and wanted and built not in wanted:
                stated = ", ".join(sorted(wanted))
                yield Finding(
                    rule="image-chip",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(container, "image"),
                    what=f"{title_of(pod, container)}: {image} is built for {built}, and its machine is {stated}",
                    fix=f"Take the image that is built for {stated}.",
                )
            if chips and _NO_CHIPS.search(image.lower()):
                yield Finding(
                    rule="image-chip",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(container, "image"),
                    what=f"{title_of(pod, container)}: {image} is built for processors alone, and the pod has accelerators",
                    fix="Take the tag that its project builds for these chips.",
                )
            elif made_for and made_for != "another" and chips and made_for not in chips:
                stated = ", ".join(sorted(chips))
                yield Finding(
                    rule="image-chip",
                    weight=Weight.HIGH,
                    path=pod.owner.path,
                    line=line_of(container, "image"),
                    what=f"{title_of(pod, container)}: {image} is made for {made_for}, and the pod has {stated}",
                    fix="Take the image that its project builds for these chips.",
                )


def _of_one_architecture(pod: Pod, container: Located, image: str) -> Finding | None:
    """Tags of Text Embeddings Inference, each with code for one generation of NVIDIA's chips."""
    tag = image.rpartition(":")[2] if "text-embeddings-inference:" in image else ""
    wanted = next((capability for sign, capability in _TEI if tag.startswith(sign)), None)
    capabilities = {chip.compute_capability for chip in chips_for(pod) if chip.compute_capability} if wanted else set()
    if wanted is None or not capabilities or any(capability in wanted for capability in capabilities):
        return None
    chip = chips_for(pod)[0].name
    return Finding(
        rule="image-chip",
        weight=Weight.HIGH,
        path=pod.owner.path,
        line=line_of(container, "image"),
        what=f"{title_of(pod, container)}: {image} has code for another generation of chips than {chip}",
        fix="Take the tag of its generation: turing-, 86- (A10), 89- (L4, L40S), hopper-, or without a prefix for A100.",
    )


def _built_on(file: tuple[Instruction, ...]) -> Iterator[Finding]:
    """A base with the libraries of one maker under packages of another."""
    wanted = _maker(" ".join(one.rest for one in file if one.word == "RUN"))
    for base in (one for one in file if one.word == "FROM" and wanted):
        made_for = next((maker for sign, maker in _SIGNS if sign.search(base.rest.lower())), None)
        if made_for and made_for not in (wanted, "another"):
            yield Finding(
                rule="image-chip",
                weight=Weight.HIGH,
                path=base.path,
                line=base.line,
                what=f"{base.rest.split()[0]} is made for {made_for}, and packages for {wanted} are installed in it",
                fix=f"Begin with an image for {wanted}, or install what is built for {made_for}.",
                also=tuple((one.path, one.line) for one in file if one.word == "RUN" and _maker(one.rest) == wanted),
            )


def _maker(packages: str) -> str | None:
    return next((maker for sign, maker in _PACKAGES if sign.search(packages)), None)


def _architecture(image: str) -> str | None:
    """What its tag or its name says that it was built for."""
    name = image.rpartition("/")[2].lower()
    return next((kind for sign, kind in _BUILT if sign.search(name)), None)
