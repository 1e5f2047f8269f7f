"""All rules over one recording: contradictions resolved, the rest ranked by the money that is lost.

Of several causes of the same lost time (a device that waits cannot wait for data and for launches all the time) the likeliest
stays, and others stay as notes if they are nearly as likely. What is slower than predicted without a known cause is only said
where no other finding explains it.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import ModuleType

from chipwise.catalog.chip import Chip
from chipwise.observe import rules
from chipwise.observe.evidence import FEWEST_S, Evidence, gather
from chipwise.observe.finding import Finding, Severity
from chipwise.observe.judging import Explains
from chipwise.observe.sample import Recording

NEARLY = 0.75  # of the likeliest cause's confidence: still worth a note
LEAST = 0.3  # of confidence
EXPLAINED = 0.5  # of what is lost against the prediction, by other findings
_ORDER = {Severity.CRITICAL: 0, Severity.WARNING: 1, Severity.NOTE: 2}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    findings: tuple[Finding, ...]  # the most expensive first
    evidence: Evidence
    notes: tuple[str, ...]  # about the recording itself

    @property
    def first(self) -> Finding | None:
        return self.findings[0] if self.findings else None

    @property
    def is_enough(self) -> bool:
        """Whether there was anything to judge by."""
        return _is_enough(self.evidence)

    @property
    def is_healthy(self) -> bool:
        return all(finding.severity is Severity.NOTE for finding in self.findings)


@cache
def every_rule() -> Mapping[str, ModuleType]:
    """By the name that findings carry."""
    names = sorted(module.name for module in pkgutil.iter_modules(rules.__path__))
    return {name.replace("_", "-"): import_module(f"chipwise.observe.rules.{name}") for name in names}


def diagnose(recording: Recording, chips: Mapping[str, Chip] | None = None) -> Diagnosis:
    """`chips`: of the catalog, by name."""
    evidence = gather(recording, chips)
    findings = [finding for rule in every_rule().values() for finding in rule.examine(evidence)] if _is_enough(evidence) else []
    return Diagnosis(tuple(ranked(findings, evidence.usd_per_hour)), evidence, (*_notes(evidence), *evidence.notes))


def ranked(findings: Iterable[Finding], usd_per_hour: float | None = None) -> list[Finding]:
    groups: dict[Explains, list[Finding]] = {}
    for finding in findings:
        if finding.confidence >= LEAST:
            groups.setdefault(every_rule()[finding.rule].EXPLAINS, []).append(finding)
    resolved = [finding for group, members in groups.items() for finding in _resolved(group, members)]
    resolved = _without_what_is_explained(resolved)
    return sorted((_priced(finding, usd_per_hour) for finding in resolved), key=_rank)


def _rank(finding: Finding) -> tuple[int, float, float]:
    return _ORDER[finding.severity], -finding.lost_share * finding.confidence, -finding.confidence


def _resolved(group: Explains, members: Sequence[Finding]) -> list[Finding]:
    if group not in (Explains.WAITING, Explains.ARITHMETIC, Explains.CLOCK):
        return list(members)
    likeliest = max(members, key=lambda finding: (finding.confidence, finding.lost_share))
    alternatives = [
        replace(finding, severity=Severity.NOTE, lost_share=0.0)
        for finding in members
        if finding is not likeliest and finding.confidence >= NEARLY * likeliest.confidence
    ]
    return [likeliest, *alternatives]


def _without_what_is_explained(findings: Sequence[Finding]) -> list[Finding]:
    known = [finding for finding in findings if not _is_rest(finding) and finding.severity is not Severity.NOTE]
    explained = max((finding.lost_share for finding in known), default=0.0)
    return [finding for finding in findings if not _is_rest(finding) or explained < EXPLAINED * finding.lost_share]


def _is_rest(finding: Finding) -> bool:
    return every_rule()[finding.rule].EXPLAINS is Explains.REST


def _priced(finding: Finding, usd_per_hour: float | None) -> Finding:
    if usd_per_hour is None or finding.usd_lost_per_hour is not None:
        return finding
    return replace(finding, usd_lost_per_hour=usd_per_hour * finding.lost_share)


def _is_enough(evidence: Evidence) -> bool:
    return evidence.steady_s >= FEWEST_S and bool(evidence.devices or evidence.program.tracks or evidence.host.tracks)


def _notes(evidence: Evidence) -> list[str]:
    notes = []
    if not _is_enough(evidence):
        notes.append(f"The recording has {evidence.steady_s:.1f} s of steady work; {FEWEST_S:.0f} s is the least.")
    bare = [device for device in evidence.devices if not device.has_counters]
    if bare:
        reason = bare[0].why_missing("sm_active")
        words = "No counters of the multiprocessors"
        notes.append(f"{words} ({reason}): causes are judged by utilisation and power, with less confidence.")
    if _is_enough(evidence) and not evidence.program.tracks:
        notes.append("Nothing was sampled of the program itself: causes on the host are guessed from the whole machine.")
    return notes
