"""Reads an ONNX file in a process of its own, with bounds on its time and memory.

The library infers shapes in compiled code, which some damaged files bring down together with whoever runs it. What goes in is
the file without its weights, what comes back is the counted graph as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import astuple
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chipwise.adapters.graphs.sizes import Sizes
from chipwise.adapters.graphs.wire import without_weights
from chipwise.errors import BadInput, ChipwiseError, MissingExtra
from chipwise.files.handed import opened
from chipwise.workload.graph.values import Graph, Operator, OperatorKind

MOST_MEMORY = 4 << 30
MOST_SECONDS = 60
_REMEDY = "Check it with onnx.checker, or export the network again."


def read(path: Path, sizes: Sizes) -> Graph:
    """The network in `path`; BadInput where it is none that can be read, MissingExtra without the library."""
    title = path.name[:80]
    try:
        with opened(path) as stream:
            content = without_weights(stream, title)
    except FileNotFoundError as error:
        raise BadInput(f"There is no {str(path)[:200]}.", remedy="Check the path of the ONNX file.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"Cannot read {str(path)[:200]!r}: {reason}.", remedy="Check the path and its permissions.") from error
    if find_spec("onnx") is None:
        raise MissingExtra("Reading an ONNX file", "onnx")
    command = [sys.executable, "-P", "-m", __name__, title, json.dumps(astuple(sizes))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # the packages that are found here
    try:
        process = subprocess.run(
            command, input=content, capture_output=True, timeout=2 * MOST_SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BadInput(f"{title} could not be read within {2 * MOST_SECONDS} s.", remedy=_REMEDY) from error
    return _answer(process, title)


def _answer(process: subprocess.CompletedProcess[bytes], title: str) -> Graph:
    try:
        answer = json.loads(process.stdout)
    except ValueError as error:
        ending = _ending(process)
        raise BadInput(f"{title} cannot be read: the library onnx {ending} on it, so it is damaged.", remedy=_REMEDY) from error
    if "message" in answer:
        raise BadInput(answer["message"], remedy=answer["remedy"])
    operators = tuple(Operator(name, OperatorKind(kind), *rest) for name, kind, *rest in answer.pop("operators"))
    free = tuple((name, value) for name, value in answer.pop("free"))
    return Graph(operators=operators, free=free, notes=tuple(answer.pop("notes")), **answer)


def _ending(process: subprocess.CompletedProcess[bytes]) -> str:
    if process.returncode >= 0:
        return "failed"
    if -process.returncode == signal.SIGXCPU:
        return f"took more than {MOST_SECONDS} s"
    return "crashed"


def _bound() -> None:
    with suppress(ImportError, OSError, ValueError):  # where the system has no such bounds, or lower ones already
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def _fields(graph: Graph) -> dict[str, Any]:
    return {name: getattr(graph, name) for name in Graph.__dataclass_fields__} | {
        "operators": [astuple(operator) for operator in graph.operators]
    }


def main() -> None:
    """The other process: a file without weights comes in, JSON goes out."""
    from chipwise.adapters.graphs.onnx_file import read as read_here

    _bound()
    title, sizes = sys.argv[1:]
    try:
        answer = _fields(read_here(sys.stdin.buffer.read(), title, Sizes(*json.loads(sizes))))
    except ChipwiseError as error:
        answer = {"message": error.message, "remedy": error.remedy}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
