"""Which fitted factors are packaged: a page or a user's calibration that was made from others is out of date."""

from __future__ import annotations

import hashlib
from functools import cache

from chipwise.perf.tables import DATA


@cache
def fingerprint() -> str:
    """The first 12 digits of the sha256 over blocks.csv and every factors_*.csv, by name."""
    digest = hashlib.sha256()
    for path in sorted([DATA / "blocks.csv", *DATA.glob("factors_*.csv")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
