"""A training of which no split is stated: when it is searched, and that what is stated stays."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from chipwise.api.session.config import Config
from chipwise.api.session.wiring import Session
from chipwise.predictor.predict import predict
from chipwise.views.predict import prediction_view


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    home: Path = tmp_path_factory.mktemp("home")
    return Session(Config(home / "config", home / "data"), date(2026, 11, 15), [])


def trained(session: Session, model: str, chips: int, **settings: Any) -> dict[str, Any]:
    return prediction_view(predict(session.known, model, "h100", "train", {"chips": chips, **settings}))


def searched(view: dict[str, Any]) -> bool:
    return any(note.startswith("No split is stated") for note in view["notes"])


def test_a_model_of_405b_is_cut_as_its_makers_use_16384_h100(session: Session) -> None:
    view = trained(session, "llama-3.1-405b", 16384, seq=8192, global_batch=2048)  # published: 38 to 41% of the peak
    assert 0.35 < view["mfu"] < 0.43
    assert searched(view)
    assert view["setup"]["tp"] * view["setup"]["pp"] >= 32
    assert view["setup"]["global_batch"] == 2048


def test_what_is_searched_is_no_slower_than_what_is_stated(session: Session) -> None:
    batch = {"seq": 8192, "global_batch": 2048}
    free = trained(session, "llama-3.1-405b", 16384, **batch)
    stated = trained(session, "llama-3.1-405b", 16384, tp=8, pp=16, micro_batch=1, **batch)
    assert free["step_time"]["value"] <= 1.02 * stated["step_time"]["value"]
    assert not searched(stated)
    assert stated["setup"]["pp"] == 16


def test_within_one_machine_a_model_that_fits_is_not_cut(session: Session) -> None:
    view = trained(session, "llama-3.1-8b", 8, seq=4096, micro_batch=2)
    assert not searched(view)
    assert view["setup"]["zero_stage"] == 3


@pytest.mark.parametrize("stated", [{"zero": 3}, {"tp": 2}, {"framework": "composer"}, {"method": "lora"}])
def test_a_stated_cut_or_software_that_cuts_no_layers_is_predicted_as_it_is(session: Session, stated: dict[str, Any]) -> None:
    assert not searched(trained(session, "llama-3.1-8b", 16, **stated))


def test_recomputation_and_micro_batch_stay_as_stated(session: Session) -> None:
    view = trained(session, "llama-3.1-8b", 32, seq=4096, global_batch=128, micro_batch=2, recompute="full")
    assert searched(view)
    assert (view["setup"]["micro_batch"], view["setup"]["recompute"]) == (2, "full")


def test_what_fits_in_no_way_says_what_would_help(session: Session) -> None:
    view = trained(session, "llama-3.1-405b", 16)
    assert not view["fit"]["fits"]
    assert view["fit"]["smallest_change"]
