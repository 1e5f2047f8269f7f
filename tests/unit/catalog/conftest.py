from __future__ import annotations

import pytest

from chipwise.catalog.catalog import Catalog
from chipwise.catalog.load import load
from chipwise.catalog.names import Names


@pytest.fixture(scope="module", autouse=True)
def _catalog() -> None:
    """The real one: here it is what is tested."""


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return load()


@pytest.fixture(scope="session")
def names(catalog: Catalog) -> Names:
    return Names(catalog)
