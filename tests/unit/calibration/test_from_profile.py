"""From a profile to what predictions assume: half of what was seen, and nothing where nothing was."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from chipwise.calibration.from_profile import WEIGHT, ChipOffset, Shares, assumed, chip_offset, impossible, moved, shares_of
from chipwise.perf.arrays import Coded
from chipwise.perf.model import Estimate, packaged
from chipwise.perf.part import Parts
from chipwise.perf.profile import Profile, ProfileSample, parse

PATH = Path(__file__).resolve().parents[3] / "src" / "chipwise" / "data" / "profiles" / "h200.json"
H200 = parse(PATH.read_text(encoding="utf-8"), "h200.json")


def test_the_packaged_profile_says_what_its_chip_was_seen_to_reach(parts: Parts) -> None:
    found = shares_of(H200, parts["H200"])
    assert 0.6 < found.compute["bf16"] < 0.85
    assert found.memory is not None
    assert 0.7 < found.memory < 0.95
    assert set(found.compute) >= {"bf16", "fp16", "fp8", "tf32", "fp32", "fp64"}


def test_a_chip_that_does_as_the_packaged_profile_changes_nothing(parts: Parts) -> None:
    part = parts["H200"]
    assert chip_offset("H200", shares_of(H200, part), assumed(part, packaged().factors, H200)) == ChipOffset("H200", 0.0, 0.0)


def test_the_offset_is_half_the_logarithm_and_bounded() -> None:
    expected = Shares({"bf16": 0.8}, 0.8)
    found = chip_offset("x", Shares({"bf16": 0.4}, 1.0), expected)
    assert found.compute == pytest.approx(WEIGHT * math.log(2.0))
    assert found.memory == pytest.approx(WEIGHT * math.log(0.8))
    assert chip_offset("x", Shares({"bf16": 0.05}, 0.05), expected).compute == 0.4
    assert chip_offset("x", Shares({}, None), expected) == ChipOffset("x", 0.0, 0.0)


@pytest.mark.parametrize("name", ["H100-SXM", "A100-80", "L40S", "MI300X", "Trainium1", "TPU-v5e", "B200", "T4"])
def test_what_the_model_assumes_of_a_chip_is_a_share(parts: Parts, name: str) -> None:
    found = assumed(parts[name], packaged().factors, None)
    assert found.half is not None
    assert found.memory is not None
    assert 0.3 < found.half <= 1.0
    assert 0.3 < found.memory <= 1.0


def test_only_terms_of_the_profiled_chip_move_and_they_still_sum() -> None:
    seconds = np.array([2.0, 2.0])
    terms = {"weights": np.array([1.0, 1.0]), "prefill matrix": np.array([0.5, 0.5]), "engine": np.array([0.5, 0.5])}
    value = 1.0 / seconds
    before = Estimate(value, value * 0.8, value * 1.25, seconds, terms, Coded.of("formula"), np.full(2, 0.3))
    chips = Coded.of(["H200", "L4"])
    after = moved(before, chips, np.full(2, -1.0), {"H200": ChipOffset("H200", math.log(2.0), math.log(3.0))})
    assert after.seconds == pytest.approx([3.0 + 1.0 + 0.5, 2.0])
    assert after.value == pytest.approx(1.0 / after.seconds)
    assert after.low / after.value == pytest.approx(before.low / before.value)
    assert moved(before, chips, np.full(2, -1.0), {"T4": ChipOffset("T4", 1.0, 1.0)}) is before


def test_a_profile_without_products_says_nothing(parts: Parts) -> None:
    copy = ProfileSample("launch", (("kernels", 100),), "fp32", 1e-5, 0.0, 0.0, 0.0)
    found = shares_of(Profile("x", "cuda", None, "2026-01-01", "torch", (copy,)), parts["H200"])
    assert found == Shares({}, None)
    assert found.half is None


@pytest.mark.parametrize(
    ("changed", "field", "bound"),
    [
        ({"flop": 1e30}, "samples[1].flop", "at most 9.89e+15 FLOP/s, from the data sheet of H200"),
        ({"seconds": 1e-9}, "samples[1].flop", "at most 9.89e+15 FLOP/s"),
        ({"bytes": 1e30}, "samples[1].bytes", "at most 4.8e+13 bytes/s"),
        ({"bytes": 1e6, "flop": 0.0, "seconds": 1e-9}, "samples[1].bytes", "at most 4.8e+14 bytes/s"),
        ({"seconds": 1e30}, "samples[1].seconds", "at most 1e+06 s"),
    ],
)
def test_what_no_such_chip_can_have_run_is_named_with_its_bound(
    parts: Parts, changed: dict[str, float], field: str, bound: str
) -> None:
    large = max((one for one in H200.samples if (one.kind, one.precision) == ("gemm", "bf16")), key=lambda one: one.flop)
    profile = replace(H200, samples=(large, replace(large, **changed)))  # type: ignore[arg-type]
    found = impossible(profile, parts["H200"])
    assert field in [problem.field for problem in found]
    assert any(bound in str(problem) for problem in found)


def test_a_device_that_nobody_knows_has_bounds_too(parts: Parts) -> None:
    fast = replace(H200.samples[0], kind="gemm", flop=1e20, seconds=1.0)
    assert "of any single device" in str(impossible(replace(H200, samples=(fast,)), None)[0])
    assert impossible(H200, None) == impossible(H200, parts["H200"]) == []
