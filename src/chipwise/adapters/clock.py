"""What day it is: the one place that asks. `CHIPWISE_TODAY` pins it, so that output can be compared day after day."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime

from chipwise.errors import BadInput


def today() -> date:
    pinned = os.environ.get("CHIPWISE_TODAY")
    if not pinned:
        return datetime.now(UTC).date()
    try:
        return date.fromisoformat(pinned)
    except ValueError:
        raise BadInput(
            f"CHIPWISE_TODAY is {pinned[:40]!r}, which is not a date.", remedy="Write it like 2026-11-15, or unset it."
        ) from None
