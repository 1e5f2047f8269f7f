"""The host, from files as Linux writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chipwise.adapters.probes import host
from chipwise.observe import metrics
from chipwise.observe.sample import NoReading, Sample

STAT = "cpu  {0} 0 0 {1} 0 0 0 0 0 0\ncpu0 {0} 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 {1} 0 0 0 0 0 0\nintr 5\n"
DISKS = """\
   8       0 sda 10 0 100 0 20 0 200 0 0 0 0
   8       1 sda1 10 0 100 0 20 0 200 0 0 0 0
 259       0 nvme0n1 1 0 10 0 2 0 20 0 0 0 0
   7       0 loop0 9 0 900 0 9 0 900 0 0 0 0
"""
NETWORK = """\
Inter-|   Receive |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets
    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0
  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
"""
PRESSURE = "some avg10=12.50 avg60=0.00 avg300=0.00 total=5\nfull avg10=99.00 avg60=0.00 avg300=0.00 total=1\n"
FILES = {
    "stat": STAT.format(100, 100),
    "loadavg": "3.5 1 1 2/300 99\n",
    "meminfo": "MemTotal:       1000 kB\nMemFree: 100 kB\nMemAvailable:    400 kB\n",
    "vmstat": "pgmajfault 7\npswpin 1\npswpout 2\n",
    "diskstats": DISKS,
    "net/dev": NETWORK,
    "pressure/cpu": PRESSURE,
    "pressure/memory": PRESSURE.replace("12.50", "0.00"),
    "pressure/io": PRESSURE.replace("12.50", "50.00"),
    "self/cgroup": "0::/job\n",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    return write(tmp_path / "proc", FILES)


def read(proc: Path, groups: Path) -> Sample:
    probe = host.Host(proc, groups)
    (proc / "stat").write_text(STAT.format(150, 150))
    [sample] = probe.read(1.0)
    return sample


def test_every_quantity_of_a_host_is_read(proc: Path, tmp_path: Path) -> None:
    sample = read(proc, tmp_path / "none")
    assert set(sample.readings) == set(metrics.HOST)
    assert sample.value("cpu") == 0.5
    assert sample.value("cpu_highest_core") == 1.0
    assert sample.value("load") == 3.5
    assert (sample.value("memory_used"), sample.value("memory_total")) == (600 * 1024, 1000 * 1024)
    assert (sample.value("major_faults"), sample.value("swapped")) == (7.0, 3 * 4096)
    assert (sample.value("disk_read"), sample.value("disk_written")) == (110 * 512, 220 * 512)
    assert (sample.value("network_received"), sample.value("network_sent")) == (1000.0, 2000.0)
    assert [sample.value(f"pressure_{name}") for name in ("cpu", "memory", "io")] == [0.125, 0.0, 0.5]
    assert isinstance(sample.readings["cpu_limited"], NoReading)


def test_the_control_group_limits_what_there_is(proc: Path, tmp_path: Path) -> None:
    groups = {
        "cgroup.controllers": "cpu memory\n",
        "job/cpu.max": "50000 100000\n",
        "job/memory.max": "512000\n",
        "job/memory.current": "300000\n",
        "job/memory.stat": "anon 5\ninactive_file 100000\n",
        "job/cpu.stat": "usage_usec 5\nthrottled_usec 1500000\n",
        "job/cpu.pressure": PRESSURE.replace("12.50", "80.00"),
    }
    sample = read(proc, write(tmp_path / "groups", groups))
    assert sample.value("cores") == 0.5
    assert (sample.value("memory_used"), sample.value("memory_total")) == (200_000.0, 512_000.0)
    assert sample.value("cpu_limited") == 1.5
    assert (sample.value("pressure_cpu"), sample.value("pressure_io")) == (0.8, 0.5)


def test_control_groups_of_version_1(proc: Path, tmp_path: Path) -> None:
    (proc / "self/cgroup").write_text("4:cpu,cpuacct:/job\n3:memory:/job\n")
    groups = {
        "cpu/job/cpu.cfs_quota_us": "150000",
        "cpu/job/cpu.cfs_period_us": "100000",
        "cpu/job/cpu.stat": "nr_throttled 3\nthrottled_time 2500000000\n",
        "memory/job/memory.limit_in_bytes": "9223372036854771712",
        "memory/job/memory.usage_in_bytes": "5",
    }
    sample = read(proc, write(tmp_path / "groups", groups))
    assert sample.value("cores") == 1.5
    assert sample.value("memory_total") == 1000 * 1024
    assert sample.value("cpu_limited") == 2.5


@pytest.mark.parametrize("name", sorted(set(FILES) - {"self/cgroup"}))
@pytest.mark.parametrize("text", [None, "", "nonsense\n", "cpu x\n", "\0\n"])
def test_a_file_that_is_missing_or_odd_is_a_reason(proc: Path, tmp_path: Path, name: str, text: str | None) -> None:
    probe = host.Host(proc, tmp_path / "none")
    if text is None:
        (proc / name).unlink()
    else:
        (proc / name).write_text(text)
    [sample] = probe.read(1.0)
    assert set(sample.readings) == set(metrics.HOST)


def test_this_host_can_be_read() -> None:
    probe = host.connect()
    probe.read(0.0)
    [sample] = probe.read(1.0)
    assert sample.value("memory_total")
    assert (sample.value("cores") or 0.0) > 0.0
