"""HTML from text that nobody vouches for: everything is escaped here, once.

Names come from workload files, provider feeds and imports. What HTML cannot hold or would show misleadingly (control
characters, lone surrogates, marks that turn the direction of writing) becomes a space.
"""

from __future__ import annotations

import json
import math
from html import escape
from typing import Any

Json = Any  # what json.dumps takes


def plain(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def text(value: object) -> str:
    return escape(plain(str(value)))


def label(value: object) -> str:
    """For a chart: plotly reads a few tags and entities in its texts, so they must not be in a name."""
    return escape(plain(str(value)), quote=False)


def tag(name: str, *inside: str, **attributes: object) -> str:
    """`inside` is markup already; attributes are escaped. `class_` is class, `data_key` is data-key; None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items() if value is not None
    )
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def data(value: Json) -> str:
    """JSON that may stand inside a script element; numbers that JSON has no way to write become null."""
    encoded = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Json) -> Json:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
