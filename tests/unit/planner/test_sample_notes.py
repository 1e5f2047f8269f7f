"""Plans by samples say how large a sample is counted, where nobody said it."""

from __future__ import annotations

from typing import Any

import pytest

import chipwise as cw


@pytest.mark.parametrize(
    ("model", "stated", "said"),
    [
        ("whisper-large-v3", {}, "Assumed per item: 30 s of audio, 105 output tokens, sequential"),
        ("whisper-large-v3", {"clip": "10s", "output_tokens": 40}, ""),
        ("bge-large-en", {}, "Assumed per item: 512 tokens; see input_tokens."),
        ("bge-large-en", {"input_tokens": 128}, ""),
        ("resnet50", {}, "Assumed per item: 224 x 224 pixels; see image_size."),
        ("sdxl", {}, "Assumed per picture: 30 denoising steps, 1024 x 1024 pixels"),
        ("sdxl", {"steps": 20}, "A picture: 20 denoising steps"),
    ],
)
def test_the_size_of_a_sample_is_said(model: str, stated: dict[str, Any], said: str) -> None:
    notes = cw.plan({"kind": "batch", "name": "pile", "model": model, "items": 1e5, **stated}).notes
    sizes = [one for one in notes if one.startswith(("Assumed per ", "A picture:"))]
    assert len(sizes) == bool(said)
    assert all(said in one for one in sizes)
