from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import load
from chipwise.catalog.machine import Machine
from chipwise.catalog.region import Region, located
from chipwise.errors import InvalidSettings
from chipwise.money.carbon import WORLD_G_PER_KWH, Grid, Grids, Making, greener
from chipwise.money.hosts import WHOLE_HOST, host_shares
from chipwise.units import GIB


@cache
def catalog() -> Catalog:
    return load(prices=False)


@cache
def grids() -> Grids:
    return Grids(catalog().regions, catalog().rows("energy"))


@cache
def making() -> Making:
    return Making(catalog().rows("embodied"))


def grid(provider: str, name: str) -> Grid:
    return grids().grids[catalog().region_index[provider, name]]


# -- operational


def test_energy_times_pue_times_grid_is_what_a_job_emits() -> None:
    known = Grids([Region("somebody", "here", grid_g_per_kwh=400.0, pue=1.2)])

    assert known.operational_kg([10_000.0, 0.0], [100.0, 100.0], 0).tolist() == pytest.approx([1000 * 1.2 * 0.4, 0.0])


def test_a_region_with_its_own_figures_assumes_nothing() -> None:
    found = grid("aws", "us-east-1")

    assert not found.assumed
    assert "annual average of 2024, location-based" in found.basis[0]
    assert "PUE 1.15: region, 2024" in found.basis[1]


def test_a_region_without_a_grid_takes_its_countrys_then_the_worlds() -> None:
    norway, nowhere = grid("shadeform", "oslo-norway-3"), grid("runpod", "*")

    assert norway.g_per_kwh == pytest.approx(30.08)
    assert "NOR, which its name tells" in norway.basis[0]
    assert nowhere.g_per_kwh == WORLD_G_PER_KWH
    assert "world average" in nowhere.basis[0]
    assert norway.assumed
    assert nowhere.assumed


def test_a_region_without_a_pue_takes_its_providers_then_the_industrys() -> None:
    new = grids().of(Region("aws", "new-region", country="FRA"))
    other = grid("oci", "eu-zurich-1")

    assert 1.1 < new.pue < 1.3
    assert "mean of aws's regions" in new.basis[1]
    assert other.pue == 1.54
    assert "industry average of 2025" in other.basis[1]


@pytest.mark.parametrize(
    ("name", "country"),
    [
        ("Georgia, US, NA", "USA"),
        ("Germany, DE, EU", "DEU"),
        ("houston-usa-1", "USA"),
        ("fr-par", "FRA"),
        ("FINLAND", "FIN"),
        ("BHS", None),
        ("FRA", None),
        ("me-south-1", None),
        ("eu-west", None),
        ("default", None),
        ("*", None),
    ],
)
def test_the_grid_is_that_of_the_country_that_a_name_tells(name: str, country: str | None) -> None:
    told = grids().of(located(Region("somebody", name))).basis[0]

    assert (f"average of {country}" in told) if country else ("world average" in told)


def test_every_region_of_the_catalog_has_a_grid_and_a_pue() -> None:
    assert len(grids().grids) == len(catalog().regions)
    assert np.all((grids().g_per_kwh > 0) & (grids().g_per_kwh < 1000))
    assert np.all((grids().pue >= 1) & (grids().pue < 2))


@given(st.floats(0, 1e7), st.floats(0, 1e5), st.integers(0, 300), st.floats(1, 10))
def test_more_power_or_time_never_emits_less(power: float, hours: float, at: int, times: float) -> None:
    less = grids().operational_kg([power, power], [hours, hours], at)
    more = grids().operational_kg([power * times, power], [hours, hours * times], at)

    assert np.all(less <= more * (1 + 1e-9))


# -- making


def test_a_server_of_eight_h100_weighs_what_the_table_says() -> None:
    chip, hours = catalog().chips["H100-SXM"], making().lifetime_hours
    found = making().share(chip, 8, 1, 2048 * GIB, hours)

    assert found.kg == pytest.approx(7012)
    assert [line.name for line in found.lines] == ["embodied, chips", "embodied, hosts"]


@pytest.mark.parametrize(
    ("item", "memory_gib", "chips"),
    [
        ("AWS p4d host (whole server)", 1152, 8),
        ("AWS g4dn host (whole server)", 384, 8),
        ("AWS p3 host (whole server)", 768, 8),
        ("AWS p2 host (whole server)", 732, 16),
        ("AWS g3 host (whole server)", 488, 4),
        ("GCP a2 host (16 x A100)", 1360, 16),
    ],
)
def test_the_rule_for_hosts_meets_the_servers_of_the_table(item: str, memory_gib: float, chips: float) -> None:
    stated = next(row.kg_co2e for row in catalog().rows("embodied") if row.item == item)

    ruled = making().host_kg(memory_gib * GIB) + 150 * chips  # the rows add 150 kg for every GPU
    assert ruled == pytest.approx(stated, rel=0.2)


def test_the_rule_for_chips_meets_those_with_a_figure() -> None:
    chips = catalog().chips
    for name, kg in (("H100-SXM", 164.0), ("A100-40", 127.6), ("H200", 1729 / 8)):
        chip = chips[name]
        assert chip.silicon.die_mm2
        assert chip.memory_gb
        unlisted = Making(row for row in catalog().rows("embodied") if not row.item.startswith(("H100", "A100", "HGX H200")))
        assert unlisted.chip_kg(chip)[0] == pytest.approx(kg, rel=0.04)


def test_a_chip_that_nobody_describes_has_the_usual_figure_and_it_is_said() -> None:
    made = making().share(catalog().chips["Trainium2"], 16, 1, 2048 * GIB, 10)

    assert made.lines[0].kg == pytest.approx(16 * 150 * 10 / (4 * 8760))
    assert "not published: GPU, any, add-on to a server is assumed" in made.basis[0]


@pytest.mark.parametrize(
    ("chip", "assumed"), [("Trainium2", "150 kg assumed"), ("L4", "by its die and memory"), ("H100-SXM", "164 kg x")]
)
def test_a_figure_that_nobody_published_is_marked_where_it_is_shown(chip: str, assumed: str) -> None:
    chips, host = making().share(catalog().chips[chip], 8, 1, 2048 * GIB, 10).lines
    assert assumed in chips.how
    assert "assumed life of 4 years" in chips.how
    assert "by its memory" in host.how


def test_what_a_small_device_weighs_is_not_taken_from_a_card_of_a_server() -> None:
    made = making().share(catalog().chips["Coral-Edge-TPU"], 40, 40, None, 10)
    assert made.kg is None
    assert "not published" in made.basis[0]
    assert "not counted" in made.basis[0]


def test_a_tpu_has_its_host_in_its_own_figure() -> None:
    found = making().share(catalog().chips["TPU-v6e"], 4, 1, 1024 * GIB, making().lifetime_hours)

    assert found.kg == pytest.approx(4 * 692)


def test_a_processor_is_counted_with_its_host() -> None:
    cpu = catalog().chips["Graviton4"]

    assert making().share(cpu, 1, 1, 64 * GIB, making().lifetime_hours).kg == pytest.approx(1000 + 4700 * 64 / 2048)
    assert making().share(cpu, 1, 1, None, 10).kg is None


def test_a_host_of_unknown_memory_is_left_out_and_said() -> None:
    found = making().share(catalog().chips["L4"], 1, 1, None, 10)

    assert found.kg is not None
    assert "hosts are left out" in found.basis[1]


def test_no_time_makes_no_carbon_yet_it_is_known() -> None:
    assert making().share(catalog().chips["H100-SXM"], 8, 1, 2048 * GIB, 0).kg == 0


@given(st.sampled_from(["H100-SXM", "L4", "TPU-v5p", "Trainium2", "Graviton4"]), st.floats(0, 1e4))
def test_the_total_is_the_sum_of_its_lines(chip: str, hours: float) -> None:
    found = making().share(catalog().chips[chip], 8, 1, 512 * GIB, hours)

    assert (found.kg or 0) == pytest.approx(math.fsum(line.kg for line in found.lines))


def test_a_longer_life_makes_every_hour_lighter() -> None:
    short, long = (Making(catalog().rows("embodied"), years) for years in (3, 6))
    chip = catalog().chips["H100-SXM"]

    assert (short.share(chip, 8, 1, GIB, 10).kg or 0) == pytest.approx(2 * (long.share(chip, 8, 1, GIB, 10).kg or 0))


# -- greener regions


OPTIONS = st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0.01, 1e5), st.floats(0.01, 1e5)), min_size=1, max_size=12)


def test_greener_regions_are_offered_with_the_price_of_a_saved_kg() -> None:
    found = greener([("here", 10, 5), ("north", 12, 1), ("beaten", 13, 2), ("cheaper", 9, 4), ("dirtier", 8, 6)])

    assert [(one.region, one.saved_kg, one.extra_usd, one.usd_per_kg_saved) for one in found] == [
        ("cheaper", 1, -1, -1),
        ("north", 4, 2, 0.5),
    ]
    assert greener([]) == []


@given(OPTIONS, st.data())
def test_what_is_offered_is_greener_and_beaten_by_nothing(options: list[tuple[str, float, float]], data: st.DataObject) -> None:
    chosen = data.draw(st.integers(0, len(options) - 1))
    found = greener(options, chosen)

    assert all(one.kg < options[chosen][2] for one in found)
    assert not [one for one in found for _, usd, kg in options if usd <= one.usd and kg < one.kg]
    assert bool(found) == any(kg < options[chosen][2] for _, _, kg in options)


# -- what cannot be


def test_what_cannot_be_is_refused_by_name() -> None:
    with pytest.raises(InvalidSettings, match="power_w"):
        grids().operational_kg([-1.0], [1.0], [0])
    with pytest.raises(InvalidSettings, match="hours"):
        grids().operational_kg([1.0], [math.nan], [0])
    with pytest.raises(InvalidSettings, match="index"):
        grids().operational_kg([1.0], [1.0], [100_000])
    with pytest.raises(InvalidSettings, match="chips"):
        making().share(catalog().chips["L4"], -1, 1, None, 1)
    with pytest.raises(InvalidSettings, match="lifetime_years"):
        Making(catalog().rows("embodied"), 0)
    with pytest.raises(InvalidSettings, match="HGX H100"):
        Making(())
    with pytest.raises(InvalidSettings, match="chosen"):
        greener([("here", 1, 1)], 3)


def test_a_virtual_machine_answers_for_its_part_of_the_host() -> None:
    """Its own memory, and of the rest of the host its share of the largest size of the family."""
    machines = catalog().machines
    shares = dict(zip((one.key for one in machines), host_shares(machines), strict=True))
    small, whole = (next(one for one in machines if one.key == ("aws", name)) for name in ("g4dn.xlarge", "g4dn.metal"))
    part = shares[small.key]
    assert shares[whole.key] == WHOLE_HOST
    assert part.of == "g4dn.metal"
    assert small.vcpus is not None
    assert whole.vcpus is not None
    assert small.memory_bytes is not None
    assert whole.memory_bytes is not None
    assert part.share == pytest.approx(max(small.vcpus / whole.vcpus, small.memory_bytes / whole.memory_bytes))
    assert part.low <= part.share <= part.high == pytest.approx(1 / 8)  # of eight chips
    chip, hours = catalog().chips["T4"], making().lifetime_hours
    _, host = making().share(chip, 1, 1, small.memory_bytes, hours, part).lines
    assert host.kg == pytest.approx(1000 * part.share + 4700 * small.memory_bytes / GIB / 2048)
    assert host.range_kg is not None
    assert host.range_kg[0] <= host.kg <= host.range_kg[1] < 1000
    assert "g4dn.metal" in host.how
    assert all(0 < one.low <= one.share <= one.high <= 1 for one in shares.values())


def test_machines_of_ones_own_are_whole_hosts() -> None:
    small = Machine("ours", "rack", "T4", 1.0, vcpus=8.0, memory_bytes=32 * GIB, energy_usd_per_hour=0.1)
    large = Machine("ours", "tower", "T4", 8.0, vcpus=64.0, memory_bytes=512 * GIB, energy_usd_per_hour=0.9)
    assert host_shares([small, large]) == (WHOLE_HOST, WHOLE_HOST)
