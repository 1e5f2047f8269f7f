"""llama.cpp: GGUF files, on CPUs and on GPUs. Its server is `llama-server`, or the same from the package `xllamacpp`."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from chipwise.errors import BadInput, MissingExtra
from chipwise.serving.engine import ReplicaRequest, ReplicaStart, ServingMachine, openai_first

ABOUT = "llama.cpp: GGUF files on CPUs and GPUs"
COMPONENTS: tuple[str, ...] = ()
PROGRAM = "llama-server"
MAGIC = b"GGUF"
AT_ONCE = 4  # requests that it works on together unless told otherwise
ALL_LAYERS = 999  # on the GPU


def check(request: ReplicaRequest, machine: ServingMachine) -> None:
    path = Path(request.model)
    if not path.is_file():
        raise BadInput(
            f"llama.cpp serves a GGUF file, and {request.model} is no file here.",
            remedy="Give the file with --weights, or download one whose name ends in .gguf.",
        )
    with path.open("rb") as file:
        begins = file.read(4)
    if begins != MAGIC:
        raise BadInput(
            f"{path} is not a GGUF file.", remedy="llama.cpp's convert_hf_to_gguf.py makes one from a model of the hub."
        )
    if not shutil.which(PROGRAM) and find_spec("xllamacpp") is None:
        raise MissingExtra("llama.cpp (llama-server or xllamacpp)", "llama")


def start(request: ReplicaRequest) -> ReplicaStart:
    at_once = request.at_once or AT_ONCE
    program = shutil.which(PROGRAM)
    words = [program] if program else [sys.executable, "-P", "-m", "chipwise.adapters.serving_programs.llama_cpp"]
    words += ["--model", str(Path(request.model).absolute()), "--alias", request.served]
    words += ["--port", str(request.port), "--parallel", str(at_once)]
    if program:
        words += ["--host", request.host, "--metrics"]
    if request.context is not None:
        words += ["--ctx-size", str(request.context * at_once)]  # which the requests at once share
    if request.cpus:
        words += ["--threads", str(request.cpus)]
    if request.gpus:
        words += ["--n-gpu-layers", str(ALL_LAYERS)]
    return ReplicaStart(
        command=(*words, *request.extra_words), at_once=at_once, health="/health", first=openai_first(request.served)
    )
