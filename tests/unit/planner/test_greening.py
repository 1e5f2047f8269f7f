"""What a plan's winner emits: lines that sum, and greener regions that are real candidates."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.catalog.region import readable
from chipwise.planner.values.plan import Plan

ROOT = Path(__file__).resolve().parents[3]


@cache
def planned(kind: str) -> Plan:
    return plan(open_session(), f"{ROOT}/examples/{kind}/workload.yaml")


@pytest.mark.parametrize("kind", ["train", "serve", "hpc", "render", "interactive"])
def test_lines_sum_and_the_first_is_the_power_of_the_winner(kind: str) -> None:
    found = planned(kind)
    assert found.winner is not None
    assert found.emitted is not None
    assert found.emitted.lines[0].kg == pytest.approx(found.winner.kg - found.winner.making_kg)
    assert found.emitted.kg == pytest.approx(found.winner.kg)
    assert found.emitted.kg == pytest.approx(sum(line.kg for line in found.emitted.lines))
    assert found.rows is not None
    assert found.emitted.g_per_unit * found.rows.units / 1e3 == pytest.approx(found.emitted.kg)


@pytest.mark.parametrize("kind", ["train", "serve", "hpc"])
def test_a_greener_region_is_the_cheapest_there_and_emits_less(kind: str) -> None:
    found = planned(kind)
    assert found.winner is not None
    assert found.emitted is not None
    assert found.rows is not None
    priced, regions = found.rows.priced, found.rows.fleet.catalog.regions
    kept = found.rows.ranked[: found.rows.kept]
    names = np.array([f"{one.provider} {readable(one.name)}" for one in regions])[priced.region[kept]]
    for one in found.emitted.greener:
        here = kept[names == one.region]
        cleaner = here[priced.kg[here] < found.winner.kg]
        storage = found.rows.storage_usd or (lambda row: 0.0)
        assert one.usd == min(priced.usd[row] + storage(row) for row in cleaner.tolist())
        assert one.kg < found.winner.kg
        assert one.saved_kg == pytest.approx(found.winner.kg - one.kg)
    prices = [one.usd_per_kg_saved for one in found.emitted.greener]
    assert prices == sorted(prices)
