"""Pictures from the command line: without tokens, and with the steps and the size that are counted."""

from __future__ import annotations

import pytest

from chipwise.planner.options import text_of
from command import Chipwise

SERVE = ("sdxl", "--serve", "--rps", "1", "--cloud", "aws,lambda", "--on-demand")


def test_a_service_for_pictures_needs_no_tokens_and_states_steps_and_size(chipwise: Chipwise) -> None:
    done = chipwise("plan", *SERVE)
    assert (done.code, done.err) == (0, "")
    assert "Assumed per picture: 30 denoising steps, 1024 x 1024 pixels; see --steps." in " ".join(done.out.split())
    assert "per token" not in done.out


def test_half_the_steps_cost_about_half(chipwise: Chipwise) -> None:
    usual, fewer = (chipwise("plan", *SERVE, *more, "--json").json for more in ((), ("--steps", "15")))
    assert any("A picture: 15 denoising steps, 1024 x 1024 pixels." in note for note in fewer["notes"])
    assert 0.4 < fewer["winner"]["usd"] / usual["winner"]["usd"] < 0.75


def test_steps_of_a_language_model_are_refused_by_their_flag(chipwise: Chipwise) -> None:
    done = chipwise("plan", "llama-3.1-8b", "--serve", "--rps", "1", "--input", "5", "--output", "5", "--steps", "9")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("chipwise: --steps: llama-3.1-8b makes no pictures in steps")


@pytest.mark.parametrize(("model", "needs"), [("sdxl", False), ("resnet-50", False), ("llama-3.1-8b", True)])
def test_only_language_models_are_asked_for_lengths(chipwise: Chipwise, model: str, needs: bool) -> None:
    if needs:
        done = chipwise("plan", model, "--serve", "--rps", "1")
        assert (done.code, done.out) == (2, "")
        assert "--input, --output are needed" in done.err
    else:
        assert "_tokens" not in text_of(model, {"serve": True, "rps": 1})
