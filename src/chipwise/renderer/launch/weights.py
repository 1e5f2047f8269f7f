"""What an engine needs before it answers: weights that the hub gives to accounts that accepted terms, a template, and time.

The hub is not asked: that weights are behind terms is known of families whose publishers ask for them, and that a model has no
template of a dialogue follows from its name."""

from __future__ import annotations

import re
from dataclasses import replace

from chipwise.renderer.deployment import Form, Model, Software
from chipwise.renderer.launch.health import loading_seconds

GATED = re.compile(
    r"meta-llama/|google/(?:gemma|paligemma|codegemma)|mistralai/(?:Mi|Co|Pi)stral|mistralai/Mixtral|CohereLabs/|CohereForAI/|"
    r"bigcode/starcoder|black-forest-labs/FLUX\.1-dev|stabilityai/stable-diffusion-3|nvidia/Llama",
    re.IGNORECASE,
)
_TALKS = re.compile(
    r"instruct|chat|assistant|dialog|rlhf|dpo|-it(?:-|$)|r1|qwq|qwen3|gpt-oss|command|kimi|deepseek-v3|tulu|hermes",
    re.IGNORECASE,
)
_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
_ENGINES = ("vllm", "tgi", "sglang", "tei")
REPOSITORY = "--model-repository="
READY_S = 600  # after which vLLM gives up its own engine, unless it is given longer
READY_KEY = "VLLM_ENGINE_READY_TIMEOUT_S"


def weight_notes(software: Software, model: Model | None, form: Form) -> tuple[str, ...]:
    """What a reader must do first; nothing for a program of the user's own, or for weights that are there already."""
    if model is not None and software.engine == "triton" and form is Form.SERVICE and not software.is_custom:
        return (repository_note(software, model),)
    if model is None or software.engine not in _ENGINES or model.hub is None or model.source != model.hub:
        return ()
    notes = []
    settings = {key for key, _ in software.env} | {key for key, _, _ in software.secrets}
    if GATED.match(model.hub) and not settings & set(_TOKENS):
        notes.append(
            f"{model.hub} is given to accounts that accepted its terms: accept them on the hub, store a token, and add"
            " `program: {secrets: {HF_TOKEN: NAME/KEY}}` to the workload, or put the weights into the path of a volume."
        )
    if form is Form.SERVICE and model.generates and not _TALKS.search(model.hub.rpartition("/")[2]):
        notes.append(
            f"{model.hub} has no chat template by its name: /v1/completions answers, /v1/chat/completions does not. For a"
            " dialogue name the variant that was trained for it (model: OWNER/NAME-Instruct), or give --chat-template."
        )
    return tuple(notes)


def repository(software: Software) -> str:
    """The directory that Triton serves."""
    return next(word.partition("=")[2] for word in software.command if word.startswith(REPOSITORY))


def repository_note(software: Software, model: Model) -> str:
    return (
        f"Triton fetches nothing: {repository(software)} must hold the model's directory, {model.served}, with its config.pbtxt"
        " (`--to triton` writes it) and the model's own file. Until then no replica is ready."
    )


def handed_repository(software: Software, folder: str) -> Software:
    """The same, serving what another stage leaves in a folder."""
    return replace(
        software, command=tuple(f"{REPOSITORY}{folder}" if word.startswith(REPOSITORY) else word for word in software.command)
    )


def patient(software: Software, model: Model | None, kind: str) -> Software:
    """vLLM with the time that it takes to start, on this kind of device, where that is longer than it waits by itself."""
    needed = loading_seconds(model, kind)
    if software.engine != "vllm" or needed <= READY_S or READY_KEY in dict(software.env):
        return software
    return replace(software, env=tuple(sorted((*software.env, (READY_KEY, str(needed))))))
