"""Values that a program gives, as plain Python: numbers of numpy and of decimals, arrays, sets, and paths inside fields."""

from __future__ import annotations

from enum import Enum
from numbers import Number, Real
from pathlib import PurePath
from typing import Any

_PLAIN = (bool, int, float, str, complex)


def as_plain(value: Any, *, with_paths: bool = False) -> Any:
    """The same with numbers and lists of Python, inside dictionaries and lists too; sets in order; paths as text on request."""
    if isinstance(value, dict):
        return {as_plain(key): as_plain(inner, with_paths=with_paths) for key, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((as_plain(inner, with_paths=with_paths) for inner in value), key=_order)
    if type(value) in (list, tuple):
        return type(value)(as_plain(inner, with_paths=with_paths) for inner in value)
    if with_paths and isinstance(value, PurePath):
        return str(value)
    if value is None or type(value) in _PLAIN or isinstance(value, Enum):
        return value
    if callable(listed := getattr(value, "tolist", None)):  # a number or an array of numpy, a column of pandas
        return listed()
    if isinstance(value, Number) and isinstance(value, Real):
        return value if isinstance(value, int | float) else float(value)
    return float(value) if type(value).__name__ == "Decimal" else value


def _order(value: Any) -> tuple[bool, Any]:
    """Numbers before texts."""
    is_number = isinstance(value, int | float)
    return not is_number, value if is_number else str(value)
