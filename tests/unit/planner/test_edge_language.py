"""Language models on small devices run as their weights are published; what narrower ones would save, or make possible, is
told."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.api.verbs import plan
from chipwise.planner.explain.reason_words import missing_words
from chipwise.planner.explain.remedy_words import remedy_words
from chipwise.planner.reasons.limits import RuleKind
from chipwise.planner.values.plan import Obstacle, Plan

SESSION = Session(Config(Path("none/config"), Path("none/data")), date(2026, 11, 15), [])


def kiosk(model: str, more: str = "", limits: str = "where: edge") -> Plan:
    text = f"kind: serve\nname: kiosk\nmodel: {model}\narrival: {{rate: 0.02 req/s}}\ndevices: 5\n"
    found = plan(
        SESSION, "kiosk.yaml", text=f"{text}input_tokens: 300\noutput_tokens: 100\n{more}limits: {{{limits}}}\n", top=50
    )
    assert isinstance(found, Plan)
    return found


def test_nothing_is_narrowed_unasked() -> None:
    found = kiosk("llama-3.2-3b")
    assert found.winner is not None
    assert {one.precision for one in found.choices} == {"fp16"}
    (beside,) = [one.choice for one in found.alternatives if one.kind is RuleKind.PRECISION]
    assert beside.precision in ("int8", "int4")
    lifted = kiosk("llama-3.2-3b", f"precision: {beside.precision}\n").winner
    assert lifted is not None
    assert lifted.machine == beside.machine
    assert lifted.usd == pytest.approx(beside.usd)
    assert lifted.usd < found.winner.usd


def test_weights_that_fit_no_device_as_published_tell_in_which_format_they_would() -> None:
    found = kiosk("llama-3.3-70b")
    assert found.winner is None
    (missing,) = found.missing
    assert missing.what is Obstacle.MEMORY
    assert "llama-3.3-70b in fp16 needs more than 70% of the device's memory" in missing_words(missing)
    assert "--precision int4 (5 x edge " in remedy_words(missing)
    assert kiosk("llama-3.3-70b", "precision: int4\n").winner is not None


def test_formats_that_are_allowed_are_used() -> None:
    found = kiosk("llama-3.2-3b", limits="where: edge, precision: [int8]")
    assert found.winner is not None
    assert {one.precision for one in found.choices} == {"int8"}
    assert not any(one.kind is RuleKind.PRECISION for one in found.alternatives)
    everything = kiosk("llama-3.2-3b", limits="where: edge, precision: any").winner
    assert everything is not None
    assert everything.usd <= found.winner.usd
    unable = kiosk("llama-3.2-3b", limits="where: edge, precision: [fp8]")
    assert [one.what for one in unable.missing] == [Obstacle.PRECISION]


def test_weights_published_in_four_bits_stay_as_wide() -> None:
    found = kiosk("gpt-oss-20b")
    assert found.winner is not None
    assert {one.precision for one in found.choices} == {"int4"}
    assert not any(one.kind is RuleKind.PRECISION for one in found.alternatives)
