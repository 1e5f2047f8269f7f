"""Commands plan on the small catalog; a file that needs every offer says so with `pytestmark = pytest.mark.real_catalog`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from command import Chipwise
from small_catalog import few_offers


@pytest.fixture(scope="module", autouse=True)
def _catalog(request: pytest.FixtureRequest) -> Iterator[None]:
    with nullcontext() if request.node.get_closest_marker("real_catalog") else few_offers():
        yield


@pytest.fixture
def chipwise(tmp_path: Path) -> Chipwise:
    (tmp_path / "config" / "catalog").mkdir(parents=True)
    return Chipwise(tmp_path)
