"""All signs of a device become one verdict, and those of programs are told apart from those of devices.

Codes such as XID 13, 31 and 43 are mostly a program's own fault, and say nothing about the device, unless several programs fail
so on the same device while its neighbours stay quiet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from chipwise.observe.health.kernel_log import Log
from chipwise.observe.health.sensors import signs as sensed
from chipwise.observe.health.verdict import Blame, Condition, Sign, Verdict, rank, worst
from chipwise.observe.sample import Recording, SampledDevice

PROGRAMS = 3  # that fail on one device alone
AGAIN = {79: 2, 48: 3, 64: 1, 110: 2}  # XID: from how many times on a reset has not helped


def verdicts(recording: Recording | None = None, log: Log | None = None) -> tuple[Verdict, ...]:
    """The sickest first."""
    gathered: dict[str, list[Sign]] = {}
    names: dict[str, str] = {}
    if recording is not None:
        gathered = {device: list(signs) for device, signs in sensed(recording).items()}
        names = {device.source: device.name for device in recording.devices}
    if log is not None:
        known = _known(recording.devices if recording else (), log)
        for event in log.events:
            gathered.setdefault(known.get(event.device, event.device), []).append(event.sign)
    judged = [judge(device, signs, gathered, names.get(device, "")) for device, signs in gathered.items()]
    return tuple(sorted(judged, key=lambda verdict: (-rank(verdict.state), verdict.device)))


def judge(
    device: str, signs: Sequence[Sign], every_sign: Mapping[str, Sequence[Sign]] | None = None, name: str = ""
) -> Verdict:
    """`every_sign`: those of all devices, to see whether programs fail on this one alone."""
    joined = _joined([*signs, *_repeated(signs), *_alone(device, signs, every_sign or {})])
    state = worst(*(sign.state for sign in joined)) if joined else Condition.FINE
    decisive = [sign for sign in joined if sign.state is state]
    if not joined:
        reason = "nothing is wrong"
    elif state is Condition.FINE and any(sign.blame is Blame.PROGRAM for sign in joined):
        own = next(sign for sign in joined if sign.blame is Blame.PROGRAM)
        reason = f"the device is well; a program failed: {own.reason}"
    else:
        reason = "; ".join(f"{sign.reason}{f' ({sign.count} times)' if sign.count > 1 else ''}" for sign in decisive[:3])
    return Verdict(device=device, state=state, reason=reason, signs=tuple(joined), name=name)


def _known(devices: Iterable[SampledDevice], log: Log) -> dict[str, str]:
    """Names of the log to names of the recording, by the UUIDs that both carry."""
    by_identity = {device.identity: device.source for device in devices if device.identity}
    return {logged: by_identity[identity] for logged, identity in log.identities if identity in by_identity}


def _joined(signs: Iterable[Sign]) -> list[Sign]:
    """The same sign several times is one with a count; the worst first."""
    counted: dict[tuple[Condition, str], Sign] = {}
    for sign in signs:
        key = (sign.state, sign.reason)
        counted[key] = replace(counted[key], count=counted[key].count + sign.count) if key in counted else sign
    return sorted(counted.values(), key=lambda sign: -rank(sign.state))


def _repeated(signs: Sequence[Sign]) -> list[Sign]:
    repeated = []
    for number, times in AGAIN.items():
        count = sum(sign.count for sign in signs if sign.code == number)
        if count >= times:
            words = (
                f"XID {number} came {count} times" if count > 1 else f"XID {number}: a worn row of memory cannot be replaced"
            )
            repeated.append(Sign(Condition.REPLACE, words, Blame.DEVICE, code=number))
    return repeated


def _alone(device: str, signs: Sequence[Sign], every_sign: Mapping[str, Sequence[Sign]]) -> list[Sign]:
    """Several programs that fail here, and none on the neighbours; a log does not name devices to which nothing happened."""
    pids = {sign.pid for sign in signs if sign.blame is Blame.PROGRAM and sign.code != 45 and sign.pid is not None}
    neighbours = [other for name, other in every_sign.items() if name != device]
    quiet = not any(sign.blame is Blame.PROGRAM and sign.code != 45 for other in neighbours for sign in other)
    if len(pids) < PROGRAMS or not quiet:
        return []
    others = "none on its neighbours" if neighbours else "no other device reports anything"
    return [Sign(Condition.WATCH, f"{len(pids)} programs failed on this device, and {others}", Blame.EITHER)]
