"""Names people type, and models of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import BadInput, InvalidFile, UnknownName
from chipwise.workload.model.registry import find, load
from chipwise.workload.model.spelled import key

OWN = """
- name: our-model
  aliases: [our-org/our-model-7b]
  context: 8192
  shape: {layers: 32, hidden: 4096, heads: 32, ffn: 11008, vocab: 32000}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "models.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("llama-3.1-8b", "llama-3.1-8b"),
        ("Llama 3.1 8B", "llama-3.1-8b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3.1-8B", "llama-3.1-8b"),
        ("llama3.1:8b", "llama-3.1-8b"),
        ("LLAMA_3.1_8B", "llama-3.1-8b"),
        ("llama3.1:8b-instruct-q4_K_M", "llama-3.1-8b"),
        ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama-3.1-8b"),
        ("neuralmagic/Meta-Llama-3.1-405B-Instruct-FP8", "llama-3.1-405b"),
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16", "llama-3.3-70b"),
        ("TheBloke/Llama-2-70B-Chat-AWQ", "llama-2-70b"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "qwen2.5-72b"),
        ("Qwen/Qwen3-8B-FP8", "qwen3-8b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("deepseek-r1", "deepseek-v3"),
        ("ViT-B/16", "vit-b-16"),
        ("resnet50", "resnet-50"),
        ("sdxl", "stable-diffusion-xl"),
        ("gpt2", "gpt2"),
        ("facebook/opt-1.3b", "opt-1.3b"),
        ("bert-base-uncased", "bert-base"),
        ("flux-dev", "flux.1-dev"),
    ],
)
def test_a_name_as_people_type_it_finds_its_model(typed: str, meant: str) -> None:
    assert find(typed).name == meant


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("llama-3-13b", {"llama-3-8b", "llama-3-70b"}),  # Llama 3 came as 8B and 70B only
        ("meta-llama/Llama-3-13B-Instruct", {"llama-3-8b", "llama-3-70b"}),
        ("llama-3.1-18b", {"llama-3.1-8b"}),
        ("llama3.2", {"llama-3.2-1b", "llama-3.2-3b"}),
        ("lama-3.1-8b", {"llama-3.1-8b"}),
        ("mixtral-8x9b", {"mixtral-8x7b", "mixtral-8x22b"}),
        ("t5", {"t5-3b"}),
    ],
)
def test_a_model_that_does_not_exist_is_refused_with_the_nearest_that_do(typed: str, offered: set[str]) -> None:
    with pytest.raises(UnknownName) as caught:
        find(typed)

    assert offered <= set(caught.value.nearest)
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize("typed", ["", " ", "/", "-instruct", "../../etc/passwd", "x" * 10_000, "\x00", "模型"])
def test_what_is_no_name_is_refused(typed: str) -> None:
    with pytest.raises(UnknownName):
        find(typed)


def test_a_version_and_a_size_are_never_taken_for_each_other() -> None:
    assert key("llama-3.1-8b") != key("llama-3-18b") != key("llama-31-8b")


@given(
    st.sampled_from(load().names), st.sampled_from(["-Instruct", "-chat-hf", "-AWQ", "-GPTQ-Int4", "-v0.1", ""]), st.booleans()
)
def test_suffixes_and_owners_do_not_change_what_is_meant(name: str, suffix: str, owned: bool) -> None:
    found = find(("someone/" if owned else "") + name.upper() + suffix)

    assert found.shape == load().model(name).shape or found.name.startswith(name)


def test_a_users_own_model_joins_the_packaged_ones(tmp_path: Path) -> None:
    registry = load([write(tmp_path, OWN)])

    model = registry.find("our-org/our-model-7b")
    assert (model.name, model.context, model.shape.parameters) == ("our-model", 8192, 6_738_415_616)
    assert model.source == "your own file"
    assert registry.find("llama-3.1-8b").name == "llama-3.1-8b"
    with pytest.raises(UnknownName):
        find("our-model")


def test_a_users_own_row_takes_over_a_packaged_name(tmp_path: Path) -> None:
    text = "models:\n- {name: llama-3.1-8b, shape: {layers: 1, hidden: 64, heads: 1, ffn: 64, vocab: 10}}\n"

    registry = load([write(tmp_path, text)])

    assert registry.find("llama-3.1-8b").shape.parameters < 1e6
    assert len(registry) == len(load())


def test_a_users_pipeline_may_name_packaged_parts(tmp_path: Path) -> None:
    text = """
- name: our-pictures
  shape:
    kind: diffusion
    denoiser: {kind: unet, widths: [320, 640], depths: [1, 1], text_width: 768}
    text_encoders: [clip-l-text]
    vae: stable-diffusion-vae
"""
    assert load([write(tmp_path, text)]).find("our-pictures").shape.parameters > 123_060_480 + 83_653_863


def test_all_problems_of_a_file_are_told_at_once_with_their_lines(tmp_path: Path) -> None:
    text = """- name: first
  shape: {layers: 0, hidden: 64, heads: 3, ffn: 64, vocab: 10}
- name: second
  shap: {layers: 1}
- just a word
- name: first
  shape: {layers: 1, hidden: 64, heads: 1, ffn: 64, vocab: 10, colour: red}
"""
    with pytest.raises(InvalidFile) as caught:
        load([write(tmp_path, text)])

    told = str(caught.value)
    assert {problem.line for problem in caught.value.problems} == {1, 3, 5, 6}
    for part in ("shap: is not a field", "Did you mean shape", "stands here twice", "is not a mapping", "colour"):
        assert part in told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "name: x",
        "- [",
        "\t- x",
        "models: 5",
        "- {name: x, shape: &a {layers: *a}}",
        "- name: !!python/name:os.system x",
    ],
)
def test_a_file_that_is_no_list_of_models_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput):
        load([write(tmp_path, text)])


def test_a_file_that_is_missing_binary_or_huge_is_refused(tmp_path: Path) -> None:
    binary, huge = tmp_path / "binary.yaml", tmp_path / "huge.yaml"
    binary.write_bytes(b"\xff\xfe\x00\x80")
    huge.write_bytes(b"#" * 5_000_001)

    for path in (tmp_path / "none.yaml", tmp_path, binary, huge):
        with pytest.raises(BadInput):
            load([path])


def test_importing_the_registry_is_light() -> None:
    heavy = "('yaml', 'pydantic', 'numpy', 'json')"
    code = f"import sys, chipwise.workload.model.registry; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
