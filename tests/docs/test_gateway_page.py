"""docs/running/gateway.md states every limit of the gateway with its default."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from chipwise.serving.settings import SizeLimits, Timeouts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "running" / "gateway.md"


def test_every_limit_is_on_the_page_with_its_default() -> None:
    text = PAGE.read_text()
    limits = asdict(SizeLimits()) | asdict(Timeouts())
    missing = [row for name, value in limits.items() if (row := f"| `{name}` | {value:,.0f} | ") not in text]
    assert missing == []
