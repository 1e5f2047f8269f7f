"""A short name of a model brings its own weights, and not those of another model of its shape."""

from __future__ import annotations

import pytest

from chipwise.renderer.hub_ids import closest_id, named_id
from chipwise.workload.model import registry

MEANT = {
    "deepseek-r1-7b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "deepseek-r1-8b": "deepseek-ai/DeepSeek-R1-Distill-Llama-8B",
    "deepseek-r1-14b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",
    "deepseek-r1-32b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-r1-70b": "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
    "deepseek-r1-671b": "deepseek-ai/DeepSeek-R1",
    "deepseek-v3-671b": "deepseek-ai/DeepSeek-V3",
    "mistral-large-2411": "mistralai/Mistral-Large-Instruct-2411",
    "mistral-large-2407": "mistralai/Mistral-Large-Instruct-2407",
    "phi-3-mini-4k": "microsoft/Phi-3-mini-4k-instruct",
    "phi-3-mini-128k": "microsoft/Phi-3-mini-128k-instruct",
    "phi-3.5-3.8b": "microsoft/Phi-3.5-mini-instruct",
    "phi-3-medium-128k": "microsoft/Phi-3-medium-128k-instruct",
    "sd-1.4": "CompVis/stable-diffusion-v1-4",
    "sd-1.5": "stable-diffusion-v1-5/stable-diffusion-v1-5",
    "t5-v1.1-3b": "google/t5-v1_1-xl",
    "t5-v1.1-11b": "google/t5-v1_1-xxl",
    "flan-t5-3b": "google/flan-t5-xl",
    "whisper-large-v1": "openai/whisper-large",
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B",
    "mistral-7b": "mistralai/Mistral-7B-v0.1",
    "qwen3-30b": "Qwen/Qwen3-30B-A3B",
    "ViT-B/16": "google/vit-base-patch16-224",
}


@pytest.mark.parametrize(("written", "meant"), MEANT.items())
def test_a_name_brings_its_own_weights(written: str, meant: str) -> None:
    known = registry.find(written)
    assert (named_id(written, known) or closest_id(written, known)) == meant


def test_an_id_with_its_owner_is_taken_as_it_is() -> None:
    known = registry.find("llama-3.1-8b")
    assert named_id("meta-llama/Llama-3.1-8B-Instruct", known) == "meta-llama/Llama-3.1-8B-Instruct"


def test_every_name_of_a_row_finds_weights_of_its_row() -> None:
    for known in registry.load():
        for name in (known.name, *known.aliases):
            found = named_id(name, known) or closest_id(name, known)
            assert found is None or found in known.aliases, name
