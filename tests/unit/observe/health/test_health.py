"""Faults are played: every code of the table, sensors, log lines and nodes; and what is decided about each."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import pytest

from chipwise.observe.health import codes, kernel_log, nodes
from chipwise.observe.health.decide import Cordon, Drain, HealthPolicy, HealthReport, MachineUse, Move, Replace, decide
from chipwise.observe.health.judge import judge, verdicts
from chipwise.observe.health.verdict import Blame, Condition, JobEffect, Verdict
from chipwise.observe.sample import NoReading, Recording, Sample, SampledDevice

ROOT = Path(__file__).resolve().parents[4]
PROGRAMS_OWN = (13, 31, 43, 45)


def line(code: int, pci: str = "0000:3b:00", pid: int = 4711) -> str:
    return f"Nov 18 08:00:00 node7 kernel: NVRM: Xid (PCI:{pci}): {code}, pid={pid}, name=python, details"


def logged(*lines: str) -> tuple[Verdict, ...]:
    return verdicts(None, kernel_log.read(lines))


def sensed(**readings: tuple[float, float]) -> Verdict:
    """First and last value of each."""
    samples = [
        Sample(float(place), "nvidia:0", {name: pair[place] for name, pair in readings.items()} | {"busy": 0.9})
        for place in (0, 1)
    ]
    (verdict,) = verdicts(Recording("", samples=samples))
    return verdict


MACHINE = MachineUse(
    name="node7",
    devices=("pci:0000:3b:00", "nvidia:0"),
    jobs={"train-1": ("pci:0000:3b:00", "nvidia:0")},
    checkpoints=frozenset({"train-1"}),
)


@pytest.mark.parametrize("number", codes.codes())
def test_every_code_is_played_from_the_log_to_the_decision(number: int) -> None:
    known = codes.code(number)
    (verdict,) = logged(line(number))
    expected = Condition.REPLACE if number == 64 else known.state
    assert verdict.state is expected
    assert known.meaning in verdict.reason or number == 64
    actions = decide([verdict], MACHINE)
    if expected in (Condition.FINE, Condition.WATCH):
        assert all(isinstance(action, HealthReport) for action in actions)
    else:
        assert Drain("pci:0000:3b:00", verdict.reason) in actions
        (move,) = [action for action in actions if isinstance(action, Move)]
        assert move.from_checkpoint
        assert move.reason == verdict.reason


@pytest.mark.parametrize("number", PROGRAMS_OWN)
def test_a_programs_own_fault_leaves_the_device_alone_and_names_the_job(number: int) -> None:
    (verdict,) = logged(line(number), line(number))
    assert verdict.state is Condition.FINE
    assert verdict.is_programs_fault
    (report,) = decide([verdict], MACHINE)
    assert isinstance(report, HealthReport)
    assert report.job == "train-1"


def test_programs_that_fail_on_one_device_alone_make_it_suspect() -> None:
    crashes = [line(31, pid=pid) for pid in (1, 2, 3)]
    neighbour = line(63, pci="0000:5e:00")
    states = {verdict.device: verdict.state for verdict in logged(*crashes, neighbour)}
    assert states["pci:0000:3b:00"] is Condition.WATCH
    (silent,) = logged(*crashes)  # a log has no lines of neighbours to which nothing happened
    assert silent.state is Condition.WATCH
    everywhere = logged(*crashes, line(31, pci="0000:5e:00", pid=9))
    assert {verdict.state for verdict in everywhere} == {Condition.FINE}


def test_falling_off_the_bus_again_means_replacement() -> None:
    (once,) = logged(line(79))
    (twice,) = logged(line(79), line(79))
    assert (once.state, twice.state) == (Condition.DRAIN, Condition.REPLACE)


@pytest.mark.parametrize(
    ("recovery", "state"),
    [
        ("None", Condition.FINE),
        ("GPU Reset Required", Condition.DRAIN),
        ("Node Reboot Required", Condition.DRAIN),
        ("Drain P2P", Condition.DRAIN),
    ],
)
def test_the_recovery_that_the_driver_asks_for_decides(recovery: str, state: Condition) -> None:
    text = f"NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 ({recovery})"
    (verdict,) = logged(text)
    assert verdict.state is state


def test_an_unknown_code_is_watched() -> None:
    (verdict,) = logged(line(4242))
    assert verdict.state is Condition.WATCH


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVRM: Xid",
        "NVRM: Xid (PCI:zz:00): 79",
        "NVRM: Xid (PCI:0000:3b:00): minus one",
        "Xid (PCI:0000:3b:00): 79, a program printed this",
        "x" * 100_000 + line(79),
        "\x1b[31mNVRM\x1b[0m",
    ],
)
def test_lines_that_are_none_of_ours_say_nothing(text: str) -> None:
    assert kernel_log.read([text]).events == ()


def test_a_huge_number_is_bounded() -> None:
    assert kernel_log.read([line(999_999)]).events[0].sign.code == codes.HIGHEST_CODE


@pytest.mark.parametrize(
    ("text", "device", "state"),
    [
        ("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "pci:0000:3b:00", Condition.DRAIN),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "pci:0000:c1:00", Condition.DRAIN),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 11012, Non-fatal, Link 46", "pci:0000:c1:00", Condition.WATCH),
        (
            "amdgpu 0000:83:00.0: amdgpu: 3 uncorrectable hardware errors detected in umc block",
            "pci:0000:83:00",
            Condition.DRAIN,
        ),
        ("amdgpu 0000:83:00.0: amdgpu: GPU reset begin!", "pci:0000:83:00", Condition.WATCH),
        ("neuron:nd[3] check: NEURON_HW_ERR=HBM_UNCORRECTABLE_ERROR instance-id=x", "neuron:3", Condition.DRAIN),
        ("nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Data", "pci:0000:3b:00", Condition.WATCH),
    ],
)
def test_lines_of_other_drivers_are_read(text: str, device: str, state: Condition) -> None:
    (verdict,) = logged(text)
    assert (verdict.device, verdict.state) == (device, state)


def test_corrected_errors_of_pcie_are_no_event() -> None:
    assert logged("nvidia 0000:3b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer") == ()


def test_the_log_and_the_sensors_of_one_device_are_joined_by_its_identity() -> None:
    uuid = "GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7"
    recording = Recording(
        "",
        devices=(SampledDevice("nvidia:0", "NVIDIA H200", identity=uuid),),
        samples=[Sample(0.0, "nvidia:0", {"temperature": 40.0})],
    )
    log = kernel_log.read([f"NVRM: GPU at PCI:0000:3b:00: {uuid}", line(95)])
    (verdict,) = verdicts(recording, log)
    assert (verdict.device, verdict.state, verdict.name) == ("nvidia:0", Condition.DRAIN, "NVIDIA H200")


@pytest.mark.parametrize(
    ("readings", "state"),
    [
        ({"ecc_corrected": (0.0, 1.0)}, Condition.FINE),
        ({"ecc_corrected": (0.0, 500.0)}, Condition.WATCH),
        ({"ecc_uncorrected": (0.0, 1.0)}, Condition.DRAIN),
        ({"ecc_uncorrected": (2.0, 2.0)}, Condition.WATCH),
        ({"remapped_rows": (4.0, 4.0)}, Condition.FINE),
        ({"remap_pending": (0.0, 1.0)}, Condition.WATCH),
        ({"remap_failed": (0.0, 1.0)}, Condition.REPLACE),
        ({"nvlink_errors": (0.0, 3.0)}, Condition.WATCH),
        ({"pcie_replays": (0.0, 2.0)}, Condition.FINE),
        ({"pcie_replays": (0.0, 200.0)}, Condition.WATCH),
        ({"pcie_width": (8.0, 8.0), "pcie_width_max": (16.0, 16.0)}, Condition.WATCH),
        ({"pcie_generation": (3.0, 3.0), "pcie_generation_max": (5.0, 5.0)}, Condition.FINE),  # at rest
        (
            {"pcie_generation": (3.0, 3.0), "pcie_generation_max": (5.0, 5.0), "pcie_received": (8e9, 8e9)},
            Condition.WATCH,
        ),
        ({"temperature": (70.0, 70.0)}, Condition.FINE),
        ({"temperature": (90.0, 90.0)}, Condition.WATCH),
        ({"temperature": (97.0, 97.0)}, Condition.DRAIN),
        ({"memory_temperature": (106.0, 106.0)}, Condition.DRAIN),
        ({"throttled_heat": (1.0, 1.0)}, Condition.WATCH),
        ({"xid": (0.0, 31.0)}, Condition.FINE),
        ({"xid": (0.0, 95.0)}, Condition.DRAIN),
        ({"ecc_corrected": (500.0, 0.0)}, Condition.FINE),
    ],
)
def test_sensors_are_judged(readings: Mapping[str, tuple[float, float]], state: Condition) -> None:
    assert sensed(**readings).state is state


def test_nothing_is_drained_on_a_single_corrected_error() -> None:
    assert decide([sensed(ecc_corrected=(0.0, 1.0))], MACHINE) == ()


def test_a_device_that_stops_answering_is_drained() -> None:
    samples = [
        Sample(0.0, "nvidia:0", {"power": 100.0, "busy": 0.5}),
        Sample(1.0, "nvidia:0", {"power": NoReading("the GPU is lost"), "busy": NoReading("the GPU is lost")}),
    ]
    (verdict,) = verdicts(Recording("", samples=samples))
    assert verdict.state is Condition.DRAIN


def test_a_job_that_goes_on_and_has_no_checkpoint_finishes_on_its_drained_device() -> None:
    retired = judge("nvidia:0", [kernel_log.xid_sign(156)])
    assert retired.job is JobEffect.CONTINUES
    alone = MachineUse(name="m", devices=("nvidia:0",), jobs={"train-1": ("nvidia:0",)})
    assert decide([retired], alone) == (Drain("nvidia:0", retired.reason),)
    broken = judge("nvidia:0", [kernel_log.xid_sign(95)])
    assert decide([broken], alone)[-1] == Move("train-1", "nvidia:0", False, broken.reason)


def test_a_node_is_cordoned_before_its_jobs_move() -> None:
    broken = judge("nvidia:0", [kernel_log.xid_sign(79)])
    node = MachineUse(name="n1", devices=("nvidia:0",), is_node=True, jobs={"j": ("nvidia:0",)}, checkpoints=frozenset({"j"}))
    kinds = [type(action) for action in decide([broken], node)]
    assert kinds == [Cordon, Drain, Move]


def test_a_rented_machine_is_replaced_only_if_the_policy_says_so() -> None:
    broken = judge("nvidia:0", [kernel_log.xid_sign(79), kernel_log.xid_sign(79)])
    rented = MachineUse(name="i-1", devices=("nvidia:0",), is_rented=True)
    assert Replace("i-1", broken.reason) in decide([broken], rented, HealthPolicy(replaces=True))
    assert not any(isinstance(action, Replace) for action in decide([broken], rented))
    assert not any(
        isinstance(action, Replace)
        for action in decide([broken], MachineUse("own", ("nvidia:0",)), HealthPolicy(replaces=True))
    )


def test_a_policy_that_does_not_drain_only_reports() -> None:
    broken = judge("nvidia:0", [kernel_log.xid_sign(79)])
    assert decide([broken], MACHINE, HealthPolicy(drains=False)) == (HealthReport("nvidia:0", broken.reason),)


def test_verdicts_of_other_machines_change_nothing() -> None:
    assert decide([judge("nvidia:7", [kernel_log.xid_sign(79)])], MACHINE) == ()


def test_nodes_are_judged_by_conditions_and_missing_devices() -> None:
    def node(name: str, conditions: list[object], usable: str = "8") -> dict[str, object]:
        status = {"conditions": conditions, "capacity": {"nvidia.com/gpu": "8"}, "allocatable": {"nvidia.com/gpu": usable}}
        return {"metadata": {"name": name}, "status": status}

    listing = {
        "items": [
            node("well", [{"type": "Ready", "status": "True"}, {"type": "GPUMissing", "status": "False"}]),
            node("gone", [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]),
            node("hardware", [{"type": "AcceleratedHardwareReady", "status": "False", "reason": "NvidiaXID79Error"}]),
            node("codes", [{"type": "XIDErrors", "status": "True"}]),
            node("short", [], usable="7"),
            node("odd", ["text", {"type": 5, "status": "True"}, None]),
            "no node",
        ]
    }
    states = {verdict.name: verdict.state for verdict in nodes.verdicts(listing)}
    assert states == {
        "well": Condition.FINE,
        "gone": Condition.DRAIN,
        "hardware": Condition.DRAIN,
        "codes": Condition.WATCH,
        "short": Condition.DRAIN,
        "odd": Condition.FINE,
    }
    assert nodes.verdicts([1, 2]) == ()


def test_a_node_whose_kubelet_went_silent_is_not_ready() -> None:
    """As kubectl says; its other conditions are unknown then, which is no sign of pressure."""
    kinds = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    conditions = [{"type": kind, "status": "Unknown", "reason": "NodeStatusUnknown"} for kind in kinds]
    (verdict,) = nodes.verdicts({"items": [{"metadata": {"name": "n2"}, "status": {"conditions": conditions}}]})
    assert verdict.state is Condition.DRAIN
    assert verdict.reason == "condition Ready is Unknown (NodeStatusUnknown)"


def test_the_table_of_codes_names_a_source_that_is_listed_and_blames_known_ones() -> None:
    with (ROOT / "src" / "chipwise" / "data" / "sources.csv").open(encoding="utf-8", newline="") as file:
        listed = {row["id"] for row in csv.DictReader(file)}
    for known in codes.codes().values():
        assert set(known.sources) <= listed
        assert known.as_of
        assert known.meaning.endswith(".")
    assert {number for number in PROGRAMS_OWN if codes.code(number).blame is Blame.PROGRAM} == set(PROGRAMS_OWN)
