"""Streams on processors: one core does the operations of a message one after the other, other cores do other messages.

    message = sum over operations of (c + S / r)          cores = messages/s x message / 0.6
    latency = message at the size of a piece + the way through the host (`paths`)
r and c are bytes/s of one core and seconds of one call, from `data/perf/software.csv`: measured by us on one processor, which
other processors differ from by tens of percent. An operation that nobody measured has no figure, and none is guessed.
A stream without a message size is read in pieces of 16 KB, as TLS has its records.
Limits: no driver of a network card, no locks between cores, no waiting behind other messages: a core is 60% busy at most, a
rule of thumb for bursts and for what the kernel does besides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from chipwise.errors import BadInput
from chipwise.perf.arrays import column
from chipwise.perf.kernels import paths
from chipwise.perf.kernels.work import Terms
from chipwise.perf.tables import rows
from chipwise.workload.kinds import Stream

BUSY = 0.6
PIECE_BYTES = 16384.0
OTHER_PROCESSOR = 0.3  # relative deviation between processors; rule of thumb
_WAYS = ("encrypt", "decrypt", "check", "verify", "compute", "hash")  # words that name no operation


@dataclass(frozen=True, slots=True)
class CoreRate:
    """What one core does of one operation."""

    name: str
    bytes_per_s: float
    call_s: float
    spread: float
    basis: str
    date: str

    def seconds(self, size: float) -> float:
        return self.call_s + size / self.bytes_per_s


@cache
def measured() -> dict[str, CoreRate]:
    """By name and by other spellings, without signs."""
    found = {}
    for row in rows("software.csv"):
        rate = CoreRate(
            name=row["operation"],
            bytes_per_s=1e9 * float(row["gb_per_s"]),
            call_s=1e-9 * float(row["call_ns"]),
            spread=float(row["spread"]),
            basis=row["basis"],
            date=row["date"],
        )
        found.update({_key(name): rate for name in (row["operation"], *row["also"].split())})
    return found


def _key(name: str) -> str:
    return "".join(word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in _WAYS)


def find(name: str) -> CoreRate | None:
    return measured().get(_key(name))


def unknown(work: Stream) -> tuple[str, ...]:
    """Operations that no figure is known of."""
    return tuple(dict.fromkeys(name for name in work.operations if find(name) is None))


@dataclass(frozen=True, slots=True)
class SoftwareFlow:
    """Seconds of one core for a message, and seconds that one takes from the network to the network."""

    message: Terms
    latency: Terms
    operations: tuple[CoreRate, ...]


def flow(work: Stream) -> SoftwareFlow:
    if missing := unknown(work):
        names = f"{', '.join(missing)} {'was' if len(missing) == 1 else 'were'}"
        able = ", ".join(dict.fromkeys(rate.name for rate in measured().values()))
        raise BadInput(f"operations: {names} not measured on a processor.", remedy=f"These were: {able}. Or ask for an FPGA.")
    rates = [find(name) for name in work.operations]
    known = tuple(rate for rate in rates if rate is not None)
    size = work.message_size or PIECE_BYTES
    share = work.message_bytes / size  # of a piece that a message is
    spent: dict[str, tuple[float, float]] = {}
    for name, rate in zip(work.operations, known, strict=True):
        spent[name] = (spent.get(name, (0.0, 0.0))[0] + rate.seconds(size), rate.spread)
    return SoftwareFlow(
        Terms.of({name: (column(seconds * share), spread) for name, (seconds, spread) in spent.items()}, OTHER_PROCESSOR),
        Terms.of({**{name: (column(seconds), spread) for name, (seconds, spread) in spent.items()}, **paths.HOST}),
        known,
    )


def measured_part(work: Stream) -> tuple[tuple[str, ...], float]:
    """The operations that a figure is known of, and the cores that they need: what the others add is not known."""
    known = tuple(name for name in work.operations if find(name) is not None)
    if not known:
        return (), 0.0
    part = work.model_copy(update={"operations": known})
    return tuple(dict.fromkeys(known)), cores_needed(part, flow(part))


def cores_needed(work: Stream, flow: SoftwareFlow) -> float:
    return work.messages_per_s * float(flow.message.total[0]) / BUSY
