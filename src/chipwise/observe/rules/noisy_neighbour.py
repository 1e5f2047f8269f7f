"""Others use the same cores or the same device."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.observe.evidence import Evidence, ObservedDevice
from chipwise.observe.finding import Fact, Finding
from chipwise.observe.judging import Explains, Signs, fact, over_devices, severity
from chipwise.predictor.interval import Interval
from chipwise.text import percent

ABOUT = "Other programs use the same cores or the same device."
EXPLAINS = Explains.SHARING
STOLEN = 0.05  # of all cores
OTHERS_CORES = 0.35  # of all cores, by other programs
FULL_CPU, PRESSURE = 0.85, 0.15
WORKING, TAKEN_PER_S = 0.05, 5.0  # a program that does not want a core loses none
HOLDS_AND_WORKS = 0.65  # of processes that hold a device, the share that is taken to use it as much as this one
UNKNOWN_WAIT = 0.5  # of the time in which its busiest thread did not run, taken as waiting for a core where nobody measured it
UNSURE = 0.3  # of the lost share, above and below


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
        speedup=_alone(signs.lost_share),
        next_step="Find them (nvidia-smi, top), run alone, or take a slice (MIG), dedicated cores or another machine.",
        source=signs.source,
    )


def _alone(lost_share: float) -> Interval:
    """The speed-up without the others: all that they take comes back, as far as it was measured."""
    low, value, high = (1.0 / (1.0 - min(share * lost_share, 0.95)) for share in (1.0 - UNSURE, 1.0, 1.0 + UNSURE))
    return Interval(low=low, value=value, high=high)


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
    return Signs(HOLDS_AND_WORKS * (1 - ranks / holders) * (device.active or 0.0), 0.85 if certain else 0.6, facts)


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
    lost_share, measured = _waited(evidence, own)
    if measured is not None:
        facts.append(measured)
    return Signs(lost_share, 0.85, tuple(facts))


def _waited(evidence: Evidence, own: float) -> tuple[float, Fact | None]:
    """The share of its time in which it waited for a core, and what measured it. Threads that wait together lose time once: so
    many want a core at a time as run and wait on average, and one at least while it works at all."""
    waiting = evidence.program.mean("cpu_delayed")
    if waiting is None:
        running = min(evidence.program.mean("cpu_highest_thread") or own, 1.0)
        return UNKNOWN_WAIT * (1.0 - running), None
    share = min(waiting / max(own + waiting, 1.0), 1.0)
    return share, fact(evidence.program, "cpu_delayed", f"it waited for a core {percent(share)} of the time", waiting)
