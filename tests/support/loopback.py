"""What a server under test is told to answer, and clients that have much to do with it."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple
from unittest.mock import patch


class Reply(NamedTuple):
    body: str
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    cut: bool = False  # the body ends before its promised length


Serve = Callable[[Callable[[Any], Reply]], AbstractContextManager[Any]]


_context = cache(ssl.create_default_context)


@contextmanager
def certificates_read_once() -> Iterator[None]:
    """Every client reads hundreds of certificates, and on the loopback none is asked for."""
    with patch.object(ssl, "create_default_context", _context):
        yield
