"""Tables carry the numbers they are sorted by, and the matrix the least cost."""

from __future__ import annotations

import re
from dataclasses import replace

import plans
from chipwise.report.tables import FIRST, matrix, ranking


def test_the_matrix_has_the_least_cost_of_every_provider_and_family() -> None:
    found = matrix(plans.plan())
    assert re.findall(r"\$\d+", found) == ["$100", "$150", "$400"]  # not the 110 and 300 of the same cell
    assert found.index("gcp") < found.index("aws")
    assert 'title="aws p4d.24xlarge in eu-north-1, spot"' in found


def test_cells_are_sorted_by_numbers_and_not_by_their_prose() -> None:
    found = ranking(plans.plan())
    assert 'data-key="36000.0" data-label="time" class="number">10 h' in found
    assert 'data-key="100.0" data-label="USD/job" class="number">$100' in found


def test_what_is_unknown_has_no_key() -> None:
    assert '<td data-label="memory" class="number">-</td>' in ranking(plans.plan())


def test_only_the_first_rows_are_shown_until_somebody_asks() -> None:
    many = tuple(replace(plans.choice(), machine=f"m{at}", machines=at + 1) for at in range(FIRST + 7))
    found = ranking(plans.plan(choices=many))
    assert found.count('class="more"') == 7
    assert f"Show all {FIRST + 7}" in found
    assert "Show all" not in ranking(plans.plan())
