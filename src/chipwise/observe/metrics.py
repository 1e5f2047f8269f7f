"""What can be sampled: every quantity has one name, one unit and one meaning, whichever probe measured it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class MetricKind(StrEnum):
    LEVEL = "level"  # how much now
    COUNTER = "counter"  # how much since some start; only ever grows


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str
    meaning: str
    kind: MetricKind = MetricKind.LEVEL


def _table(*metrics: Metric) -> MappingProxyType[str, Metric]:
    return MappingProxyType({metric.name: metric for metric in metrics})


SHARE, BYTES, PER_S, SECONDS, COUNT = "share", "bytes", "bytes/s", "s", "count"

DEVICE = _table(
    Metric("busy", SHARE, "of the time in which any kernel or copy ran: what nvidia-smi calls utilisation"),
    Metric("memory_busy", SHARE, "of the time in which device memory was read or written, as the driver reports it"),
    Metric("graphics_active", SHARE, "of the time in which the compute engine had work"),
    Metric("sm_active", SHARE, "of the multiprocessors that had at least one warp"),
    Metric("sm_occupancy", SHARE, "of the warps that could have been resident"),
    Metric("tensor_active", SHARE, "of the time in which matrix units worked"),
    Metric("dram_active", SHARE, "of the device memory's bandwidth"),
    Metric("fp16_active", SHARE, "of the time in which 16-bit arithmetic worked"),
    Metric("fp32_active", SHARE, "of the time in which 32-bit arithmetic worked"),
    Metric("fp64_active", SHARE, "of the time in which 64-bit arithmetic worked"),
    Metric("pcie_received", PER_S, "from the host to the device"),
    Metric("pcie_sent", PER_S, "from the device to the host"),
    Metric("nvlink_received", PER_S, "from other devices"),
    Metric("nvlink_sent", PER_S, "to other devices"),
    Metric("memory_used", BYTES, "of the device"),
    Metric("memory_total", BYTES, "of the device"),
    Metric("power", "W", "drawn now"),
    Metric("power_limit", "W", "enforced"),
    Metric("energy", "J", "drawn", MetricKind.COUNTER),
    Metric("temperature", "C", "of the chip"),
    Metric("memory_temperature", "C", "of its memory"),
    Metric("clock", "MHz", "of the multiprocessors"),
    Metric("clock_max", "MHz", "the highest that the device has"),
    Metric("throttled_power", "share", "1 while the clock is lowered to keep the power limit"),
    Metric("throttled_heat", "share", "1 while the clock is lowered to keep cool"),
    Metric("throttled_hardware", "share", "1 while an external brake or a power supply lowers the clock"),
    Metric("pcie_generation", COUNT, "of the link now"),
    Metric("pcie_generation_max", COUNT, "of the link, by device and slot"),
    Metric("pcie_width", COUNT, "lanes now"),
    Metric("pcie_width_max", COUNT, "lanes, by device and slot"),
    Metric("ecc_corrected", COUNT, "memory errors that were corrected", MetricKind.COUNTER),
    Metric("ecc_uncorrected", COUNT, "memory errors that were not", MetricKind.COUNTER),
    Metric("remapped_rows", COUNT, "rows of memory that spare ones replace"),
    Metric("remap_pending", COUNT, "1: a reset is needed before a row is replaced"),
    Metric("remap_failed", COUNT, "1: no spare row is left"),
    Metric("pcie_replays", COUNT, "packets sent again over PCIe", MetricKind.COUNTER),
    Metric("nvlink_errors", COUNT, "errors of links between devices", MetricKind.COUNTER),
    Metric("xid", COUNT, "the last error code that the driver wrote; 0: none"),
    Metric("processes", COUNT, "that hold memory of the device"),
)
HOST = _table(
    Metric("cpu", SHARE, "of all cores"),
    Metric("cpu_highest_core", SHARE, "of the busiest core"),
    Metric("cpu_wait", SHARE, "of all cores, waiting for disks"),
    Metric("cpu_stolen", SHARE, "of all cores, taken by other virtual machines"),
    Metric("cores", COUNT, "that may be used, after the control group's limit"),
    Metric("load", COUNT, "processes that run or wait to run, over one minute"),
    Metric("memory_used", BYTES, "that others cannot take without swapping"),
    Metric("memory_total", BYTES, "of the host, or the control group's limit"),
    Metric("swapped", BYTES, "read from or written to swap", MetricKind.COUNTER),
    Metric("major_faults", COUNT, "pages that were read from a disk", MetricKind.COUNTER),
    Metric("disk_read", BYTES, "from disks", MetricKind.COUNTER),
    Metric("disk_written", BYTES, "to disks", MetricKind.COUNTER),
    Metric("network_received", BYTES, "without loopback", MetricKind.COUNTER),
    Metric("network_sent", BYTES, "without loopback", MetricKind.COUNTER),
    Metric("pressure_cpu", SHARE, "of the time in which some process waited for a core (PSI, 10 s)"),
    Metric("pressure_memory", SHARE, "of the time in which some process waited for memory (PSI, 10 s)"),
    Metric("pressure_io", SHARE, "of the time in which some process waited for a disk (PSI, 10 s)"),
    Metric("cpu_limited", SECONDS, "in which the control group's limit stopped processes", MetricKind.COUNTER),
)
PROGRAM = _table(
    Metric("cpu", COUNT, "cores in use by all its processes"),
    Metric("cpu_highest_thread", SHARE, "of one core, its busiest thread"),
    Metric("memory_used", BYTES, "resident, of all its processes"),
    Metric("io_read", BYTES, "by read calls, from disk or cache", MetricKind.COUNTER),
    Metric("io_written", BYTES, "by write calls", MetricKind.COUNTER),
    Metric("disk_read", BYTES, "that came from a disk", MetricKind.COUNTER),
    Metric("switches_waiting", COUNT, "times it gave up a core to wait", MetricKind.COUNTER),
    Metric("switches_taken", COUNT, "times a core was taken from it", MetricKind.COUNTER),
    Metric("threads", COUNT, "of all its processes"),
    Metric("processes", COUNT, "it and its children"),
    Metric("step", COUNT, "steps done", MetricKind.COUNTER),
    Metric("tokens", COUNT, "processed or generated", MetricKind.COUNTER),
    Metric("data_wait", SECONDS, "in which steps waited for their data", MetricKind.COUNTER),
    Metric("cpu_delayed", SECONDS, "in which its threads were ready to run and others held the cores", MetricKind.COUNTER),
    Metric("device_numa_distance", COUNT, "of its cores to its device: 10 is the same node"),
)
SERVER = _table(
    Metric("running", COUNT, "requests in a batch"),
    Metric("waiting", COUNT, "requests in the queue"),
    Metric("kv_used", SHARE, "of the key-value cache"),
    Metric("prompt_tokens", COUNT, "read", MetricKind.COUNTER),
    Metric("answer_tokens", COUNT, "generated", MetricKind.COUNTER),
    Metric("requests", COUNT, "finished", MetricKind.COUNTER),
    Metric("preempted", COUNT, "requests that lost their cache", MetricKind.COUNTER),
    Metric("prefix_hits", COUNT, "tokens found in the prefix cache", MetricKind.COUNTER),
)
