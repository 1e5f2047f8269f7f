from __future__ import annotations

import pytest

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import load
from chipwise.perf.part import Parts


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load(prices=False)


@pytest.fixture(scope="session")
def parts(catalog: Catalog) -> Parts:
    return Parts(catalog.chips.values())
