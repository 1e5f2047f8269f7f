"""Weights whose format nobody states are served as they are published, as a plan serves them, and the prediction says so."""

from __future__ import annotations

import pytest

import chipwise


@pytest.mark.parametrize(
    ("model", "chip", "taken", "note"),
    [
        ("deepseek-v3", "h200", "fp8", "The weights are in fp8, as published."),
        ("deepseek-v3", "a100-80", "bf16", "The weights are published in fp8, which this chip does not have: bf16 is used."),
        ("gpt-oss-120b", "h100", "fp4", "The weights are in fp4, as published."),
        ("llama-3.1-70b", "h200", "bf16", ""),
    ],
)
def test_the_published_format_is_the_default(model: str, chip: str, taken: str, note: str) -> None:
    found = chipwise.predict(model, serve=True, on=chip, tp=8).to_dict()
    assert found["setup"]["weights"] == taken
    held = chipwise.fits(model, on=chip, tp=8).to_dict()
    for answer in (found, held):
        assert [one for one in answer["notes"] if one.startswith("The weights")] == ([note] if note else [])


def test_fits_takes_the_format_that_predict_takes() -> None:
    """One H100 holds the weights of gpt-oss-120b as they are published, and not in 16 bits."""
    assert chipwise.fits("gpt-oss-120b", on="h100").to_dict()["fit"]["fits"]
    assert not chipwise.fits("gpt-oss-120b", on="h100", precision="bf16").to_dict()["fit"]["fits"]
    assert chipwise.predict("gpt-oss-120b", serve=True, on="h100").to_dict()["fit"]["fits"]


def test_a_stated_format_is_kept() -> None:
    found = chipwise.predict("deepseek-v3", serve=True, on="h200", tp=8, precision="bf16").to_dict()
    assert found["setup"]["weights"] == "bf16"
    assert not any(one.startswith("The weights") for one in found["notes"])
