"""Why a device has nothing to do: what the host and the program show while it waits. Rules about waiting start from it.

Most programs keep one thread spinning, whether it launches kernels, waits for the device or decodes images: that thread alone
says little. What it reads, what it sends to the device and how long kernels are tell these apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from chipwise.observe.evidence import Evidence, ObservedDevice

WAITING = 0.2  # of the time without work, from which on waiting needs a cause
SPINNING = 0.85  # of one core: a thread that never rests
SATURATED = 0.75  # of the cores that may be used: starting and waiting take some
FEEDING_BYTES_PER_S = 500e6  # to the device: batches; launching alone was seen to send 240 MB/s
READING_BYTES_PER_S = 5e6
DISK_BYTES_PER_S = 2e6
NETWORK_BYTES_PER_S = 10e6
SERIAL_CORES = 1.6  # in use, where one thread works at a time: forward and backward take turns
MOVING = 0.08  # of the time in which something ran on the device: the program gets on
TRANSFERRING = 0.25  # of the time in copies, or of the link
PAGEABLE = 0.05  # of the link, while the device hardly computes: copies of memory that is not pinned


@dataclass(frozen=True, slots=True)
class Waiting:
    share: float  # of the time in which devices had no work; without a device, in which cores had none
    data_wait: float | None  # of the time, if the program reports it
    thread: float  # the busiest, of one core; where threads take turns, all together
    program_cores: float | None
    cores: float | None
    io_wait_cores: float  # cores that wait for a disk
    io_pressure: float
    disk_bytes_per_s: float
    network_bytes_per_s: float
    read_bytes_per_s: float
    fed_bytes_per_s: float  # to devices
    filled: float | None  # of multiprocessors while kernels run
    active: float | None
    transferring: bool
    counted: bool  # by counters rather than by utilisation

    @property
    def is_fed(self) -> bool:
        """Whether data comes in at all, by whichever way it can be seen."""
        return max(self.read_bytes_per_s, self.disk_bytes_per_s) >= READING_BYTES_PER_S or (
            self.fed_bytes_per_s >= FEEDING_BYTES_PER_S or self.network_bytes_per_s >= NETWORK_BYTES_PER_S
        )

    @property
    def for_data(self) -> float:
        """How likely it is that the wait is for data, 0 to 1: certain where the program reports it."""
        if self.data_wait is not None:
            return 0.95 if self.data_wait >= 0.5 * self.share else 0.3 if self.data_wait >= 0.1 else 0.05
        if self.active is None:
            return 0.8
        likely = 0.75 if self.is_fed else 0.5
        if self.active < 0.3 and (self.filled or 1.0) >= 0.5:
            likely += 0.1
        if self.active >= 0.5 and not self.is_fed:
            likely -= 0.3
        return likely

    @property
    def disk_waits(self) -> bool:
        waits = self.io_wait_cores >= 0.3 or self.io_pressure >= 0.2
        return (waits and self.disk_bytes_per_s >= 0.1e6) or self._reads_slowly

    @property
    def _reads_slowly(self) -> bool:
        """A program that computes next to nothing and reads from a disk all the time."""
        idle = self.program_cores is not None and self.program_cores < SPINNING and self.thread < SPINNING
        return idle and self.disk_bytes_per_s >= DISK_BYTES_PER_S

    @property
    def network_waits(self) -> bool:
        calm = self.program_cores is None or self.cores is None or self.program_cores < 0.5 * self.cores
        return calm and self.network_bytes_per_s >= NETWORK_BYTES_PER_S and self.disk_bytes_per_s < self.network_bytes_per_s / 4


def waiting(evidence: Evidence) -> Waiting | None:
    """None where devices have work most of the time, or nobody knows."""
    host, program = evidence.host, evidence.program
    cores, used = evidence.cores, program.mean("cpu")
    active = evidence.active
    if evidence.devices and active is None:
        return None
    copying = sum(device.copying or 0.0 for device in evidence.devices) / max(len(evidence.devices), 1)
    if active is not None:
        share = 1.0 - active - (copying if any(map(is_transferring, evidence.devices)) else 0.0)
    elif used is not None and cores:
        share = 1.0 - used / cores
    else:
        return None
    if share < WAITING:
        return None
    filled = [fill for device in evidence.devices if (fill := device.filled) is not None]
    return Waiting(
        share=share,
        data_wait=program.mean("data_wait"),
        thread=max(program.or_zero("cpu_highest_thread"), used if used is not None and used <= SERIAL_CORES else 0.0),
        program_cores=used,
        cores=cores,
        io_wait_cores=host.or_zero("cpu_wait") * (cores or 1.0),
        io_pressure=host.or_zero("pressure_io"),
        disk_bytes_per_s=max(program.or_zero("disk_read"), host.or_zero("disk_read") if not program.tracks else 0.0),
        network_bytes_per_s=host.or_zero("network_received"),
        read_bytes_per_s=program.or_zero("io_read"),
        fed_bytes_per_s=sum(device.or_zero("pcie_received") for device in evidence.devices),
        filled=sum(filled) / len(filled) if filled else None,
        active=active,
        transferring=any(map(is_transferring, evidence.devices)),
        counted=all(device.has_counters for device in evidence.devices),
    )


def moves(evidence: Evidence) -> bool:
    """Whether anything ran on a device, other than for a moment at one end of the recording."""
    shares = [device.share_above("graphics_active" if device.has_counters else "busy", 0.002) for device in evidence.devices]
    return max((share or 0.0 for share in shares), default=0.0) >= MOVING


def is_transferring(device: ObservedDevice) -> bool:
    """Copies over PCIe take the time: seen as busy without kernels, or as a link that is well used."""
    rate, capacity = device.pcie_bytes_per_s, device.pcie_capacity
    link = (rate or 0.0) / capacity if capacity else 0.0
    if device.has_counters and link >= PAGEABLE and (device.active or 0.0) < 0.3:
        return True
    if device.copying is not None:
        return (device.copying >= TRANSFERRING and (rate or 0.0) >= 1e9) or (
            link >= TRANSFERRING and (device.active or 0) < 0.7
        )
    return link >= TRANSFERRING and (device.power_share or 0.0) < 0.5
