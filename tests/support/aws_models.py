"""Descriptions of the AWS services, read once for all sessions of a test run: the one of EC2 alone is megabytes of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch

import botocore.session
from botocore.loaders import Loader

_create = cache(botocore.session.create_loader)


def _shared(search_path: str | None = None) -> Loader:
    return _create(search_path)


@contextmanager
def read_once() -> Iterator[None]:
    with patch.object(botocore.session, "create_loader", _shared):
        yield
