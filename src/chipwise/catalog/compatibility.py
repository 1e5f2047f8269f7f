"""Which software runs on which chip: rules as data, and a refusal that says why and what would help.

`check(chip, {"cuda": "11.6"})` answers for an image or an environment. Rules are rows of `data/compatibility.csv`:
a component in a range of versions needs something of the chip (compute capability, vendor, kind, family, target, a stated
rate) or of another component (driver, cuda), sometimes only `given` a version of a third. What a component brings along
unless told otherwise (`default_cuda`, `default_version`) is judged with it. `firm` is how much a rule says: yes refuses,
no only warns that nobody states it runs, low refuses below the range and warns above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chipwise.catalog.chip import Chip, Precision
from chipwise.catalog.tables import read_rows
from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import fold, nearest

_ALIASES = {"torch": "pytorch", "trtllm": "tensorrtllm", "fa2": "flashattention", "flashattn": "flashattention"}
_ALIASES |= {"neuron": "neuronsdk", "neuronx": "neuronsdk", "nvidiadriver": "driver", "tf": "tensorflow"}


class CompatibilityAnswer(StrEnum):
    FINE = "fine"
    REFUSED = "refused"
    UNSTATED = "unstated"  # nobody we read says that it runs, nor that it does not


class CompatibilityRule(NamedTuple):
    """What a component in a range of versions needs of a chip or of another component."""

    component: str
    version_low: str
    version_high: str  # exclusive
    given: str  # a condition on another component: cuda>=12.8
    needs: str
    low: str
    high: str
    values: str
    firm: str
    reason: str
    sources: str


@dataclass(frozen=True, slots=True)
class Compatibility:
    component: str
    version: str
    answer: CompatibilityAnswer
    reason: str
    sources: tuple[str, ...] = ()


@lru_cache(maxsize=4)
def rules(data: Path) -> tuple[CompatibilityRule, ...]:
    return tuple(read_rows(data / "compatibility.csv", CompatibilityRule))


@lru_cache(maxsize=4)
def components(data: Path) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(rule.component for rule in rules(data)), "driver")))


@lru_cache(maxsize=4)
def _by_folded(data: Path) -> Mapping[str, str]:
    return {fold(component): component for component in components(data)}


@lru_cache(maxsize=256)
def _covering(component: str, version: str, data: Path) -> tuple[CompatibilityRule, ...]:
    """The rules that speak of a version: the same for every chip, and a plan asks for hundreds of chips."""
    return tuple(rule for rule in rules(data) if rule.component == component and _covers(rule, version))


def check(chip: Chip, wanted: Mapping[str, str], data: Path) -> tuple[Compatibility, ...]:
    """One finding per component that is wanted; refusals first. An empty version means the newest."""
    versions = {_component(name, data): version.strip().removeprefix("v").removeprefix("R") for name, version in wanted.items()}
    for rule in rules(data):
        if rule.needs == "default_version" and versions.get(rule.component) == "":
            versions[rule.component] = rule.low
    for name, version in versions.items():
        _version(version, name)
    findings = []
    for name, version in versions.items():
        # Each component is judged with the CUDA it brings along itself, unless one is asked for.
        brings = [rule for rule in _covering(name, version, data) if rule.needs == "default_cuda"]
        default = brings[0] if brings and "cuda" not in versions and chip.vendor == "NVIDIA" else None
        environment = versions if default is None else {**versions, "cuda": default.low}
        finding = _judge(name, version, chip, environment, data)[0]
        if default is not None and finding.answer is not CompatibilityAnswer.REFUSED:
            cuda = _judge("cuda", default.low, chip, environment, data)[0]
            if cuda.answer is CompatibilityAnswer.REFUSED:
                reason = f"{default.reason}. {cuda.reason} Another build may run."
                finding = replace(cuda, component=name, version=version, reason=reason)
        findings.append(finding)
    order = {CompatibilityAnswer.REFUSED: 0, CompatibilityAnswer.UNSTATED: 1, CompatibilityAnswer.FINE: 2}
    return tuple(sorted(findings, key=lambda finding: order[finding.answer]))


def _judge(name: str, version: str, chip: Chip, implied: Mapping[str, str], data: Path) -> list[Compatibility]:
    """What the rules say of one component, the worst first; without a word about this chip it is unstated."""
    covering = _covering(name, version, data)
    findings = [finding for rule in covering for finding in _apply(rule, version, chip, implied)]
    refused = [finding for finding in findings if finding.answer is CompatibilityAnswer.REFUSED]
    unstated = [finding for finding in findings if finding.answer is CompatibilityAnswer.UNSTATED]
    title = f"{name} {version}".strip()
    speaks = chip.vendor == "NVIDIA" and any(rule.needs == "compute_capability" for rule in covering)
    speaks = speaks or any(rule.needs in ("family", "target", "rate") for rule in covering) or name in ("neuron-sdk",)
    fine = Compatibility(name, version, CompatibilityAnswer.FINE, f"{title} on {chip.name}: what it needs is there.")
    silent = Compatibility(
        name,
        version,
        CompatibilityAnswer.UNSTATED,
        f"{title} on {chip.name}: nothing speaks against it, and no source we read states it.",
    )
    return [*refused, *unstated, fine if speaks else silent]


def _component(name: str, data: Path) -> str:
    known = _by_folded(data)
    folded = fold(name)
    folded = _ALIASES.get(folded, folded)
    if folded not in known:
        raise UnknownName(
            "runtime component", name, nearest(name, known.values()), remedy=f"Known: {', '.join(known.values())}."
        )
    return known[folded]


def _version(text: str, component: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split("+")[0].split(".")) if text else (10**6,)
    except ValueError:
        raise BadInput(f"{text!r} is not a version of {component}.", remedy="Write it like 11.6 or 2.8.0.") from None


def _at_least(version: tuple[int, ...], bound: str) -> bool:
    """13 is at least 13.0: what is left out counts as zero."""
    minimum = tuple(int(part) for part in bound.split("."))
    return version + (0,) * (len(minimum) - len(version)) >= minimum


def _covers(rule: CompatibilityRule, version: str) -> bool:
    number = _version(version, rule.component)
    return (not rule.version_low or _at_least(number, rule.version_low)) and not (
        rule.version_high and _at_least(number, rule.version_high)
    )


def _apply(rule: CompatibilityRule, version: str, chip: Chip, implied: Mapping[str, str]) -> list[Compatibility]:
    if rule.given:
        component, _, bound = rule.given.partition(">=")
        if component not in implied or not _at_least(_version(implied[component], component), bound):
            return []
    title = f"{rule.component} {version}".strip()

    def finding(answer: CompatibilityAnswer, about: str) -> list[Compatibility]:
        reason = f"{title} on {chip.name}: {rule.reason}; {about}."
        return [
            Compatibility(
                component=rule.component, version=version, answer=answer, reason=reason, sources=tuple(rule.sources.split("|"))
            )
        ]

    weak = CompatibilityAnswer.UNSTATED if rule.firm == "no" else CompatibilityAnswer.REFUSED
    match rule.needs:
        case "compute_capability":
            if chip.vendor != "NVIDIA":
                return []
            if chip.compute_capability is None:
                return finding(CompatibilityAnswer.UNSTATED, "its compute capability is not stated")
            about = f"{chip.name} ({chip.architecture}) has {chip.compute_capability}"
            if rule.low and chip.compute_capability < float(rule.low):
                return finding(weak, about)
            if rule.high and chip.compute_capability > float(rule.high):
                return finding(CompatibilityAnswer.UNSTATED if rule.firm == "low" else weak, about)
        case "not_compute_capability":
            if str(chip.compute_capability) in rule.values.split():
                return finding(weak, f"{chip.name} ({chip.architecture}) has {chip.compute_capability}")
        case "rate":
            if chip.vendor != "NVIDIA" and chip.rate(Precision(rule.values)) is None:
                return finding(weak, f"none is stated for {chip.name}")
        case "vendor" | "kind" | "family" | "target":
            value = str(getattr(chip, rule.needs) or "")
            applies = rule.needs != "target" or chip.vendor == "AMD"
            if applies and value not in rule.values.split():
                return finding(weak, f"{chip.name} is of {chip.vendor}, kind {chip.kind}")
        case "driver" | "cuda" if rule.needs in implied and rule.component != rule.needs:
            have = _version(implied[rule.needs], rule.needs)
            if rule.low and not _at_least(have, rule.low):
                return finding(weak, f"{rule.needs} is {implied[rule.needs]}")
            if rule.values and not any((*have, 0)[:2] == _version(value, rule.needs) for value in rule.values.split()):
                return finding(weak, f"{rule.needs} is {implied[rule.needs]}")
        case _:
            pass
    return []
