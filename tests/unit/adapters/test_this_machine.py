"""What machines call their processors and GPUs, as their kernels and drivers really do."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from chipwise.adapters.this_machine import gpu_names, processor

INTEL = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\nmodel name\t: {name}\nstepping\t: {step}\n\n"
AMD = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: {model}\nmodel name\t: {name}\nstepping\t: 1\n\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: {part}\n\n"


def test_a_processor_is_known_by_its_own_words() -> None:
    found = processor(INTEL.format(model=143, step=8, name="Intel(R) Xeon(R) Platinum 8488C CPU @ 2.40GHz"))
    assert (found.name, found.known_as) == ("Intel Xeon Platinum 8488C", "Xeon-Sapphire-Rapids")
    assert processor(AMD.format(model=1, name="AMD EPYC 7763 64-Core Processor")).name == "AMD EPYC 7763"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (INTEL.format(model=106, step=6, name="Intel(R) Xeon(R) Processor"), "Xeon-Ice-Lake"),
        (INTEL.format(model=85, step=7, name="Intel(R) Xeon(R) Processor"), "Xeon-Cascade-Lake"),
        (INTEL.format(model=85, step=4, name="Intel(R) Xeon(R) Processor"), ""),  # a Skylake
        (INTEL.format(model=207, step=2, name="Intel(R) Xeon(R) Processor"), ""),  # not in the catalog
        (AMD.format(model=17, name="AMD EPYC"), "EPYC-Genoa"),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_a_virtual_machine_s_processor_is_known_by_its_numbers(text: str, known: str) -> None:
    assert processor(text).known_as == known


def test_an_arm_core_is_graviton_only_on_machines_of_aws() -> None:
    assert processor(ARM.format(part="0xd4f"), "Amazon EC2").known_as == "Graviton4"
    assert processor(ARM.format(part="0xd4f"), "NVIDIA").known_as == ""


def stand_in_driver(folder: Path, says: str) -> None:
    """A program in the place of nvidia-smi."""
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ("echo '0, NVIDIA H200'; echo '1, NVIDIA H200'", {0: "NVIDIA H200", 1: "NVIDIA H200"}),
        ("echo 'No devices were found'; exit 6", {}),
        ("echo 'driver mismatch'", {}),
    ],
)
def test_gpus_are_named_as_their_driver_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, found: dict[int, str]
) -> None:
    stand_in_driver(tmp_path, says)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert gpu_names() == found


def test_no_driver_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_names() == {}
