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
    local = directory(text)
    if local is None:
        from chipwise.job.remote import Remote

        return Remote(text)
    return Local(local)


def directory(text: str) -> Path | None:
    """Of this machine; None: it is elsewhere. The root is refused: its other files are not ours to list and to sweep."""
    scheme, separator, rest = text.partition("://")
    if separator and scheme != "file":
        return None
    location = text
    if separator:
        from urllib.parse import unquote

        host, _, quoted = rest.partition("/")  # file:///a/b and file://localhost/a/b
        if host not in ("", "localhost") or not quoted:
            raise _refused(text, "names no directory of this machine")
        location = "/" + unquote(quoted)
    path = Path(location).expanduser()
    if _is_root(path):
        raise _refused(text, "is the root of this machine")
    return path


def _is_root(path: Path) -> bool:
    """By however many slashes, dots or links it is spelt."""
    try:
        target = os.path.realpath(path)
    except (OSError, ValueError):  # no path at all: whoever uses it is told so
        return False
    return not target.strip(os.sep)


def _refused(text: str, why: str) -> InvalidSettings:
    return InvalidSettings(Problem("checkpoints", f"{text[:80]!r} {why}", allowed="a folder, as file:///path or a path"))
