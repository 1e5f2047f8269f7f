"""The model that a container or a task serves, by its flags, settings or object, and the least that it takes to load."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chipwise.auditor.commands import Word, value_of, words_of_container
from chipwise.auditor.pods import Pod, variables
from chipwise.auditor.source import Located, line_of, look
from chipwise.auditor.tasks import Task, settings_of
from chipwise.workload.model import registry
from chipwise.workload.model.registry import Model

MODEL_FLAGS = ("--model", "--model-id", "--model_id", "--model-path", "--model_path", "serve")
_SETTING = re.compile(r"(?:\w+_)?MODEL(?:_ID|_NAME|_PATH)?")
_SIZE = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
_FOUR_BITS = ("awq", "gptq", "int4", "w4a16", "nvfp4", "mxfp4", "gguf")
_EIGHT_BITS = ("bnb", "bitsandbytes", "eetq", "fp8", "int8", "w8a8")
_SHARED_BY_EXPERTS = 0.85  # of what names such as 8x7B promise: experts share their attention
START_S = 60.0  # of the program, before it loads anything
LOADING_BYTES_PER_S = 1e9


def model_of(pod: Pod, container: Located) -> Word | None:
    """By a flag, else by a setting, else by what the object says."""
    settings = list(variables(container))
    by_object = _of_object(pod, container)
    return _expanded(value_of(words_of_container(container), MODEL_FLAGS), settings) or _set(settings) or by_object


def model_of_task(task: Task) -> Word | None:
    settings = list(settings_of(task))
    return _expanded(value_of(task.words, MODEL_FLAGS), settings)


def _of_object(pod: Pod, container: Located) -> Word | None:
    """What KServe fetches, whose place is `/mnt/models` in a command."""
    if pod.owner.kind == "InferenceService" and container.get("storageUri"):
        return Word(_bare(str(container["storageUri"])), line_of(container, "storageUri"))
    model = look(pod.owner.body, "spec", "model")
    if pod.owner.kind == "LLMInferenceService" and look(model, "uri"):
        return Word(_bare(str(look(model, "uri"))), line_of(model, "uri"))
    return None


def _bare(address: str) -> str:
    return address.partition("://")[2] or address


def _set(settings: Sequence[tuple[str, str, int]]) -> Word | None:
    return next((Word(value, line) for name, value, line in settings if _SETTING.fullmatch(name)), None)


def _expanded(word: Word | None, settings: Sequence[tuple[str, str, int]]) -> Word | None:
    """A flag that takes its value from a setting; a directory is no name."""
    if word is None or word.text.startswith("/"):
        return None
    if "$" not in word.text:
        return word
    name = word.text.strip("$(){}\"'")
    return next((Word(value, word.line) for key, value, _ in settings if key == name), None)


def known(name: str) -> Model | None:
    return registry.load().known(name.strip("/"))


def bits(words: Sequence[Word], name: str) -> float:
    """Of one weight, by what the command or the name says."""
    model = known(name)
    text = " ".join([name, *(word.text for word in words), model.published_precision if model else ""]).lower()
    if any(sign in text for sign in _FOUR_BITS):
        return 4.0
    if any(sign in text for sign in _EIGHT_BITS):
        return 8.0
    return 32.0 if "float32" in text else 16.0


def weight_bytes(words: Sequence[Word], name: str) -> float:
    """0 where neither the registry nor the name tells how large it is."""
    return _parameters(name) * bits(words, name) / 8


def loading_seconds(words: Sequence[Word], name: str) -> float:
    """A lower bound: the start of the program, and the weights at the speed of a fast disk."""
    return START_S + weight_bytes(words, name) / LOADING_BYTES_PER_S


def _parameters(name: str) -> float:
    model = known(name)
    if model and model.published_parameters:
        return float(model.published_parameters)
    size = _SIZE.search(name.rstrip("/").rpartition("/")[2])
    return int(size[1] or 1) * float(size[2]) * 1e9 * (_SHARED_BY_EXPERTS if size[1] else 1.0) if size else 0.0
