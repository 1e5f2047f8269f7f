"""A run that was measured, from Python."""

from __future__ import annotations

import pytest

from chipwise.errors import BadInput
from chipwise.public.session import Session

RUN = {"on": "a100", "takes": "8s", "per": "step"}


def test_a_prediction_takes_runs_as_text_and_as_mappings(session: Session) -> None:
    plain = session.predict("llama-3.2-1b", train=True, on="a100", global_batch=64)
    for measured in ("a100=8s/step", RUN, ["a100=8s/step"], [RUN]):
        moved = session.predict("llama-3.2-1b", train=True, on="a100", global_batch=64, measured=measured)
        assert moved.figures["step_time"].value == pytest.approx(8.0)
        assert moved.figures["step_time"].value != plain.figures["step_time"].value


def test_a_plan_says_what_it_rests_on(session: Session) -> None:
    work = {"kind": "train", "name": "own", "epochs": 3, "limits": {"chips": ["l40s"], "clouds": ["aws"]}}
    plan = session.plan(work, measured="rtx-4090=6h/epoch")
    assert plan.to_dict()["notes"][0] == "Speed from your 6 h per epoch on one RTX-4090."


def test_a_run_that_is_none_is_refused(session: Session) -> None:
    with pytest.raises(BadInput, match="neither a time nor a rate"):
        session.predict("llama-3.2-1b", train=True, on="h100", measured="a100=fast")
