from __future__ import annotations

import pytest

from chipwise.calibration.measurements import packaged
from chipwise.catalog.load import load
from chipwise.perf.part import Parts
from chipwise.perf.rows import Row


@pytest.fixture(scope="session")
def parts() -> Parts:
    return Parts(load().chips.values())


@pytest.fixture(scope="session")
def mpt() -> list[Row]:
    """Real training rows: 32 of MosaicML's MPT runs, in several groups."""
    return [row for row in packaged() if row.text("source_repo") == "mosaicml/llm-foundry"][::4][:32]


@pytest.fixture(scope="session")
def ours() -> list[Row]:
    """Our own prefill and decode rows of one H200."""
    return [row for row in packaged() if row.text("source_repo") == "chipwise" and row.text("task").startswith("llm-")][:20]
