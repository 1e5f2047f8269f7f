"""Every row of `data/perf/kernels.csv` and `data/perf/codecs.csv`."""

from __future__ import annotations

import csv

import pytest

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.chip import ChipKind
from chipwise.perf.kernels import transcode
from chipwise.perf.kernels.chips import fractions, kernels
from chipwise.perf.tables import DATA


def rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", ["kernels.csv", "codecs.csv"])
def test_every_row_says_what_it_rests_on(name: str) -> None:
    for row in rows(name):
        assert None not in row.values()
        assert row["basis"].startswith(("rule of thumb", "measured by", "vendor", "AMX", "by us"))
        assert 0 < float(row["spread"]) <= 1


def test_no_row_stands_twice() -> None:
    assert len(fractions()) == len(rows("kernels.csv"))
    assert len(transcode.rates()) == len(rows("codecs.csv"))


def test_every_kernel_has_shares_for_any_kind_of_chip() -> None:
    assert all((kernel, "any") in fractions() for kernel in kernels())
    known = {kind.value for kind in ChipKind} | {"any"}
    assert {kind for _, kind in fractions()} <= known
    assert all(0 < value <= 1 for compute, bandwidth, _ in fractions().values() for value in (compute, bandwidth))


def test_codecs_are_those_a_workload_may_name_and_presets_are_in_order() -> None:
    for (_, operation, codec), (speed, fast, quality, _) in transcode.rates().items():
        assert operation in ("encode", "decode")
        assert codec in transcode.CODECS
        assert speed > 0
        assert quality <= 1 <= fast


def test_every_chip_leads_to_engines_of_the_table_or_to_none(catalog: Catalog) -> None:
    engines = {(engine, operation) for engine, operation, _ in transcode.rates()}
    for chip in catalog.chips.values():
        encoder, decoder, _, _ = transcode.engines_of(chip)
        assert encoder == "none" or (encoder, "encode") in engines, chip.name
        assert decoder == "none" or (decoder, "decode") in engines, chip.name
