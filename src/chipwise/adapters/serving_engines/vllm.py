"""vLLM: models of the hub on GPUs, through `vllm serve`."""

from __future__ import annotations

import shutil

from chipwise.renderer.serving import flags
from chipwise.serving.engine import ReplicaRequest, ReplicaStart, ServingMachine, check_gpus, check_installed, openai_first

ABOUT = "vLLM: models of the hub on GPUs"
COMPONENTS: tuple[str, ...] = ("vllm",)
PROGRAM = "vllm"
AT_ONCE = 256  # requests that it works on together unless told otherwise


def check(request: ReplicaRequest, machine: ServingMachine) -> None:
    check_gpus("vLLM", request, machine)
    check_installed("vLLM", shutil.which(PROGRAM) is not None, "there is no program `vllm`", "pip install vllm")


def start(request: ReplicaRequest) -> ReplicaStart:
    words = flags.vllm(flags.of_replica(request))
    return ReplicaStart(
        command=(*words, *request.extra_words), at_once=request.at_once or AT_ONCE, first=openai_first(request.served)
    )
