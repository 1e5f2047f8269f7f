from __future__ import annotations

import pytest

from chipwise.catalog.ability import abilities
from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import DATA
from chipwise.catalog.sharing import mig_profiles, modes, modes_of


@pytest.mark.parametrize(
    ("chip", "ability", "has"),
    [
        ("T4", "flash-attention", False),
        ("T4", "bf16", False),
        ("A100-80", "flash-attention", True),
        ("A100-80", "fp8", False),
        ("L4", "fp8", True),
        ("H100-SXM", "flash-attention-3", True),
        ("B200", "fp4", True),
        ("MI300X", "flash-attention", True),
        ("Trainium1", "bf16", True),
        ("A100-80", "mig", True),
        ("L40S", "mig", False),
        ("A100-80", "video-encode", False),
        ("L4", "video-encode", True),
        ("T4", "chip-link", False),
        ("H100-SXM", "chip-link", True),
        ("V100-16", "video-encode", None),
    ],
)
def test_an_ability_is_yes_no_or_unknown_with_a_reason(catalog: Catalog, chip: str, ability: str, has: bool | None) -> None:
    found = {one.name: one for one in abilities(catalog.chips[chip], DATA)}[ability]
    assert found.has is has
    assert found.reason


def test_the_reason_for_flash_attention_names_the_rule() -> None:
    from chipwise.catalog.load import load

    found = {one.name: one for one in abilities(load().chips["T4"], DATA)}["flash-attention"]
    assert found.reason.startswith("FlashAttention needs compute capability 8.0 or newer")


def test_every_chip_answers_for_every_ability(catalog: Catalog) -> None:
    counts = {len(abilities(chip, DATA)) for chip in catalog.chips.values()}
    assert len(counts) == 1


def test_sharing_modes_say_what_isolation_they_give() -> None:
    isolation = {mode.mode: (mode.memory_isolation, mode.fault_isolation) for mode in modes(DATA)}
    assert isolation["mig"] == (True, True)
    assert isolation["time-slicing"] == (False, False)
    assert isolation["mps"] == (False, False)
    assert set(isolation) == {"passthrough", "mig", "vgpu", "mps", "time-slicing"}


def test_only_chips_that_can_be_cut_are_shared_by_mig(catalog: Catalog) -> None:
    for chip in catalog.chips.values():
        assert ("mig" in {mode.mode for mode in modes_of(chip, DATA)}) == bool(chip.mig_slices)


def test_slices_of_one_profile_fit_on_the_chip_they_are_cut_from(catalog: Catalog) -> None:
    for profile in mig_profiles(DATA):
        chip = catalog.chips[profile.chip]
        assert profile.instances is not None
        assert profile.memory_gb is not None
        assert chip.memory_gb is not None
        assert profile.instances * profile.memory_gb <= chip.memory_gb * 1.05
        assert profile.instances <= (chip.mig_slices or 0)
