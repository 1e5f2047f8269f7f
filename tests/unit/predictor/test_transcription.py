"""Speech that is written down: published runs lie within the interval, and the answer says what it rests on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan, predict
from chipwise.perf.arrays import Coded
from chipwise.perf.model import Estimate
from chipwise.perf.seen import FORMULA
from chipwise.predictor.samples import _resolved, programs_of
from chipwise.predictor.transcription import Programs, Transcription, programs, published

ARCHIVE = "kind: batch\nname: archive\nmodel: whisper-large-v3\nitems: 100000\n"


@cache
def session() -> Session:
    return open_session()


def asked(run: Transcription) -> Any:
    known = session().known
    ask = _resolved(known, run.model, run.chip, {"chips": run.chips})
    return replace(ask, programs=programs_of(known, known.find_model(run.model).shape))


@pytest.mark.parametrize("run", published(), ids=lambda run: f"{run.program} {run.chip} {run.batch:g} {run.audio_s:g}s")
def test_published_transcriptions_lie_within_the_interval(run: Transcription) -> None:
    """They made the interval, so this says nothing of others; the middle is not theirs."""
    found = asked(run).passes([run.at_once / run.chips])
    seconds = run.passes * np.array([found.low[0], found.high[0]]) / 1e3
    assert 0.999 * seconds[0] <= run.seconds <= 1.001 * seconds[1]


def test_runs_of_a_program_that_is_left_out_mostly_lie_within_the_interval_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    every, inside = published(), []
    for name in {run.program for run in every}:
        monkeypatch.setattr(
            "chipwise.predictor.transcription.published",
            lambda name=name: tuple(run for run in every if run.program != name),
        )
        pass_s = {run: float(replace(asked(run), programs=None).passes([run.at_once / run.chips]).seconds[0]) for run in every}
        made = programs(pass_s.__getitem__)
        own = [run.seconds / (run.passes * pass_s[run]) for run in every if run.program == name]
        inside += [made.fastest <= times <= made.slowest for times in own]
    assert sum(inside) / len(inside) >= 0.8  # as four of five of all intervals


def test_tokens_written_follow_the_seconds_of_sound() -> None:
    thirty, ten = (
        predict(session(), "whisper-small", "a100-40", "serve", {"clip_s": seconds, "batch": 1})["sample"]["generated"]
        for seconds in (30, 10)
    )
    assert (thirty, ten) == pytest.approx((105, 35))


def test_a_plan_says_what_the_speed_of_transcription_rests_on() -> None:
    found = plan(session(), "archive.yaml", text=ARCHIVE)
    assert any(note.startswith("It rests on 19 published transcriptions of Whisper by faster-whisper") for note in found.notes)


def test_what_a_user_measured_keeps_its_interval() -> None:
    one = np.ones(1)
    made = Programs(usual=4.0, fastest=1.0, slowest=20.0, runs=3, names=("a",))

    def estimate(near: str) -> Estimate:
        return Estimate(
            value=one, low=0.9 * one, high=1.1 * one, seconds=one, terms={"matrix": one}, provenance=Coded.of(near), spread=one
        )

    wide, narrow = made.slow(estimate(FORMULA), rate=False), made.slow(estimate("measured"), rate=False)
    assert (wide.value[0], wide.low[0], wide.high[0]) == (4.0, 1.0, 20.0)
    assert (narrow.value[0], narrow.low[0], narrow.high[0]) == pytest.approx((4.0, 3.6, 4.4))
    assert sum(values[0] for values in wide.terms.values()) == wide.seconds[0] == 4.0
    rate = made.slow(estimate(FORMULA), rate=True)
    assert (rate.value[0], rate.low[0], rate.high[0]) == (0.25, 0.05, 1.0)
