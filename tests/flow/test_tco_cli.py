"""`chipwise tco` as a user has it: text that fits 80 columns, JSON, and bad input that ends in a sentence."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from chipwise.cli.tco import tornado
from chipwise.money.tco import Swing
from chipwise.text import usd_short
from command import Chipwise

ASKED = ("h100", "--machines", "4", "--chips", "8", "--years", "3", "--utilisation", "60%", "--country", "DEU")


@pytest.mark.parametrize(
    "arguments",
    [
        ASKED,
        ("h100", "--against", "p5.48xlarge", "--country", "Texas", "--staff", "8000"),
        ("l40s", "--chips", "4", "--power-price", "0.20", "--pue", "1.3"),
        ("rtx-4090", "--chips", "2", "--years", "0.5", "--purchase", "$6k", "--power", "1.2kW"),
        ("h100", "--region", "NZL"),
    ],
    ids=" ".join,
)
def test_the_answer_fits_the_terminal(chipwise: Chipwise, arguments: tuple[str, ...]) -> None:
    brief, full = chipwise("tco", *arguments), chipwise("tco", *arguments, "--full")
    for done in (brief, full):
        assert (done.code, done.err) == (0, "")
        assert max(map(len, done.out.splitlines())) <= 80
        assert "per hour in use" in done.out
    assert len(brief.out.splitlines()) <= 30
    assert "Assumptions" in full.out


def test_the_answer_stands_first_and_says_what_providers_ask(chipwise: Chipwise) -> None:
    second = chipwise("tco", *ASKED).out.splitlines()[1]
    assert second.startswith(("Rent: ", "Own: ", "Close: "))
    view = chipwise("tco", *ASKED, "--json").json
    lasting = [one["usd_per_hour"] for one in view["cloud"] if one["durable"] and one["purchase"] == "on-demand"]
    out = " ".join(chipwise("tco", *ASKED).out.split())
    assert f"That rent is ${min(lasting):,.2f} an hour, the cheapest durable offer; " in out
    assert re.search(r"\d providers ask \$[\d.]+ to [\d.]+\.", out)


@pytest.mark.parametrize("flags", [("--csv", "--json"), ("--json", "--csv")])
def test_two_formats_at_once_are_refused(chipwise: Chipwise, flags: tuple[str, str]) -> None:
    for command in (("tco", "h100"), ("compare", "examples/serve/workload.yaml"), ("chips",)):
        done = chipwise(*command, *flags)
        assert (done.code, done.out) == (2, "")
        assert "--csv and --json do not go together. Give one of them." in done.err


def test_the_text_shows_lines_alternatives_and_the_picture(chipwise: Chipwise) -> None:
    out = chipwise("tco", *ASKED, "--full").out
    for word in ("depreciation", "finance", "maintenance", "total", "break-even", "reserved-3y", "- low end, + high end"):
        assert word in out
    assert any("|+" in line or "+|" in line for line in out.splitlines())


def test_a_narrow_terminal_is_kept_to(chipwise: Chipwise) -> None:
    done = chipwise("tco", *ASKED, COLUMNS="60")
    assert max(map(len, done.out.splitlines())) <= 62  # numbers never give way


def test_json_says_what_the_text_says(chipwise: Chipwise) -> None:
    view = chipwise("tco", *ASKED, "--json").json
    assert (view["chip"], view["machines"], view["utilisation"]) == ("H100-SXM", 4, 0.6)
    assert f"{view['own']['usd_per_year']:,.0f}" in chipwise("tco", *ASKED, "--full").out
    assert len(view["cash_flow_usd"]) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("h100", "--utilisation", "60"), "--utilisation: 60 is not possible. Allowed: shares above 0% up to 100%"),
        (("h100", "--utilisation", "nan"), "--utilisation: nan is not possible"),
        (("h100", "--pue", "0.9"), "--pue: 0.9 is not possible. Allowed: numbers from 1 to 10"),
        (("h100", "--power", "5GB"), "--power: 5GB is not possible. Allowed: watts"),
        (("h100", "--purchase", "-3"), "--purchase: -3 is not possible. Allowed: USD"),
        (("h100", "--power-price", "1e400"), "--power-price: 1e400 is not possible"),
        (("h100", "--machines", "0"), "--machines: 0 is not possible. Allowed: whole numbers"),
        (("h100", "--years", "0"), "--years: 0 is not possible"),
        (("h100", "--rent", "-1.85/h"), "--rent: -1.85/h is not possible. Allowed: USD an hour above 0"),
        (("h100", "--rent", "nan"), "--rent: nan is not possible"),
        (("h100", "--rent", ""), "--rent: '' is not possible"),
        (("h100", "--rent", "1e9/h"), "--rent: 1e9/h is not possible"),
        (("h100", "--term", "1y"), "--term goes with --rent"),
        (("h100", "--rent", "2/h", "--term", "3y", "--years", "2"), "--term: 3y is longer than the 2 years"),
        (("h100", "--decline", "95%"), "--decline: 95% is not possible. Allowed: shares a year"),
        (("h100", "--decline", "nan"), "--decline: nan is not possible"),
        (("h100", "--html", ""), "cannot be written"),
        (("h100", "--html", "none/there/report.html"), "cannot be written"),
        (("h100", "--country", "Atlantis"), "--country: 'Atlantis' is no country"),
        (("h100", "--against", "p5.48xlrge"), "Did you mean p5.48xlarge"),
        (("nosuch",), "No chip is called 'nosuch'"),
        (("tpu-v5e",), "only be rented"),
        (("b300", "--chips", "3"), "--purchase: the catalog has no purchase price of a machine with 3 x B300"),
        ((), "Missing argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_bad_input_ends_in_a_sentence_and_exit_code_two(chipwise: Chipwise, arguments: tuple[str, ...], said: str) -> None:
    done = chipwise("tco", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_rent_that_was_offered_is_told_with_what_it_binds_to(chipwise: Chipwise) -> None:
    out = " ".join(chipwise("tco", *ASKED, "--rent", "1.85/h", "--term", "1y", "--decline", "10%", "--full").out.split())
    assert "reserved-1y negotiated" in out
    assert f"binds to ${4 * 8 * 1.85 * 8760:,.0f} over 1 year." in out
    assert "-10% a year (given)" in out
    assert "your rent, reserved-1y" in out


def test_csv_has_a_line_for_everything_that_owning_is_held_against(chipwise: Chipwise) -> None:
    view = chipwise("tco", *ASKED, "--json").json
    rows = list(csv.DictReader(chipwise("tco", *ASKED, "--csv").out.splitlines()))
    assert len(rows) == len(view["cloud"])
    for row, one in zip(rows, view["cloud"], strict=True):
        for name in ("usd_per_hour", "saving_low_usd", "saving_high_usd", "cloud_npv_usd"):
            assert float(row[name]) == pytest.approx(one[name])
        assert float(row["decline_low"]) == pytest.approx(one["decline"]["low"])
        assert row["break_even_month_high"] == (
            "" if one["break_even_month_high"] is None else str(one["break_even_month_high"])
        )


def test_a_page_is_written_whole_and_overwrites_nothing_unasked(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "tco.html"
    done = chipwise("tco", *ASKED, "--html", str(path))
    assert (done.code, done.err) == (0, f"Written: {path}\n")
    assert path.read_text().startswith("<!DOCTYPE html>")
    path.write_text("mine")
    again = chipwise("tco", *ASKED, "--html", str(path))
    assert (again.code, again.out) == (2, "")
    assert "exists already" in again.err
    assert path.read_text() == "mine"
    assert chipwise("tco", *ASKED, "--html", str(path), "--force").code == 0
    assert [one.name for one in tmp_path.iterdir() if one.suffix == ".html"] == ["tco.html"]


def test_a_bar_reaches_from_what_is_to_either_end() -> None:
    swings = (Swing("purchase_usd", 1e5, 3e5, 200.0, -200.0, None, None), Swing("years", 2.0, 4.0, -100.0, 100.0, None, None))
    lines = tornado(swings, 0.0, 80)
    assert max(map(len, lines)) <= 80
    bars = [line[-45:] for line in lines]
    assert bars[0].index("+") < bars[0].index("|") < bars[0].index("-")
    assert lines[1].index("-") < lines[1].index("|") < lines[1].rindex("+")
    assert lines[0].count("+") > lines[1].count("+")
    assert "0" in lines[-1]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1234567, "$1.23M"), (999_600, "$1M"), (-936_000, "-$936k"), (12.3, "$12.3"), (0, "$0"), (2.5e9, "$2.5B"), (999.9, "$1k")],
)
def test_money_is_told_in_three_digits(value: float, shown: str) -> None:
    assert usd_short(value) == shown
