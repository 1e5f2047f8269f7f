"""What `tools/checks/get.py` got, for tests: a missing part skips the test with its name and the command."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from checks import get


def place(name: str) -> Path:
    found = get.places()[name]
    if not found.exists():
        pytest.skip(f"{name}: not found; see make tools (python tools/checks/get.py)")
    return found


@cache
def definitions(name: str) -> list[dict[str, Any]]:
    """Of custom resources, as the project publishes them."""
    folder = place(f"{name} definitions")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # megabytes of them: the plain one takes a minute
    return [yaml.load(path.read_text(encoding="utf-8"), Loader=loader) for path in sorted(folder.glob("*.yaml"))]


def triton_messages() -> ModuleType:
    """Triton's own description of a configuration, from its client; the client itself would need gRPC."""
    spec = importlib.util.find_spec("tritonclient")
    if spec is None or spec.origin is None:
        pytest.skip("tritonclient: not found; pip install tritonclient protobuf")
    path = Path(spec.origin).parent / "grpc" / "model_config_pb2.py"
    made = importlib.util.spec_from_file_location("model_config_pb2", path)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module
