from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from command import Chipwise
from small_catalog import few_offers


@pytest.fixture
def chipwise(tmp_path: Path) -> Chipwise:
    (tmp_path / "config" / "catalog").mkdir(parents=True)
    return Chipwise(tmp_path)


@pytest.fixture(scope="module")
def small_catalog() -> Iterator[None]:
    """For files that plan and whose law holds for any catalog."""
    with few_offers():
        yield
