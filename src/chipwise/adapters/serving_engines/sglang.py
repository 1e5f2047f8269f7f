"""SGLang: models of the hub on GPUs, through `sglang.launch_server`."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

from chipwise.renderer.serving import flags
from chipwise.serving.engine import ReplicaRequest, ReplicaStart, ServingMachine, check_gpus, check_installed, openai_first

ABOUT = "SGLang: models of the hub on GPUs"
COMPONENTS: tuple[str, ...] = ("sglang",)
PROGRAM = "python3"
AT_ONCE = 256  # requests that it works on together unless told otherwise


def check(request: ReplicaRequest, machine: ServingMachine) -> None:
    check_gpus("SGLang", request, machine)
    is_installed = shutil.which(PROGRAM) is not None and find_spec("sglang") is not None
    check_installed("SGLang", is_installed, "python3 has no package sglang", "pip install 'sglang[all]'")


def start(request: ReplicaRequest) -> ReplicaStart:
    words = flags.sglang(flags.of_replica(request))
    return ReplicaStart(
        command=(*words, "--enable-metrics", *request.extra_words),
        at_once=request.at_once or AT_ONCE,
        first=openai_first(request.served),
    )
