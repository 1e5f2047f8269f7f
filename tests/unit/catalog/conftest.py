from __future__ import annotations

import pytest

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import load
from chipwise.catalog.names import Names


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load()


@pytest.fixture(scope="session")
def names(catalog: Catalog) -> Names:
    return Names(catalog)
