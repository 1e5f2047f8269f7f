"""Amounts as Kubernetes writes them: 500m, 64Gi, 1.5."""

from __future__ import annotations

import re

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[kMGTPE]i?|Ki|)")
_SCALE = {"": 1.0, "m": 1e-3, "k": 1e3, **{sign: 10.0 ** (3 * at) for at, sign in enumerate("MGTPE", start=2)}}
_SCALE |= {f"{sign}i": 1024.0**at for at, sign in enumerate("KMGTPE", start=1)}


def quantity(value: object) -> float | None:
    """None where it is something else, such as a place for a value."""
    match = _QUANTITY.fullmatch(str(value)) if value is not None else None
    return float(match[1]) * _SCALE[match[2]] if match else None
