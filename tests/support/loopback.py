"""What a server under test is told to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple


class Reply(NamedTuple):
    body: str
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    cut: bool = False  # the body ends before its promised length


Serve = Callable[[Callable[[Any], Reply]], AbstractContextManager[Any]]
