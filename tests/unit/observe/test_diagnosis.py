"""The doctor on recordings whose cause is known: figures that were measured on one H200, and played ones."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.catalog.chip import Chip, ChipKind, Precision, bare
from chipwise.catalog.fact import UNKNOWN
from chipwise.observe.diagnosis import diagnose, every_rule
from chipwise.observe.finding import Finding, Severity
from chipwise.observe.judging import Explains
from chipwise.observe.sample import NoReading, Recording, Sample
from played_recordings import GPU, H200, MAKERS, played

CHIP: Chip = replace(
    bare("H200", "NVIDIA", ChipKind.GPU, "Hopper", UNKNOWN),
    power_w=700.0,
    link_bytes_per_s=900e9,
    rates={Precision.FP32: 67e12, Precision.TF32: 494e12},
)
CHIPS = {"H200": CHIP}
PAGES = Path(__file__).resolve().parents[3] / "docs" / "doctor"

MEASURED = {
    "matrix-products": "compute-bound",
    "copies": "memory-bound",
    "tiny-kernels": "launch-bound",
    "pcie": "transfer-bound",
    "waiting": "one-core",
}


def first(recording: Recording) -> Finding:
    finding = diagnose(recording, CHIPS).first
    assert finding is not None
    return finding


@pytest.mark.parametrize(("kind", "rule"), MEASURED.items())
def test_what_an_h200_showed_is_named(kind: str, rule: str) -> None:
    assert first(played({"nvidia:0": H200[kind]}, program={"io_read": 30e6 if kind == "waiting" else 1e3})).rule == rule


@pytest.mark.parametrize(
    ("kind", "rule"), [(kind, rule) for kind, rule in MEASURED.items() if kind not in ("waiting", "tiny-kernels")]
)
def test_an_older_device_without_counters_gets_the_same_name_with_less_confidence(kind: str, rule: str) -> None:
    sure = first(played({"nvidia:0": H200[kind]}, program={}))
    unsure = first(played({"nvidia:0": H200[kind]}, program={}, without_counters=True))
    assert unsure.rule == sure.rule == rule
    assert unsure.confidence < sure.confidence


@pytest.mark.parametrize("size", range(3))
@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_played_is_named_first(kind: str, size: int) -> None:
    assert first(MAKERS[kind](size)).rule == kind


def test_a_well_used_device_gets_notes_only() -> None:
    diagnosis = diagnose(played({"nvidia:0": H200["matrix-products"]}, program={}), CHIPS)
    assert diagnosis.is_healthy
    assert "throttled-power" in {finding.rule for finding in diagnosis.findings}  # at the board's own limit: no loss


def test_utilisation_of_a_transfer_misleads_the_textbook_rule_and_that_is_noted() -> None:
    diagnosis = diagnose(played({"nvidia:0": H200["pcie"]}, program={}), CHIPS)
    notes = {finding.rule for finding in diagnosis.findings if finding.severity is Severity.NOTE}
    assert "textbook" in notes
    assert "compute-bound" not in {finding.rule for finding in diagnosis.findings}


@pytest.mark.parametrize(
    ("program", "host", "rule"),
    [
        ({"cpu": 15.8, "processes": 17.0, "io_read": 500e6}, {"cpu": 0.99}, "cpu-saturated"),
        ({"cpu": 1.0, "io_read": 50e6}, {}, "one-core"),
        ({"cpu": 0.2, "cpu_highest_thread": 0.1, "disk_read": 40e6}, {"cpu_wait": 0.06, "pressure_io": 0.9}, "slow-disk"),
        ({"cpu": 0.4, "cpu_highest_thread": 0.3}, {"network_received": 80e6}, "slow-network"),
        ({"cpu": 2.1, "processes": 3.0, "io_read": 60e6}, {}, "few-workers"),
        ({"cpu": 0.3, "cpu_highest_thread": 0.2, "processes": 5.0}, {}, "few-workers"),
    ],
)
def test_waiting_for_data_is_split_into_its_causes(program: dict[str, float], host: dict[str, float], rule: str) -> None:
    recording = played({"nvidia:0": H200["waiting"]}, host, program)
    assert first(recording).rule == rule


def test_what_the_program_reports_about_waiting_decides() -> None:
    """One spinning thread and small kernels: launches, unless the program says that it waited for data."""
    levels = {**H200["tiny-kernels"], "graphics_active": 0.2, "sm_active": 0.03}
    assert first(played({"nvidia:0": levels}, program={})).rule == "launch-bound"
    assert first(played({"nvidia:0": levels}, program={"data_wait": 0.75})).rule == "one-core"


def test_large_kernels_with_gaps_and_no_data_are_synchronisation() -> None:
    levels = {"graphics_active": 0.6, "busy": 0.7, "sm_active": 0.55, "tensor_active": 0.4, "dram_active": 0.1}
    assert first(played({"nvidia:0": levels}, program={})).rule == "synchronisation"


def test_arithmetic_in_32_bits_leaves_matrix_units_idle_and_the_roofline_bounds_the_gain() -> None:
    finding = first(played({"nvidia:0": {"tensor_active": 0.0, "fp32_active": 0.9, "dram_active": 0.1}}, program={}))
    assert finding.rule == "tensor-cores-idle"
    assert finding.speedup is not None
    assert 1.0 < finding.speedup.low < finding.speedup.high <= 494 / 67


def test_few_busy_multiprocessors_mean_that_the_batch_is_too_small() -> None:
    levels = {"sm_active": 0.15, "tensor_active": 0.02, "dram_active": 0.1, "power": 220.0}
    assert first(played({"nvidia:0": levels}, program={})).rule == "batch-too-small"


def test_a_device_that_is_held_and_does_nothing_is_idle() -> None:
    nothing = {"busy": 0.0, "graphics_active": 0.0, "sm_active": 0.0, "tensor_active": 0.0, "dram_active": 0.0, "power": 75.0}
    finding = first(played({"nvidia:0": nothing}, program={"cpu": 0.01, "cpu_highest_thread": 0.01}, usd_per_hour=4.0))
    assert finding.rule == "idle"
    assert finding.usd_lost_per_hour == pytest.approx(4.0)


def test_a_second_process_on_the_device_is_a_neighbour() -> None:
    assert first(played({"nvidia:0": {**H200["matrix-products"], "processes": 2.0}}, program={})).rule == "noisy-neighbour"


def test_what_neighbours_on_the_cores_cost_is_the_time_that_the_program_waited_for_one() -> None:
    """They use 92% of the cores, and it waits for one 48% of the time: it would be 1.92 times as fast without them."""
    host = {"cpu": 1.0, "cores": 2.0, "pressure_cpu": 0.95}
    program = {"cpu": 0.16, "cpu_highest_thread": 0.16, "cpu_delayed": 0.48, "switches_taken": 50.0}
    finding = first(played(host=host, program=program))
    assert finding.rule == "noisy-neighbour"
    assert finding.lost_share == pytest.approx(0.48, abs=0.03)
    assert finding.speedup is not None
    assert finding.speedup.value == pytest.approx(1 / (1 - finding.lost_share))
    assert finding.speedup.low < finding.speedup.value < finding.speedup.high


def test_threads_that_wait_together_lose_time_once() -> None:
    host = {"cpu": 1.0, "cores": 4.0, "pressure_cpu": 0.95}
    program = {"cpu": 2.0, "cpu_highest_thread": 0.5, "cpu_delayed": 1.0, "switches_taken": 50.0}
    findings = {finding.rule: finding for finding in diagnose(played(host=host, program=program), CHIPS).findings}
    assert findings["noisy-neighbour"].lost_share == pytest.approx(1 / 3, abs=0.03)


def test_a_full_memory_is_named_and_a_vllm_like_cache_is_a_note() -> None:
    full = played({"nvidia:0": {**H200["matrix-products"], "memory_used": 148e9}}, program={})
    assert (first(full).rule, first(full).severity) == ("memory-full", Severity.WARNING)
    cached = diagnose(played({"nvidia:0": {**H200["matrix-products"], "memory_used": 139e9}}, program={}), CHIPS)
    assert cached.is_healthy


def test_findings_are_ranked_by_the_money_that_they_cost() -> None:
    levels = {**H200["tiny-kernels"], "throttled_heat": 1.0, "clock": 1700.0, "temperature": 89.0}
    diagnosis = diagnose(played({"nvidia:0": levels}, program={}, usd_per_hour=10.0), CHIPS)
    costs = [finding.usd_lost_per_hour for finding in diagnosis.findings if finding.severity is Severity.WARNING]
    assert [finding.rule for finding in diagnosis.findings[:2]] == ["launch-bound", "throttled-heat"]
    assert costs == sorted(costs, key=lambda cost: -(cost or 0.0))


def test_a_full_link_is_no_finding_whatever_its_mean_is_rounded_to() -> None:
    for seconds in (7.0, 9.4, 11.8, 13.0):
        recording = played({"nvidia:0": {**H200["pcie"], "pcie_width": 16.0}}, program={}, seconds=seconds, every_s=0.13)
        assert "pcie-link" not in {finding.rule for finding in diagnose(recording, CHIPS).findings}


def test_slower_than_predicted_is_only_said_when_nothing_else_explains_it() -> None:
    explained = played({"nvidia:0": H200["tiny-kernels"]}, program={"step": 2.0}, predicted={"step": (8.0, 10.0, 12.0)})
    assert "slower-than-predicted" not in {finding.rule for finding in diagnose(explained, CHIPS).findings}


def test_one_lying_exporter_does_not_end_the_diagnosis() -> None:
    recording = played({"nvidia:0": H200["copies"]}, program={})
    lies = {"busy": 100.0, "power": math.nan, "sm_active": -1.0, "energy": -5.0, "nonsense": 3.0}
    samples = [*recording.samples, *(Sample(200.0 + tick, "nvidia:1", lies) for tick in range(5))]
    diagnosis = diagnose(replace(recording, samples=samples), CHIPS)
    assert any("nvidia:1" in note for note in diagnosis.notes)


def test_a_device_without_any_reading_gives_no_finding_about_it() -> None:
    samples = [Sample(float(tick), "nvidia:0", dict.fromkeys(GPU, NoReading("no permission"))) for tick in range(20)]
    diagnosis = diagnose(Recording("", samples=samples), CHIPS)
    assert diagnosis.findings == ()
    assert any("no permission" in note for note in diagnosis.notes)


def test_less_than_a_second_is_not_enough() -> None:
    diagnosis = diagnose(played({"nvidia:0": H200["copies"]}, program={}, seconds=0.6, startup_s=0.0), CHIPS)
    assert not diagnosis.is_enough
    assert diagnosis.findings == ()


@pytest.mark.parametrize("name", every_rule())
def test_every_rule_says_what_it_is_about_and_has_its_page(name: str) -> None:
    rule = every_rule()[name]
    assert isinstance(rule.EXPLAINS, Explains)
    assert rule.ABOUT.endswith(".")
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    assert 15 <= len(text.splitlines()) <= 60
    for heading in ("## What it means", "## How to confirm it", "## What to do", "## When it misleads"):
        assert heading in text


def test_there_is_no_page_without_its_rule() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} - {"index"} == set(every_rule())
