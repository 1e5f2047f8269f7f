"""Plans by samples say how large a sample is counted, where nobody said it."""

from __future__ import annotations

from typing import Any

import pytest

import chipwise as cw


@pytest.mark.parametrize(
    ("model", "stated", "said"),
    [
        ("whisper-large-v3", {}, "Assumed of an item: 30 s of sound, 105 tokens written"),
        ("whisper-large-v3", {"clip": "10s", "output_tokens": 40}, ""),
        ("bge-large-en", {}, "Assumed of an item: 512 tokens; see input_tokens."),
        ("bge-large-en", {"input_tokens": 128}, ""),
        ("resnet50", {}, "Assumed of an item: 224 x 224 pixels; see image_size."),
        ("sdxl", {}, "Assumed of a picture: 30 denoising steps, 1024 x 1024 pixels"),
        ("sdxl", {"steps": 20}, "A picture: 20 denoising steps"),
    ],
)
def test_the_size_of_a_sample_is_said(model: str, stated: dict[str, Any], said: str) -> None:
    notes = cw.plan({"kind": "batch", "name": "pile", "model": model, "items": 1e5, **stated}).notes
    sizes = [one for one in notes if one.startswith(("Assumed of a", "A picture:"))]
    assert len(sizes) == bool(said)
    assert all(said in one for one in sizes)
