"""What lets an attempt in: a small ConfigMap for each job holds the newest attempt, and the newest that is over.

It is changed only as it was read (the server refuses a second writer), so that of two controllers one is told no. An order to
start that comes late, after the attempt was ended, cleared or followed by a newer one, finds the gate shut. The ConfigMap goes
a while after its job, when no such order can come any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from chipwise.errors import TryLater

from .connection import Connection, Exists
from .kinds import CONFIG_MAP, JOB_LABEL, Object
from .objects import RECORD
from .picture import Key

TRIES = 5
Change = Callable[["GateState"], "GateState | None"]


class Entry(Enum):
    FIRST = "nobody entered before"
    AGAIN = "it was let in before, and may have been started"
    SHUT = "it is over, or a newer one was let in"


def gate_name(job: str) -> str:
    return f"chipwise-{job}"


@dataclass(frozen=True, slots=True)
class GateState:
    newest: int = 0
    newest_over: int = 0


def stand(found: Object | None) -> GateState:
    return GateState(_number(found, "newest"), _number(found, "over"))


def changed_at(found: Object) -> float:
    return float(_number(found, "at"))


def _number(found: Object | None, key: str) -> int:
    text = str(((found or {}).get("data") or {}).get(key, ""))
    return int(text) if text.isascii() and text.isdigit() else 0


@dataclass(frozen=True, slots=True)
class Gate:
    connection: Connection
    record: str
    clock: Callable[[], float]

    def enter(self, key: Key) -> Entry:
        """Whether the attempt may start; no older one may afterwards."""
        job, number = key

        def wanted(now: GateState) -> GateState | None:
            return GateState(number, now.newest_over) if number > now.newest and number > now.newest_over else None

        now, changed = self._change(job, wanted, make=True)
        if now.newest != number or now.newest_over >= number:
            return Entry.SHUT
        return Entry.FIRST if changed else Entry.AGAIN

    def shut(self, key: Key, *, make: bool) -> None:
        """The attempt, and those before it, never start any more. `make`: also where nobody ever asked to start one."""
        job, number = key

        def wanted(now: GateState) -> GateState | None:
            return GateState(max(now.newest, number), number) if number > now.newest_over else None

        self._change(job, wanted, make=make)

    def remove(self, job: str) -> None:
        self.connection.delete(CONFIG_MAP, gate_name(job))

    def _change(self, job: str, wanted: Change, *, make: bool) -> tuple[GateState, bool]:
        """How it stands, and whether that was our doing. Made at once where that is likely; else changed as it was read."""
        first = wanted(GateState()) if make else None
        if first is not None:
            try:
                return stand(self.connection.create(CONFIG_MAP, self._written(job, first))), True
            except Exists:
                pass
        for _ in range(TRIES):
            config_map = self.connection.get(CONFIG_MAP, gate_name(job))
            now = stand(config_map)
            new = wanted(now)
            if new is None or (config_map is None and not make):
                return now, False
            try:
                if config_map is None:
                    return stand(self.connection.create(CONFIG_MAP, self._written(job, new))), True
                return stand(self.connection.replace(CONFIG_MAP, {**config_map, "data": self._data(new)})), True
            except Exists:
                continue
        raise TryLater(f"Another program keeps changing the gate of {job}.")

    def _data(self, now: GateState) -> dict[str, str]:
        return {"newest": str(now.newest), "over": str(now.newest_over), "at": str(int(self.clock()))}

    def _written(self, job: str, now: GateState) -> Object:
        labels = {JOB_LABEL: job, "app.kubernetes.io/managed-by": "chipwise", **({RECORD: self.record} if self.record else {})}
        meta = {"name": gate_name(job), "labels": labels}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": self._data(now)}
