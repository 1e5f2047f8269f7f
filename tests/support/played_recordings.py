"""Recordings made from levels: what a machine would show, with start-up, noise and end, for causes that this one cannot have.

The figures of one H200 are measured ones (matrix products, copies, tiny kernels, PCIe transfers, waiting); those of several
devices, of heat and of links are made up after what the drivers document, and only test the rules' logic.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from chipwise.observe import metrics
from chipwise.observe.metrics import MetricKind
from chipwise.observe.readings import table_of
from chipwise.observe.sample import HOST, PROGRAM, Reading, Recording, Sample, SampledDevice

Levels = Mapping[str, float]

GPU: Levels = {
    "busy": 0.99,
    "memory_busy": 0.3,
    "graphics_active": 0.99,
    "sm_active": 0.96,
    "sm_occupancy": 0.2,
    "tensor_active": 0.6,
    "dram_active": 0.3,
    "fp16_active": 0.02,
    "fp32_active": 0.05,
    "fp64_active": 0.0,
    "pcie_received": 3e6,
    "pcie_sent": 5e6,
    "nvlink_received": 0.0,
    "nvlink_sent": 0.0,
    "memory_used": 60e9,
    "memory_total": 150e9,
    "power": 600.0,
    "power_limit": 700.0,
    "temperature": 55.0,
    "clock": 1900.0,
    "clock_max": 1980.0,
    "throttled_power": 0.0,
    "throttled_heat": 0.0,
    "throttled_hardware": 0.0,
    "pcie_generation": 5.0,
    "pcie_generation_max": 5.0,
    "pcie_width": 16.0,
    "pcie_width_max": 16.0,
    "processes": 1.0,
}
NO_WORK: Levels = {"busy": 0.0, "memory_busy": 0.0, "graphics_active": 0.0, "sm_active": 0.0, "tensor_active": 0.0} | {
    "dram_active": 0.0,
    "sm_occupancy": 0.0,
    "fp32_active": 0.0,
    "power": 80.0,
}
HOST_QUIET: Levels = {"cpu": 0.08, "cpu_highest_core": 0.9, "cpu_wait": 0.0, "cpu_stolen": 0.0, "cores": 16.0} | {
    "memory_used": 30e9,
    "memory_total": 200e9,
    "swapped": 0.0,
    "disk_read": 0.0,
    "network_received": 10e3,
    "network_sent": 10e3,
    "pressure_cpu": 0.0,
    "pressure_io": 0.0,
    "pressure_memory": 0.0,
    "major_faults": 0.0,
}
ONE_THREAD: Levels = {
    "cpu": 1.0,
    "cpu_highest_thread": 0.99,
    "io_read": 1e3,
    "disk_read": 0.0,
    "processes": 1.0,
    "threads": 80.0,
}
# As measured on one H200; where no figure was read, an ordinary one.
H200: Mapping[str, Levels] = {
    "matrix-products": {"tensor_active": 0.94, "dram_active": 0.16, "power": 692.0, "throttled_power": 1.0, "clock": 1500.0},
    "copies": {"sm_active": 1.0, "tensor_active": 0.0, "dram_active": 0.89, "memory_busy": 1.0, "power": 560.0},
    "tiny-kernels": {"busy": 0.23, "graphics_active": 0.24, "sm_active": 0.004, "tensor_active": 0.0, "dram_active": 0.003}
    | {"power": 140.0, "memory_busy": 0.0, "fp32_active": 0.0},
    "pcie": {"busy": 1.0, "graphics_active": 0.0, "sm_active": 0.0, "tensor_active": 0.0, "dram_active": 0.02}
    | {"pcie_received": 56e9, "power": 139.0, "memory_busy": 0.03, "fp32_active": 0.0},
    "waiting": {"busy": 0.01, "graphics_active": 0.06, "sm_active": 0.05, "tensor_active": 0.03, "dram_active": 0.01}
    | {"pcie_received": 150e6, "power": 125.0, "memory_busy": 0.0, "fp32_active": 0.0},
}


def played(
    devices: Mapping[str, Levels] | None = None,
    host: Levels | None = None,
    program: Levels | None = None,
    *,
    ranks: Mapping[str, Levels] | None = None,
    seconds: float = 12.0,
    every_s: float = 0.2,
    startup_s: float = 3.0,
    without_counters: bool = False,
    chip: str | None = "H200",
    predicted: Mapping[str, tuple[float, float, float]] | None = None,
    usd_per_hour: float | None = None,
    seed: int = 0,
) -> Recording:
    """`devices`: what differs from a well used one, by source. Counters are given as rates."""
    chance = random.Random(seed)
    sources: dict[str, Levels] = {name: {**GPU, **levels} for name, levels in (devices or {}).items()}
    if without_counters:
        left_out = {
            name for name in metrics.DEVICE if name.endswith("_active") or name.startswith(("sm_", "pcie_rec", "pcie_sent"))
        }
        sources = {
            name: {key: level for key, level in levels.items() if key not in left_out} for name, levels in sources.items()
        }
    sources[HOST] = {**HOST_QUIET, **(host or {})}
    if program is not None:
        sources[PROGRAM] = {**ONE_THREAD, **program}
    sources |= {name: {**ONE_THREAD, **levels} for name, levels in (ranks or {}).items()}
    samples: list[Sample] = []
    totals: dict[tuple[str, str], float] = {}
    for tick in range(int(seconds / every_s)):
        at_s = 100.0 + tick * every_s
        working = startup_s <= tick * every_s < seconds - 0.5
        samples += [
            Sample(at_s, name, _readings(name, levels, working, chance, totals, every_s)) for name, levels in sources.items()
        ]
    return Recording(
        started_at="2026-11-18T08:00:00Z",
        devices=tuple(SampledDevice(name, "NVIDIA H200", chip) for name in devices or {}),
        samples=samples,
        predicted=predicted or {},
        usd_per_hour=usd_per_hour,
    )


def _readings(
    source: str, levels: Levels, working: bool, chance: random.Random, totals: dict[tuple[str, str], float], every_s: float
) -> dict[str, Reading]:
    table = table_of(source)
    is_device = table is metrics.DEVICE
    readings: dict[str, Reading] = {}
    for name, level in levels.items():
        value = level if working or not is_device or name not in NO_WORK else NO_WORK[name]
        metric = table[name]
        if metric.kind is MetricKind.COUNTER:
            totals[source, name] = totals.get((source, name), 0.0) + value * every_s
            readings[name] = totals[source, name]
        elif metric.unit == "share" and 0.0 < value < 1.0:
            readings[name] = min(max(value * chance.gauss(1.0, 0.04), 0.0), 1.0)
        else:
            readings[name] = value
    return readings


def _single(levels: Levels) -> dict[str, Levels]:
    return {"nvidia:0": levels}


def _eight(all_of_them: Levels, number: int = 5, one: Levels | None = None) -> dict[str, Levels]:
    return {f"nvidia:{place}": {**all_of_them, **(one if one and place == number else {})} for place in range(8)}


STARVED = H200["waiting"]
MAKERS: Mapping[str, Callable[[int], Recording]] = {
    "throttled-heat": lambda size: played(
        _single(
            {"throttled_heat": 0.99, "temperature": 88.0 + size, "clock": (1500.0, 1200.0, 900.0)[size], "tensor_active": 0.9}
        ),
        program={},
    ),
    "throttled-power": lambda size: played(
        _single({"throttled_power": 1.0, "power_limit": (300.0, 400.0, 500.0)[size], "power": (298.0, 398.0, 498.0)[size]})
        | _single(
            {"tensor_active": 0.93, "clock": (800.0, 1100.0, 1300.0)[size], "throttled_power": 1.0}
            | {"power_limit": (300.0, 400.0, 500.0)[size]}
        ),
        program={},
    ),
    "throttled-clock": lambda size: played(
        _single({"clock": (600.0, 900.0, 1200.0)[size], "tensor_active": 0.9, "power": 300.0, "throttled_hardware": 0.0}),
        program={},
    ),
    "communication-bound": lambda size: played(
        _eight(
            {"sm_active": (0.2, 0.3, 0.4)[size], "tensor_active": 0.12, "dram_active": 0.2, "nvlink_sent": 150e9}
            | {"nvlink_received": 150e9, "power": 300.0, "fp32_active": 0.02}
        ),
        program={"cpu": 8.2, "processes": 9.0},
    ),
    "straggler": lambda size: played(
        _eight({"tensor_active": 0.5}, 5, {"clock": (1600.0, 1300.0, 900.0)[size]})
        if size < 2
        else _eight({"tensor_active": 0.35, "sm_active": 0.6}, 2, {"tensor_active": 0.7, "sm_active": 0.95}),
        program={"cpu": 8.2, "processes": 9.0},
    ),
    "slow-network": lambda size: played(
        _single(STARVED),
        host={"network_received": (60e6, 120e6, 900e6)[size], "network_sent": 2e6},
        program={"cpu": (0.3, 0.6, 2.0)[size], "cpu_highest_thread": 0.3, "processes": 9.0},
    ),
    "swap": lambda size: played(
        _single({"graphics_active": 0.9, "busy": 0.9}),
        host={"swapped": (5e6, 40e6, 200e6)[size], "pressure_memory": (0.12, 0.3, 0.6)[size], "memory_used": 190e9},
        program={},
    ),
    "wrong-numa": lambda size: played(
        _single({"pcie_received": (3e9, 6e9, 9e9)[size]}), program={"device_numa_distance": (20.0, 21.0, 32.0)[size]}
    ),
    "pcie-link": lambda size: played(
        _single(
            {"pcie_width": (8.0, 4.0, 16.0)[size], "pcie_generation": (5.0, 5.0, 3.0)[size], "pcie_received": 6e9}
            | ({"pcie_received": 12e9} if size == 0 else {})
        ),
        program={},
    ),
    "slower-than-predicted": lambda size: played(
        _single({}), program={"step": (5.0, 3.0, 1.0)[size]}, predicted={"step": (8.0, 10.0, 12.0)}
    ),
}
