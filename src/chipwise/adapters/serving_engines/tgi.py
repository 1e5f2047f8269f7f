"""TGI: Text Generation Inference of Hugging Face, through `text-generation-launcher`."""

from __future__ import annotations

import shutil

from chipwise.renderer.serving import flags
from chipwise.serving.engine import FirstRequest, ReplicaRequest, ReplicaStart, ServingMachine, check_gpus, check_installed

ABOUT = "TGI: Text Generation Inference, models of the hub on GPUs"
COMPONENTS: tuple[str, ...] = ("tgi",)
PROGRAM = "text-generation-launcher"
AT_ONCE = 256  # requests that it works on together unless told otherwise


def check(request: ReplicaRequest, machine: ServingMachine) -> None:
    check_gpus("TGI", request, machine)
    remedy = "Run this inside its image, ghcr.io/huggingface/text-generation-inference."
    check_installed("TGI", shutil.which(PROGRAM) is not None, f"there is no program `{PROGRAM}`", remedy)


def start(request: ReplicaRequest) -> ReplicaStart:
    words = flags.tgi(flags.of_replica(request))
    return ReplicaStart(
        command=(*words, *request.extra_words),
        at_once=request.at_once or AT_ONCE,
        first=FirstRequest("/generate_stream", {"inputs": "Hello", "parameters": {"max_new_tokens": 1}}),
    )
