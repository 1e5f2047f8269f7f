"""A left-out prediction is made without the row: nothing that was measured of its fold reaches it."""

from __future__ import annotations

import numpy as np
import pytest

from chipwise.calibration.crossvalidate import configuration_key, folds, group_key, key_of, left_out, samples
from chipwise.calibration.score import Scored, predict
from chipwise.calibration.unseen import unseen
from chipwise.perf.model import packaged
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row


def changed(row: Row, factor: float) -> Row:
    return Row({**row.cells, "metric_value": str(row.number("metric_value", 1.0) * factor)})


def said(rows: list[Row], parts: Parts, leave_out: str = "group", others: list[Row] | None = None) -> list[Scored]:
    return unseen(rows, others or [], parts, packaged(), leave_out, 3, lambda done, total, what: None)


@pytest.mark.parametrize("leave_out", ["group", "configuration", "chip", "source"])
def test_rows_with_one_key_share_a_fold(mpt: list[Row], leave_out: str) -> None:
    key = key_of(leave_out)
    fold = folds(mpt, key, 4)
    by_key: dict[str, set[int]] = {}
    for row, number in zip(mpt, fold, strict=True):
        by_key.setdefault(key(row), set()).add(int(number))
    assert all(len(numbers) == 1 for numbers in by_key.values())
    assert set(fold.tolist()) <= set(range(4))


def test_the_values_of_a_fold_never_reach_its_left_out_predictions(parts: Parts, mpt: list[Row]) -> None:
    fold = folds(mpt, group_key, 3)
    wild = [changed(row, 7.0) if number == 0 else row for row, number in zip(mpt, fold, strict=True)]
    found = []
    for rows in (mpt, wild):
        (sample,) = samples(rows, parts)
        found.append([predicted.value.copy() for _, predicted in left_out(sample, fold)][-1])
    assert found[0][fold == 0] == pytest.approx(found[1][fold == 0], rel=1e-9)
    assert np.abs(found[0][fold != 0] / found[1][fold != 0] - 1).max() > 0.001  # the others do learn from them


def test_a_rows_own_value_never_reaches_its_unseen_prediction(parts: Parts, mpt: list[Row]) -> None:
    group = group_key(mpt[0])
    plain = said(mpt, parts)
    wild = said([changed(row, 5.0) if group_key(row) == group else row for row in mpt], parts)
    blank = said([Row({**row.cells, "metric_value": ""}) if group_key(row) == group else row for row in mpt], parts)
    for row, before, after, without in zip(mpt, plain, wild, blank, strict=True):
        if group_key(row) == group:
            assert before.predicted == pytest.approx(after.predicted, rel=1e-9)
            assert before.predicted == pytest.approx(without.predicted, rel=1e-9)


def test_a_source_never_reaches_what_is_said_of_it_nor_makes_it_near(parts: Parts, mpt: list[Row]) -> None:
    rows = [Row({**row.cells, "source_repo": f"someone/{place % 3}"}) for place, row in enumerate(mpt)]
    own = [row.text("source_repo") == "someone/0" for row in rows]
    wild = [changed(row, 5.0) if mine else row for row, mine in zip(rows, own, strict=True)]
    plain, after = said(rows, parts, "source"), said(wild, parts, "source")
    for before, moved, mine in zip(plain, after, own, strict=True):
        assert before.predicted is not None
        assert moved.predicted is not None
        assert (before.predicted == pytest.approx(moved.predicted, rel=1e-9)) is mine
    assert {one.provenance for one in plain} <= {"interpolated", "between"}  # two other sources ran such settings
    assert {one.provenance for one in said(mpt, parts, "source")} == {"formula"}  # nobody else did


def test_the_packaged_twin_of_a_row_is_left_out_with_it(parts: Parts, mpt: list[Row]) -> None:
    asked = [row for row in mpt if group_key(row) == group_key(mpt[0])]
    wild = [changed(row, 9.0) if row in asked else row for row in mpt]
    plain, after = said(asked, parts, others=mpt), said(asked, parts, others=wild)
    renamed = [Row({**row.cells, "row_id": "", "group": ""}) for row in asked]  # and where only its kin tell that it is one
    nameless = said(renamed, parts, others=wild)
    for one, other in zip(plain, after, strict=True):
        assert one.predicted == pytest.approx(other.predicted, rel=1e-9)
    clean = said(renamed, parts, others=mpt)
    for one, other in zip(clean, nameless, strict=True):
        assert one.predicted == pytest.approx(other.predicted, rel=1e-9)


def test_more_rows_beside_a_file_make_it_better(parts: Parts, mpt: list[Row]) -> None:
    def error(found: list[Scored]) -> float:
        return float(
            np.mean(
                [
                    abs(np.log((one.predicted or 0.0) / row.number("metric_value", 1.0)))
                    for row, one in zip(mpt[:6], found, strict=True)
                ]
            )
        )

    assert error(said(mpt[:6], parts, others=mpt)) < error(said(mpt[:6], parts))


def test_a_row_that_no_family_answers_keeps_its_reason(parts: Parts, mpt: list[Row]) -> None:
    odd = Row({**mpt[0].cells, "task": "paint"})
    assert said([*mpt[:3], odd], parts)[-1] == predict([odd], parts, packaged())[0]


def test_a_configuration_is_one_whatever_was_measured_of_it() -> None:
    base = {"model": "m", "chip": "c", "engine": "e", "tp": "2", "metric_name": "ttft_ms", "metric_value": "1"}
    assert configuration_key(Row(base)) == configuration_key(Row({**base, "metric_name": "tpot_ms", "metric_value": "9"}))
    assert configuration_key(Row(base)) != configuration_key(Row({**base, "tp": "4"}))
