"""What was measured fits a terminal of 80 columns, and says of which runs it is."""

from __future__ import annotations

import pytest

from chipwise.cli.bench import _show
from chipwise.runner.bench.values import BenchPlace, Result, Run, Unknown


def run(speed: float | None, **more: object) -> Run:
    told = {
        "job": "j",
        "seconds": 10.0,
        "steps": 5,
        "attempts": 1,
        "usd": None,
        "usd_per_hour": None,
        "neighbours": 0,
        "reason": "",
    }
    return Run(speed=speed, **(told | more))  # type: ignore[arg-type]


def shown(capsys: pytest.CaptureFixture[str], *found: Result) -> str:
    _show(list(found))
    return capsys.readouterr().out


def test_what_no_place_has_takes_no_room(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, Result(BenchPlace("local", "local"), "steps", (run(3.0),), {}, Unknown("nobody knows it")))
    assert out.splitlines()[0].split() == ["on", "steps/s", "a", "run", "attempts"]
    assert "Ratio" not in out
    assert "USD" not in out


def test_names_of_places_are_whole_beside_prices_of_a_step(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    predicted = {"throughput": 794.4, "throughput_low": 468.4, "throughput_high": 1347.0}
    runs = (run(80.35, usd_per_hour=0.005), run(81.0, usd_per_hour=0.005))
    out = shown(capsys, Result(BenchPlace("local:cpus=2", "local"), "steps", runs, predicted, Unknown("nobody knows it")))
    assert max(map(len, out.splitlines())) <= 80
    assert "\nlocal:cpus=2 " in out
    assert "1.72e-08" in out


def test_a_run_without_a_figure_is_not_told_as_if_there_were_none(capsys: pytest.CaptureFixture[str]) -> None:
    runs = (run(3.0), run(None, reason="it was over too soon"))
    out = shown(capsys, Result(BenchPlace("local", "local"), "steps", runs, {}, Unknown("nobody knows it")))
    assert "1 of 2 runs at local was not measured: it was over too soon." in out
