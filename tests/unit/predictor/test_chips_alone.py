"""Chips without a split: they are split as a plan splits them, and what has no room on them has no speed."""

from __future__ import annotations

import pytest

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import fits, predict
from chipwise.errors import BadInput

SESSION = open_session()
LARGE, SMALL = "llama-3.1-70b", "llama-3.1-8b"


def test_a_large_model_is_cut_where_one_chip_is_too_small() -> None:
    found = predict(SESSION, LARGE, "h100", "serve", {"chips": 8})
    assert found["fit"]["fits"]
    assert found["setup"]["tp"] * found["setup"]["pp"] * found["replicas"] == found["chips"] == 8


def test_no_other_split_of_the_chips_answers_more() -> None:
    best = predict(SESSION, LARGE, "h100", "serve", {"chips": 8})["requests_per_s"]["value"]
    for tp in (1, 2, 4, 8):
        other = predict(SESSION, LARGE, "h100", "serve", {"chips": 8, "tp": tp})
        assert other["requests_per_s"] is None or other["requests_per_s"]["value"] <= best * 1.0001


def test_a_small_model_is_copied() -> None:
    found = predict(SESSION, SMALL, "h100", "serve", {"chips": 4})
    assert (found["setup"]["tp"], found["replicas"]) == (1, 4)


def test_chips_that_no_split_uses_are_named() -> None:
    found = predict(SESSION, LARGE, "h100", "serve", {"chips": 3})
    assert (found["chips"], found["idle_chips"]) == (2, 1)
    assert "1 chip of 3 would be idle: one copy takes 2, so 2 or 4 are used in full." in found["notes"]


def test_the_split_is_named_with_what_it_was_taken_for() -> None:
    """Goals and a rate alone may take different splits of the same chips: each says which, and by what."""
    load = {"chips": 8, "rate": 1.0, "input_tokens": 1024, "output_tokens": 256}
    plain, kept = (predict(SESSION, LARGE, "h100", "serve", load | goals) for goals in ({}, {"tpot": 0.03}))
    for found, reason in ((plain, "it answers most."), (kept, "it answers most within the goals")):
        (note,) = [one for one in found["notes"] if one.startswith("Of the splits with room")]
        assert f"with tp {found['setup']['tp']:g}" in note
        assert reason in note
    if plain["setup"] != kept["setup"]:
        assert f"with tp {plain['setup']['tp']:g}" in next(one for one in kept["notes"] if "without goals" in one)


def test_more_chips_than_copies_are_no_split_of_ours() -> None:
    with pytest.raises(BadInput, match="not --tp x --pp x --replicas"):
        predict(SESSION, LARGE, "h100", "serve", {"chips": 8, "replicas": 2})


@pytest.mark.parametrize("task", ["serve", "train"])
def test_what_does_not_fit_has_no_speed(task: str) -> None:
    found = predict(SESSION, LARGE, "h100", task, {"chips": 1, "tp": 1})
    assert not found["fit"]["fits"]
    assert found["memory"]["total_bytes"] > found["fit"]["capacity_bytes"]
    speeds = {"requests_per_s", "output_tokens_per_s", "step_time", "tokens_per_s", "power_per_chip", "most_sequences"}
    assert {found[name] for name in speeds & set(found)} == {None}
    assert not any("served" in note or "answered" in note for note in found["notes"])


def test_one_number_says_what_an_overloaded_service_answers() -> None:
    found = predict(SESSION, SMALL, "h100", "serve", {"rate": 1000.0, "input_tokens": 500, "output_tokens": 200})
    assert found["requests_per_s"]["value"] == pytest.approx(found["most_requests_per_s"])
    assert "ttft_ms" not in found
    assert found["percentiles"] is None


def test_the_longest_context_is_no_longer_than_the_model_knows() -> None:
    found = fits(SESSION, SMALL, "h100", {"chips": 8})
    assert found["largest"]["longest context"] == 131072
    assert any("Memory would hold" in note and "131,072" in note for note in found["notes"])
    assert found["tokens"] == 4096
