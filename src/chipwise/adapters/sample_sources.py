"""Where samples come from: this machine and a process, sampled here and now, or a recording that somebody else writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chipwise.errors import BadInput
from chipwise.observe.sample import Recording, Sample

if TYPE_CHECKING:
    from chipwise.adapters.sampling import ProbeGroup

LOOKS_S = 1.0  # whether what is followed is over


class SampleSource(Protocol):
    """Where samples come from."""

    header: Recording
    notes: Sequence[str]  # for people: what cannot be read, and why

    def look(self) -> tuple[list[Sample], bool]:
        """What came since the last look, and whether all came once more."""
        ...

    def is_over(self) -> bool: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class Live:
    """Sampled here and now."""

    group: ProbeGroup
    header: Recording
    notes: Sequence[str]
    lives: Callable[[], bool]

    def look(self) -> tuple[list[Sample], bool]:
        return self.group.read(), False

    def is_over(self) -> bool:
        return not self.lives()

    def close(self) -> None:
        self.group.close()


def live(
    pid: int | None, scrape: Sequence[str], labels: Mapping[str, str], pids: Callable[[], list[int]] | None = None
) -> Live:
    from chipwise.adapters.engines.local import descendants
    from chipwise.adapters.probes import host, program, prometheus
    from chipwise.adapters.sampling import ProbeGroup, device_probes

    if pid is not None:
        program.check(pid)
        root = pid

        def pids_of() -> list[int]:
            return [root, *descendants.below(root)]

        pids = pids_of
    endpoints = [prometheus.connect(url) for url in scrape]
    probes, failures = device_probes(None)
    devices = [device for probe in probes for device in probe.devices()]
    nodes = [device.numa_node for device in devices if device.numa_node is not None]
    programs = [program.connect(pids, device_nodes=nodes)] if pids is not None else []
    group = ProbeGroup([*probes, *endpoints, host.connect(), *programs])
    notes = [] if probes or endpoints else [f"No accelerator is read: {failures[0]}" if failures else "No accelerator is read."]
    header = Recording(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), devices=group.devices(), labels=dict(labels))
    return Live(group, header, notes, lives=lambda: pid is None or Path(f"/proc/{pid}").exists())


@dataclass(slots=True)
class Followed:
    """A job's recording, which its supervisor writes."""

    header: Recording
    notes: Sequence[str]
    _look: Callable[[], tuple[list[Sample], bool]]
    _phase: Callable[[], bool]
    _looked_at_s: float = 0.0
    _is_over_now: bool = False

    def look(self) -> tuple[list[Sample], bool]:
        return self._look()

    def is_over(self) -> bool:
        if not self._is_over_now and time.monotonic() - self._looked_at_s > LOOKS_S:
            self._looked_at_s, self._is_over_now = time.monotonic(), self._phase()
        return self._is_over_now

    def close(self) -> None: ...


def recorder_to(path: Path, header: Recording) -> Callable[[Sequence[Sample]], None]:
    from chipwise.adapters.recordings import Appender

    try:
        return Appender(path, header, mode=0o644).add
    except FileExistsError:
        raise BadInput(f"{path} is there already.", remedy="Name another file, or remove it first.") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}.", remedy="Name another file.") from error
