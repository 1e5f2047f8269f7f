"""From a path or URL to the store that keeps checkpoints there."""

from __future__ import annotations

import os
from pathlib import Path

from chipwise.errors import InvalidSettings, Problem
from chipwise.job.local import Local
from chipwise.job.store import Store


def open_store(url: str | os.PathLike[str]) -> Store:
    """A path or file:// is a directory here; anything else goes through fsspec, which is imported then."""
    text = os.fspath(url)
    scheme, there, rest = text.partition("://")
    if there and scheme != "file":
        from chipwise.job.remote import Remote

        return Remote(text)
    if there:
        from urllib.parse import unquote

        host, _, path = rest.partition("/")  # file:///a/b and file://localhost/a/b
        if host not in ("", "localhost") or not path:
            raise InvalidSettings(
                Problem("checkpoints", f"{text[:80]!r} names no directory of this machine", allowed="file:///path, or a path")
            )
        text = "/" + unquote(path)
    return Local(Path(text).expanduser())
