"""Others use the same cores or the same device."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, removed, severity

ABOUT = "Other programs use the same cores or the same device."
EXPLAINS = Explains.SHARING
STOLEN = 0.05  # of all cores
OTHERS_CORES = 0.35  # of all cores, by other programs
FULL_CPU, PRESSURE = 0.85, 0.15
WORKING, TAKEN_PER_S = 0.05, 5.0  # a program that does not want a core loses none


def examine(evidence: Evidence) -> Iterator[Finding]:
    signs = over_devices(evidence, lambda device: _on_device(evidence, device)) or _stolen(evidence) or _on_cores(evidence)
    if signs is None:
        return
    yield Finding(
        rule="noisy-neighbour",
        severity=severity(signs.lost_share, signs.confidence),
        cause="Other programs use the same hardware.",
        evidence=signs.facts,
        span_s=evidence.window_s,
        confidence=signs.confidence,
        lost_share=signs.lost_share,
        speedup=removed(signs.lost_share, least_share=0.3),
        next_step="Find them (nvidia-smi, top), run alone, or take a slice (MIG), dedicated cores or another machine.",
        source=signs.source,
    )


def _on_device(evidence: Evidence, device: ObservedDevice) -> Signs | None:
    holders, own = device.percentile("processes", 0.5), evidence.program.percentile("processes", 0.5)
    if holders is None or holders < 2 or (device.active or 0.0) < 0.2:
        return None
    ranks = max(len(evidence.ranks), 1)
    if holders <= ranks:
        return None
    certain = own is not None and holders > own
    facts = (
        fact(device, "processes", f"{device.label}: {{}} processes hold its memory", holders),
        fact(device, "graphics_active" if device.has_counters else "busy", "it is in use {} of the time"),
    )
    return Signs((1 - ranks / holders) * (device.active or 0.0), 0.85 if certain else 0.6, facts)


def _stolen(evidence: Evidence) -> Signs | None:
    stolen = evidence.host.mean("cpu_stolen")
    if stolen is None or stolen < STOLEN:
        return None
    return Signs(stolen, 0.9, (fact(evidence.host, "cpu_stolen", "other virtual machines took {} of the cores"),))


def _on_cores(evidence: Evidence) -> Signs | None:
    host, cores, own = evidence.host.mean("cpu"), evidence.cores, evidence.program.mean("cpu")
    if host is None or not cores or own is None:
        return None
    other_share = host - own / cores
    taken_per_s = evidence.program.mean("switches_taken")
    contended = host >= FULL_CPU or evidence.host.or_zero("pressure_cpu") >= PRESSURE
    if other_share < OTHERS_CORES or not contended or own < WORKING or (taken_per_s is not None and taken_per_s < TAKEN_PER_S):
        return None
    facts = [
        fact(evidence.host, "cpu", f"other programs used {other_share * cores:.1f} of {cores:.0f} cores", other_share),
        fact(evidence.program, "cpu", f"this one {own:.1f}", own),
    ]
    if taken_per_s:
        facts.append(
            fact(evidence.program, "switches_taken", f"a core was taken from it {taken_per_s:.0f} times a second", taken_per_s)
        )
    return Signs(other_share, 0.85, tuple(facts))
