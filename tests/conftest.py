"""Options of the test run."""

from __future__ import annotations

import pytest
from hypothesis import settings

# Machines are noisy: a law is not broken because a neighbour was busy.
settings.register_profile("chipwise", deadline=None)
settings.load_profile("chipwise")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew; read the diff before you commit it")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers under test are on the loopback; a developer's proxy must not stand between."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
