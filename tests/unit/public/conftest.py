from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import chipwise as cw
from command import plain


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The environment of a user who has set nothing but the day, in a folder of their own."""
    with patch.dict("os.environ", plain(tmp_path), clear=True):
        yield tmp_path


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> cw.Session:
    """With folders of its own: prices or measures that another program stores meanwhile would be in one result and not in
    the next."""
    config, data = (tmp_path_factory.mktemp(name) for name in ("config", "data"))
    return cw.open(as_of="2026-11-15", config_dir=config, data_dir=data)
