"""From a path or URL to the store that keeps checkpoints there."""

from __future__ import annotations

import os
from pathlib import Path

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

        text = "/" + unquote(rest).partition("/")[2]  # file:///a/b and file://localhost/a/b
    return Local(Path(text).expanduser())
