"""Files with planted faults (`benchmarks/audit_corpus`), and what the audit finds of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from chipwise.api.audit import audit
from chipwise.auditor.finding import Finding

CORPUS = Path(__file__).resolve().parents[2] / "benchmarks" / "audit_corpus"
PARTS = ("open", "aside", "later", "last", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
NEAR = 6  # lines: what is missing has no line of its own
BUILT_PARTS = ("second", "fourth")  # with overlays, whose faults are there only when they are built
_NO_TOOL = ("templates not rendered: helm is not installed", "patches not applied: neither")  # true, and of this machine
_MARK = re.compile(r"[ \t]*#! (.*)$", re.MULTILINE)

# Marks of parts that were written before anybody looked at the rules, and the rules that say the same.
UNCOVERED = {"queue-name", "cold-start"}  # planted faults that no rule names: they count as missed
SAME = {
    "image-latest": ("unpinned-image",),
    "plain-secret": ("open-secrets",),
    "tp-above-devices": ("too-few-devices",),
    "world-size": ("group-size", "too-few-devices"),
    "shm-missing": ("shared-memory",),
    "spot-no-checkpoint": ("spot-without-checkpoint",),
    "ephemeral-checkpoint": ("spot-without-checkpoint",),
    "rwo-many-pods": ("shared-volume",),
    "root": ("root-container",),
    "privileged": ("root-container", "host-access"),
    "host-path": ("host-access",),
    "probe-before-load": ("short-startup",),
    "no-probes": ("missing-probes",),
    "no-limits": ("missing-limits",),
    "hpa-on-cpu": ("autoscaling-signal",),
    "image-against-chip": ("image-chip",),
    "arch-against-chip": ("image-chip", "machine-chip"),
    "unpinned-ami": ("unpinned-image",),
    "disk-too-small": ("small-disk",),
    "no-tolerations": ("accelerator-taints",),
    "no-node-limits": ("unbounded-machines",),
    "expiry": ("node-expiry",),
    "pdb-blocks-drain": ("disruption-budget",),
    "grace": ("short-grace",),
    "quota-too-small": ("quota",),
    "gpu-request-without-limit": ("device-limits",),
    "gpu-resource-name": ("device-limits",),
    "no-retry": ("job-policy",),
    "tpu-topology": ("group-size",),
    "rendezvous-localhost": ("rendezvous",),
    "rendezvous-service": ("rendezvous",),
    "hostnetwork-dns": ("rendezvous",),
    "nccl-env": ("collective-settings",),
    "efa-missing": ("fast-network",),
    "efa-unsupported": ("fast-network",),
    "fp8-on-ampere": ("precision-chip",),
    "model-above-memory": ("model-memory",),
    "context-above-memory": ("model-memory",),
    "machine-accelerator": ("machine-chip",),
    "ami-without-driver": ("machine-driver",),
    "gpu-on-fargate": ("no-accelerators",),
    "gang-above-pods": ("group-size",),
    "wrong-port": ("port-mismatch",),
    "memory-share": ("model-memory",),
    "every-gpu": ("host-access",),
    "bf16-on-turing": ("precision-chip",),
    "machine-too-small": ("machine-size",),
    "uneven": ("uneven-split",),
    "no-group-restart": ("group-restart",),
    "selector": ("selector-mismatch",),
    "restart-policy": ("job-policy",),
    "no-taint": ("accelerator-taints",),
    "consolidation": ("node-expiry",),
    "bounds": ("machine-bounds", "autoscaling-bounds"),
    "no-gpu": ("no-accelerators",),
    "floating-tag": ("unpinned-image",),
    "bf16-on-volta": ("precision-chip",),
    "not-indexed": ("job-policy",),
    "deadline": ("short-startup",),
    "fractional-gpu": ("device-limits",),
    "public-endpoint": ("open-network",),
    "ray-gpus": ("too-few-devices",),
    "queue-missing": ("quota",),
    "idle-cluster": ("idle-accelerators",),
    "launchers-per-node": ("too-few-devices",),
    "ordered-start": ("rendezvous",),
    "launchers-per-worker": ("too-few-devices", "group-size"),
    "mixed-chips": ("machine-chip",),
    "group-zones": ("fast-network",),
    "host-memory": ("model-memory", "machine-size"),
    "listens-on-localhost": ("port-mismatch",),
    "amd-groups": ("device-rights",),
    "missing-env": ("missing-object",),
    "overlapping-runs": ("job-policy",),
    "public-bucket": ("open-network",),
    "anyone-assumes": ("broad-rights",),
    "spot-restart": ("machine-scheduling",),
    "live-migration": ("machine-scheduling",),
    "pipe-to-shell": ("image-build",),
    "weights-in-image": ("image-build",),
    "world-writable": ("image-build",),
    "unpinned-clone": ("image-build",),
    "device-count": ("group-size",),
    "no-tls": ("open-network",),
    "pdb-missing": ("disruption-budget",),
    "two-autoscalers": ("autoscaling-target",),
    "ephemeral-output": ("spot-without-checkpoint",),
    "version-skew": ("unpinned-image", "ray-version"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    path: str
    line: int
    rule: str
    within: tuple[int, int]  # the lines where a finding of it may stand


@dataclass(frozen=True, slots=True)
class Case:
    files: tuple[tuple[str, str], ...]  # path and text, without marks
    faults: tuple[Fault, ...]


def cases(part: str) -> Iterator[Case]:
    for folder in sorted(path for path in (CORPUS / part).iterdir() if path.is_dir()):
        files, faults = list[tuple[str, str]](), list[Fault]()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            name, text = path.relative_to(folder.parent).as_posix(), path.read_text()
            files.append((name, _MARK.sub("", text)))
            faults += _faults(name, text.splitlines())
        yield Case(tuple(files), tuple(faults))


def _faults(name: str, lines: Sequence[str]) -> Iterator[Fault]:
    """A mark that ends in an asterisk is of something missing: its finding may stand anywhere in its document."""
    ends = [0, *(at for at, line in enumerate(lines, start=1) if line == "---"), len(lines) + 1]
    for number, line in enumerate(lines, start=1):
        if mark := _MARK.search(line):
            for rule in mark[1].split(","):
                within = (number - NEAR, number + NEAR)
                if rule.endswith("*"):
                    within = max(end for end in ends if end < number), min(end for end in ends if end > number)
                yield Fault(name, number, rule.strip(" *"), within)


@dataclass(frozen=True, slots=True)
class Score:
    faults: int
    missed: tuple[Fault, ...]
    findings: int
    false: tuple[Finding, ...]

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / self.faults

    @property
    def false_alarms(self) -> float:
        return len(self.false) / max(1, self.findings)


def score(part: str) -> Score:
    faults, findings, missed, false = 0, 0, list[Fault](), list[Finding]()
    for case in cases(part):
        found = findings_of(case)
        faults, findings = faults + len(case.faults), findings + len(found)
        missed += _missed(case.faults, found)
        false += [finding for finding in found if not any(near(fault, finding) for fault in case.faults)]
    return Score(faults, tuple(missed), findings, tuple(false))


def findings_of(case: Case) -> tuple[Finding, ...]:
    """As a user gets them: what tools build is built, where they are installed."""
    with TemporaryDirectory() as folder:
        for name, text in case.files:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tuple(finding for finding in audit(folder).findings if not finding.what.startswith(_NO_TOOL))


def _missed(faults: Sequence[Fault], findings: Sequence[Finding]) -> Iterator[Fault]:
    """Each fault takes the nearest finding that no other has taken."""
    left = list(findings)
    for fault in faults:
        close = [finding for finding in left if near(fault, finding)]
        if close:
            left.remove(min(close, key=lambda finding: abs(finding.line - fault.line)))
        else:
            yield fault


def near(fault: Fault, finding: Finding) -> bool:
    first, last = fault.within
    of_rule = finding.rule in SAME.get(fault.rule, (fault.rule,))
    places = [(finding.path, finding.line), *finding.also]
    return of_rule and any(path == fault.path and first <= line <= last for path, line in places)
