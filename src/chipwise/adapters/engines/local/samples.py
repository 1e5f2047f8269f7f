"""What a job's devices, host and program do while it runs: sampled by its supervisor, recorded in the folder of the attempt.

$CHIPWISE_WATCH_S: seconds between two samples (1 where it is not set); 0 switches it off. No job fails for it: where nothing
can be sampled or written, the supervisor says so in its own log. What samples is imported once the program runs: it does not
wait for that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import descendants, folder

if TYPE_CHECKING:
    from chipwise.adapters.sampling import ProbeGroup, Receiver, Sampler
    from chipwise.observe.sample import Recording
    from chipwise.observe.summary import Summary

EVERY_S = 1.0
SETTING = "CHIPWISE_WATCH_S"


class Samples:
    def __init__(self, path: Path, order: Mapping[str, Any]) -> None:
        self._at, self._order = path, order
        self._sampler: Sampler | None = None
        self._summary: Summary | None = None

    def begin(self, pids: Sequence[int]) -> None:
        """Of these processes and all below them."""
        every_s = _every_s()
        if every_s > 0 and "watch" in self._order:
            from chipwise.adapters.sampling import Sampler

            self._sampler = Sampler(lambda: self._prepared(pids), every_s)
            self._sampler.begin()

    def _prepared(self, pids: Sequence[int]) -> tuple[ProbeGroup, Sequence[Receiver]]:
        from chipwise.adapters.conditions import of_program
        from chipwise.adapters.probes import host, program
        from chipwise.adapters.recordings import NAME, Appender
        from chipwise.adapters.sampling import ProbeGroup, Silent, device_probes
        from chipwise.observe.summary import Summary

        gpus = [number for number in self._order.get("gpus", ()) if isinstance(number, int)]
        probes, failures = device_probes(gpus, for_long=True)
        if gpus and not probes:
            probes = [Silent(gpus, str(failures[0]) if failures else "no driver reads it")]
        nodes = [device.numa_node for probe in probes for device in probe.devices() if device.numa_node is not None]
        progress = folder.of_program(self._at) / folder.PROGRESS
        group = ProbeGroup([*probes, host.connect(), program.connect(lambda: _tree(pids), progress, nodes)])
        header = self._header(group)
        conditions = of_program(self._order.get("command") or (), str(self._order.get("folder") or ""))
        summary = self._summary = Summary(header.devices, header.usd_per_hour, header.kg_per_kwh, conditions)
        return group, [Appender(self._at / NAME, header, mode=folder.file_mode(self._at)).add, summary.add_all]

    def _header(self, group: ProbeGroup) -> Recording:
        from chipwise.observe.sample import Recording

        watch = self._order.get("watch") or {}
        return Recording(
            started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            devices=group.devices(),
            labels={name: text for name, text in (watch.get("labels") or {}).items() if isinstance(text, str) and text},
            predicted=intervals(watch.get("predicted") or {}),
            usd_per_hour=watch.get("usd_per_hour"),
            kg_per_kwh=watch.get("kg_per_kwh"),
        )

    def end(self) -> None:
        """Takes the last sample, and leaves the summary where the engine finds it."""
        if self._sampler is None or self._summary is None:
            return
        self._sampler.end()
        try:
            folder.write(self._at, folder.WATCHED, self._summary.value())
        except (OSError, ValueError) as error:
            print(f"The summary of the samples was not written: {error}", file=sys.stderr, flush=True)


def _tree(pids: Sequence[int]) -> list[int]:
    return [pid for root in pids for pid in (root, *descendants.below(root))]


def intervals(predicted: Mapping[str, Any]) -> dict[str, tuple[float, float, float]]:
    """What was predicted of a job, as low, value and high: {"steps_per_s": 2, "steps_per_s_low": 1.5, ...}."""
    values: dict[str, tuple[float, float, float]] = {}
    for name, value in predicted.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and not name.endswith(("_low", "_high")):
            low, high = predicted.get(f"{name}_low"), predicted.get(f"{name}_high")
            ends = [float(end) if isinstance(end, int | float) else float(value) for end in (low, high)]
            values[name] = (ends[0], float(value), ends[1])
    return values


def _every_s() -> float:
    try:
        return float(os.environ.get(SETTING) or EVERY_S)
    except ValueError:
        return EVERY_S
