"""llama.cpp's own OpenAI server from the package `xllamacpp`, for machines without the program `llama-server`.

python -m chipwise.adapters.serving_programs.llama_cpp --model tiny.gguf --port 8000
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from importlib import import_module
from typing import Any


def parameters(library: Any, options: argparse.Namespace) -> Any:
    settings = library.CommonParams()
    settings.model.path = options.model
    settings.model_alias = {options.alias} if isinstance(settings.model_alias, set) else options.alias
    settings.port = options.port
    settings.n_parallel = options.parallel
    settings.n_ctx = options.ctx_size
    settings.endpoint_metrics = True
    settings.endpoint_slots = True
    settings.n_gpu_layers = options.n_gpu_layers
    if options.embeddings:
        settings.embedding = True
        settings.pooling_type = getattr(library.llama_pooling_type, f"LLAMA_POOLING_TYPE_{options.pooling.upper()}")
    if options.threads:
        settings.cpuparams.n_threads = options.threads
        settings.cpuparams_batch.n_threads = options.threads
    return settings


def options_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="chipwise llama.cpp")
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", default="default")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--ctx-size", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--n-gpu-layers", type=int, default=0)
    parser.add_argument("--embeddings", action="store_true")
    parser.add_argument("--pooling", choices=("mean", "cls", "last"), default="mean")
    return parser


def main(words: list[str]) -> int:
    options = options_parser().parse_args(words)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    library = import_module("xllamacpp")
    server = library.Server(parameters(library, options))
    print(f"llama.cpp serves {options.model} at {server.listening_address}", flush=True)
    while not ended.wait(0.5):  # a wait without end would not see the signal while another thread works
        pass
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
