"""The contract every feed keeps. A new file in `adapters/feeds/` is found here by itself."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import tomllib
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest

from chipwise.adapters import feeds
from chipwise.catalog.feed import FeedSettings, Imports
from chipwise.errors import ChipwiseError, MissingExtra

NAMES = [module.name for module in pkgutil.iter_modules(feeds.__path__)]
SDKS = ("boto3", "botocore", "httpx", "google", "azure", "requests")


def quiet(done: int, total: int | None, what: str) -> None:
    pass


@pytest.fixture
def _without_sdks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine where no extra is installed."""
    for loaded in list(sys.modules):
        if loaded.partition(".")[0] in SDKS or loaded.startswith(f"{feeds.__name__}."):
            monkeypatch.delitem(sys.modules, loaded)
    for name in SDKS:
        monkeypatch.setitem(sys.modules, name, None)


def load(name: str) -> ModuleType:
    return importlib.import_module(f"{feeds.__name__}.{name}")


def test_the_feeds_are_found() -> None:
    assert {"aws", "azure", "gcp", "skypilot", "inventory"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_feed_defines_fetch_with_settings_and_report(name: str) -> None:
    signature = inspect.signature(load(name).fetch)
    assert list(signature.parameters) == ["settings", "report"]
    assert [parameter.annotation for parameter in signature.parameters.values()] == ["FeedSettings", "Report"]
    assert signature.return_annotation == "Snapshot"


@pytest.mark.parametrize("name", NAMES)
def test_a_feed_says_what_it_is_for_and_its_options(name: str) -> None:
    module = load(name)
    assert module.__doc__
    assert "Options:" in module.__doc__
    assert all(f"`{option}`" in module.__doc__ for option in module.OPTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_a_feed_reads_files_or_asks_a_provider(name: str) -> None:
    module = load(name)
    assert isinstance(module, Imports) is ("path" in module.OPTIONS)
    assert set(getattr(module, "ENVIRONMENT", {})) <= set(module.OPTIONS)


@pytest.mark.parametrize("name", NAMES)
def test_a_feed_refuses_an_option_it_does_not_know(name: str) -> None:
    settings = FeedSettings(date(2026, 11, 15), options={"no_such_option": "1"})
    with pytest.raises(ChipwiseError, match="no_such_option"):
        load(name).fetch(settings, quiet)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("_without_sdks")
def test_a_feed_imports_without_its_sdk_and_then_names_the_extra(name: str) -> None:
    module = load(name)
    extras = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    with pytest.raises(ChipwiseError) as caught:  # with no options at all, the others ask for theirs
        module.fetch(FeedSettings(date(2026, 11, 15)), quiet)
    error = caught.value
    assert error.remedy
    needed = getattr(module, "EXTRA", None)
    assert (error.extra if isinstance(error, MissingExtra) else None) == needed
    if isinstance(error, MissingExtra):
        assert error.extra in extras
        assert f"pip install 'chipwise[{error.extra}]'" in str(error)


@pytest.mark.parametrize("name", NAMES)
def test_a_feed_knows_no_other_feed(name: str) -> None:
    source = Path(str(load(name).__file__)).read_text()
    assert "adapters.feeds" not in source
    assert "print(" not in source
