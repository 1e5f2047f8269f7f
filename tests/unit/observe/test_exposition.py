"""Prometheus text: read back by a strict reader, and by Prometheus's own library where it is installed."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest

from chipwise.observe import metrics
from chipwise.observe.exposition import exposed
from chipwise.observe.sample import HOST, PROGRAM, NoReading, Recording, Sample, SampledDevice

HEADER = Recording(
    "",
    devices=(SampledDevice("nvidia:0", 'NVIDIA "H200"\\', identity="GPU-1"),),
    labels={"job": "train-1", "team-name": "a\nb", "x": ""},
)
SAMPLES = (
    Sample(1.0, "nvidia:0", {"busy": 0.5, "energy": 1234.5, "clock": 1980.0, "power": NoReading("no sensor")}),
    Sample(1.0, "nvidia:1", {"busy": 0.25, "pcie_received": 1e9, "xid": 0.0}),
    Sample(1.0, HOST, {"disk_read": 123456789012.0, "cpu": 1.0, "unheard": 1.0}),
    Sample(1.0, PROGRAM, {"data_wait": 1.5, "step": 12.0}),
    Sample(1.0, "server:localhost:8000", {"running": 3.0}),
)
LINE = re.compile(r"([a-z0-9_]+)\{((?:[a-zA-Z_]\w*=\"(?:[^\"\\\n]|\\[\\n\"])*\",?)*)\} (\S+)")


def rows(text: str) -> dict[str, float]:
    """Raises where a line is none of the format, or stands before its TYPE."""
    typed: dict[str, str] = {}
    values: dict[str, float] = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in typed
            typed[name] = kind
        elif not line.startswith("# HELP "):
            match = LINE.fullmatch(line)
            assert match, line
            assert match[1] in typed
            assert (typed[match[1]] == "counter") == match[1].endswith("_total")
            key = f"{match[1]}{{{match[2]}}}"
            assert key not in values
            values[key] = float(match[3])
    return values


JOB = 'job="train-1",team_name="a\\nb"'


def test_every_source_has_the_labels_of_the_job() -> None:
    values = rows(exposed(SAMPLES, HEADER))
    assert values[f'chipwise_device_busy_ratio{{{JOB},device="nvidia:0",name="NVIDIA \\"H200\\"\\\\",uuid="GPU-1"}}'] == 0.5
    assert values[f'chipwise_device_busy_ratio{{{JOB},device="nvidia:1"}}'] == 0.25
    assert values[f'chipwise_device_pcie_received_bytes_per_second{{{JOB},device="nvidia:1"}}'] == 1e9
    assert values[f"chipwise_host_disk_read_bytes_total{{{JOB}}}"] == 123456789012.0
    assert values[f"chipwise_program_data_wait_seconds_total{{{JOB}}}"] == 1.5
    assert values[f'chipwise_server_running{{{JOB},server="localhost:8000"}}'] == 3.0
    assert not any("unheard" in name for name in values)


def test_a_missing_sensor_is_counted_and_no_zero() -> None:
    values = rows(exposed(SAMPLES, HEADER))
    assert not any(name.startswith("chipwise_device_power_") for name in values)
    assert sum(value for name, value in values.items() if name.startswith("chipwise_missing")) == 1.0


def test_every_metric_has_a_name_of_its_own() -> None:
    tables = {"nvidia:0": metrics.DEVICE, HOST: metrics.HOST, PROGRAM: metrics.PROGRAM, "server:x": metrics.SERVER}
    samples = [Sample(0.0, source, dict.fromkeys(table, 1.0)) for source, table in tables.items()]
    values = rows(exposed(samples, Recording("")))
    assert len(values) == sum(map(len, tables.values())) + len(samples)


def test_nothing_sampled_is_an_empty_text() -> None:
    assert exposed((), HEADER) == ""


def test_the_library_of_prometheus_reads_it() -> None:
    try:
        parser: Any = import_module("prometheus_client.parser")
    except ImportError:
        pytest.skip("prometheus-client: not installed")
    families = {family.name: family for family in parser.text_string_to_metric_families(exposed(SAMPLES, HEADER))}
    assert families["chipwise_device_energy_joules"].type == "counter"
    [sample] = families["chipwise_host_cpu_ratio"].samples
    assert sample.labels == {"job": "train-1", "team_name": "a\nb"}
