from __future__ import annotations

from pathlib import Path

import pytest

from command import Chipwise


@pytest.fixture
def chipwise(tmp_path: Path) -> Chipwise:
    (tmp_path / "config" / "catalog").mkdir(parents=True)
    return Chipwise(tmp_path)
