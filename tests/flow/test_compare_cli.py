"""`chipwise compare` and `chipwise rate` as a user has them: within 80 columns, JSON with stable keys, mistakes told."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from command import Chipwise

ROOT = Path(__file__).resolve().parents[2]
TRAIN, SERVE = (f"{ROOT}/examples/{name}/workload.yaml" for name in ("train", "serve"))
PLANNED = ("train", "finetune", "serve", "batch")
KEYS = {"schema", "workload", "kind", "per", "by", "fits", "winner", "cells", "services", "missing", "notes"}
CELL = {"key", "fits", "why", "reason", "usd", "doubt", "seconds", "kwh", "co2e_kg", "choice"}
COLUMNS = ("performance", "cost", "energy", "frameworks", "ease")


@pytest.mark.parametrize("name", PLANNED)
@pytest.mark.parametrize("by", ["provider", "region", "generation"])
def test_an_example_is_compared_within_80_columns(chipwise: Chipwise, name: str, by: str) -> None:
    done = chipwise("compare", f"{ROOT}/examples/{name}/workload.yaml", "--by", by)
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert f"by {by}" in done.out.replace("\n", " ")


def test_the_matrix_as_json_holds_the_plans_own_winner(chipwise: Chipwise) -> None:
    found = chipwise("compare", SERVE, "--json").json
    planned = chipwise("plan", SERVE, "--objective", "cost", "--json").json["winner"]
    assert set(found) == KEYS
    assert all(set(one) == CELL for one in found["cells"])
    mine = [one for one in found["cells"] if one["key"] == {"provider": planned["provider"], "purchase": planned["purchase"]}]
    assert [one["usd"] for one in mine] == [planned["usd"]]


def test_what_is_paid_per_use_stands_beside_machines(chipwise: Chipwise) -> None:
    comparison = chipwise("compare", SERVE, "--json").json
    services = chipwise("plan", SERVE, "--objective", "cost", "--json").json["services"]
    assert comparison["services"] == services != []
    assert "Paid per use instead of per machine:" in chipwise("compare", SERVE).out
    rows = list(csv.DictReader(chipwise("compare", SERVE, "--csv").out.splitlines()))
    assert len(rows) == len(comparison["cells"]) + len(services)
    for row, service in zip(rows[-len(services) :], services, strict=True):
        assert (row["provider"], row["machine"], row["purchase"]) == (service["provider"], service["name"], service["kind"])
        assert float(row["usd"]) == pytest.approx(service["usd"])
        assert row["fits"] == str(not service["refused"])


@pytest.mark.parametrize("by", ["provider", "region", "generation"])
def test_csv_has_a_line_for_every_cell(chipwise: Chipwise, by: str) -> None:
    cells = chipwise("compare", TRAIN, "--by", by, "--json").json["cells"]
    rows = list(csv.DictReader(chipwise("compare", TRAIN, "--by", by, "--csv").out.splitlines()))
    assert len(rows) == len(cells)
    for row, cell in zip(rows, cells, strict=True):
        assert {name: row[name] or None for name in cell["key"]} == cell["key"]
        assert row["fits"] == str(cell["fits"])
        assert row["usd"] == "" if cell["usd"] is None else float(row["usd"]) == pytest.approx(cell["usd"])
        if cell["choice"] is not None:
            assert float(row["usd_low"]) == pytest.approx(cell["choice"]["usd_range"][0])


@pytest.mark.parametrize("limit", ["clouds=[aws]", "chips=t4"])
def test_a_page_is_written_whole_and_overwrites_nothing_unasked(chipwise: Chipwise, tmp_path: Path, limit: str) -> None:
    path = tmp_path / "compare.html"
    done = chipwise("compare", TRAIN, "--limit", limit, "--html", str(path))
    assert done.err == f"Written: {path}\n"
    assert ("Nothing fits" in path.read_text()) == (done.code == 1)
    path.write_text("mine")
    for name, said in (
        (str(path), "exists already"),
        ("", "cannot be written"),
        (str(tmp_path / "no" / "x.html"), "cannot be written"),
    ):
        refused = chipwise("compare", TRAIN, "--html", name)
        assert (refused.code, refused.out) == (2, "")
        assert said in refused.err
    assert path.read_text() == "mine"


def test_regions_tell_country_and_carbon(chipwise: Chipwise) -> None:
    cells = chipwise("compare", TRAIN, "--by", "region", "--json").json["cells"]
    assert all(set(one["key"]) == {"provider", "region", "country"} for one in cells)
    assert all(one["co2e_kg"] > 0 for one in cells)


def test_limits_hold_and_nothing_fits_is_an_answer(chipwise: Chipwise) -> None:
    cells = chipwise("compare", TRAIN, "--limit", "clouds=[aws]", "--json").json["cells"]
    assert {one["key"]["provider"] for one in cells} == {"aws"}
    for command in ("compare", "rate"):
        done = chipwise(command, TRAIN, "--limit", "chips=t4")
        assert done.code == 1
        assert "Nothing fits" in done.out
        assert "precision" in done.out


@pytest.mark.parametrize("name", PLANNED)
def test_families_are_rated_within_80_columns(chipwise: Chipwise, name: str) -> None:
    done = chipwise("rate", f"{ROOT}/examples/{name}/workload.yaml", "--why")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert "★★★★★" in done.out
    assert "of the frameworks" in done.out


def test_two_files_give_two_tables_and_every_star_its_number(chipwise: Chipwise) -> None:
    found = chipwise("rate", TRAIN, SERVE, "--json").json
    assert [one["kind"] for one in found["ratings"]] == ["train", "serve"]
    for rating in found["ratings"]:
        for family in rating["families"]:
            for name in COLUMNS:
                assert set(family[name]) == {"stars", "value", "unit", "how"}
                assert (family[name]["stars"] is None) == (family[name]["value"] is None)


def test_stars_are_letters_where_the_terminal_has_no_others(chipwise: Chipwise) -> None:
    done = chipwise("rate", SERVE, LANG="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.code == 0
    assert done.out.isascii()
    assert "*****" in done.out


@pytest.mark.parametrize("command", ["compare", "rate"])
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nosuch.yaml",), "nosuch.yaml"),
        ((), "WORKLOAD"),
        ((TRAIN, "--limit", "clouds"), "key=value"),
        ((TRAIN, "--limit", "clouds=nosuch"), "nosuch"),
        ((TRAIN, "-e", "nosuch"), "nosuch"),
        (("nosuch.yaml", "--limit", "clouds=[aws]"), "nosuch.yaml"),
    ],
)
def test_bad_input_ends_in_a_sentence(chipwise: Chipwise, command: str, arguments: tuple[str, ...], told: str) -> None:
    done = chipwise(command, *arguments)
    assert done.code == 2
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_vendor_is_known_and_goes_with_generations(chipwise: Chipwise) -> None:
    wrong = chipwise("compare", TRAIN, "--by", "generation", "--vendor", "nvida")
    assert wrong.code == 2
    assert "NVIDIA" in wrong.err
    alone = chipwise("compare", TRAIN, "--vendor", "nvidia")
    assert alone.code == 2
    assert "--by generation" in alone.err
