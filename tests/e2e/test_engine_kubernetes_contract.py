"""The contract suite of engines, on the real control plane: the same tests, with the cluster in place of this machine."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import pytest

from engines.kubernetes import Real
from kube.control_plane import Cluster

pytestmark = pytest.mark.e2e
SUITE = Path(__file__).parents[1] / "contract" / "test_engines.py"

_spec = importlib.util.spec_from_file_location("engine_contract", SUITE)
assert _spec is not None
assert _spec.loader is not None
_suite = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_suite)
# All that ask for a bench, without the names of engines that each is run with there.
globals().update(
    {
        name: FunctionType(test.__code__, test.__globals__, name)
        for name, test in vars(_suite).items()
        if name.startswith("test_") and "bench" in test.__code__.co_varnames[: test.__code__.co_argcount]
    }
)


@pytest.fixture
def bench(cluster: Cluster, namespace: str) -> Iterator[Real]:
    made = Real(cluster, namespace)
    try:
        yield made
    finally:
        made.close()
