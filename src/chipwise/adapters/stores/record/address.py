"""Where a record is, read from what a user typed. A password may be in it, and is shown nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from chipwise.errors import BadInput
from chipwise.spelling import nearest

KINDS = ("sqlite", "postgresql", "postgres")
SYNCHRONOUS = ("decisions", "full", "normal")
_FORMS = "Write sqlite:///path/file.db, a path, or postgresql://user@host/database."


@dataclass(frozen=True, slots=True)
class File:
    path: Path
    synchronous: str = "decisions"  # what is flushed to the disk at once: these, everything (full), nothing (normal)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Server:
    """What libpq takes, as it was typed."""

    url: str = field(repr=False)
    label: str

    def __str__(self) -> str:
        return self.label


def read_address(url: str) -> File | Server:
    if not url.strip() or "\0" in url:
        raise BadInput("The URL of the record is empty or holds a NUL character.", remedy=_FORMS)
    kind, colon, rest = url.partition(":")
    if not colon or "/" in kind or (len(kind) == 1 and kind.isalpha()):  # a path; C:\record.db too
        return File(_path(url))
    if kind.lower() not in KINDS:
        near = nearest(kind.lower(), KINDS)
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        raise BadInput(f"A record cannot be kept at a URL that begins with {kind[:30]!r}.", remedy=hint + _FORMS)
    if kind.lower() == "sqlite":
        return _file(rest)
    return Server(f"{kind.lower()}:{rest}", _without_secrets(url))


def _file(rest: str) -> File:
    """Three slashes begin an absolute path on this machine; a host before it would be another machine's."""
    if not rest.startswith("///"):
        raise BadInput("A SQLite record is a file of this machine: three slashes come before its path.", remedy=_FORMS)
    path, _, query = rest[2:].partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    synchronous = options.pop("synchronous", "decisions").lower()
    if options or synchronous not in SYNCHRONOUS:
        wrong = ", ".join(sorted(options)) or f"synchronous={synchronous}"
        raise BadInput(
            f"The URL of the record has an option that is not known: {wrong[:60]}.",
            remedy="There is synchronous=full and synchronous=normal; `decisions` is the default.",
        )
    return File(_path("/" + unquote(path).lstrip("/")), synchronous)


def _path(text: str) -> Path:
    path = Path(text).expanduser()
    if path.name in ("", "..") or text.endswith("/"):
        raise BadInput(f"{text[:200]} is a folder; a record is a file.", remedy=_FORMS)
    return path.absolute()


def _without_secrets(url: str) -> str:
    """Host and database, and who asks. The rest may hold a secret, so none of it is shown, even where it cannot be read."""
    try:
        parts = urlsplit(url)
        host, user = parts.hostname or "", unquote(parts.username or "")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "postgresql://..."
    return f"postgresql://{user + '@' if user else ''}{host}{port}{parts.path}"
