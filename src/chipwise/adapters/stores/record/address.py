"""Where a record is, read from what a user typed. A password may be in it, and is shown nowhere.

What could be read in two ways is refused, and none of it is repeated: where `/`, `#`, `?` or `@` of a password stand as they
are, a part of it would be taken for the host or the database, and what was meant for a server would become a file's name.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes, urlsplit

from chipwise.errors import BadInput
from chipwise.spelling import nearest

KINDS = ("sqlite", "postgresql", "postgres")
SYNCHRONOUS = ("decisions", "full", "normal")
_FORMS = "Write sqlite:///path/file.db, a path, or postgresql://user@host/database."
_ENCODED = "Characters like @ / # ? % in a name or password are written as %40 %2F %23 %3F %25."
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,29}", re.IGNORECASE)
_TEXT = r"(?:[^@/?#%\[\]\s]|%[0-9a-f]{2})*"
_HOST = r"(?:\[[0-9a-f:.%a-z]*\]|(?:[^@/?#%\[\]\s:,]|%[0-9a-f]{2})*)(?::[0-9]{0,5})?"
_SERVER = re.compile(rf"//(?:{_TEXT}@)?{_HOST}(?:,{_HOST})*(?:/{_TEXT})*(?:\?[^@#\s]*)?", re.IGNORECASE)
_KEYWORDS = re.compile(r"(?:^|\s)[a-z_]+\s*=", re.IGNORECASE)  # `host=db password=...`


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


def file_url(path: Path) -> str:
    """The URL of a file, whatever characters its path has; a path that begins nowhere begins in the working directory."""
    return "sqlite://" + quote(os.fsencode(path.absolute()))


def whole_url(url: str) -> str:
    """The same, for processes that stand in other directories."""
    address = read_address(url)
    if isinstance(address, Server):
        return address.url
    return file_url(address.path) + ("" if address.synchronous == "decisions" else f"?synchronous={address.synchronous}")


def read_address(url: str) -> File | Server:
    if not url.strip() or "\0" in url:
        raise BadInput("The URL of the database is empty or holds a NUL character.", remedy=_FORMS)
    kind, colon, rest = url.partition(":")
    if not colon or "/" in kind or (len(kind) == 1 and kind.isalpha()):  # a path; C:\record.db too
        if _means_a_server(url):
            raise BadInput(
                "The database is neither a path nor a URL: it looks like a server's login, without postgresql:// before it.",
                remedy=f"{_FORMS} A path with such characters begins with / or ./, and a : before an @ in it is written as in"
                " sqlite:///a%3Ab%40c/file.db.",
            )
        return File(_path(url))
    if kind.lower() not in KINDS:
        repeatable = rest.startswith("//") and _SCHEME.fullmatch(kind)  # else it may be a login, or a part of a password
        near = nearest(kind.lower(), KINDS) if repeatable else ()
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        begins = f"begins with {kind!r}" if repeatable else "does not begin with sqlite:// or postgresql://"
        raise BadInput(f"The database cannot be at a URL that {begins}.", remedy=hint + _FORMS)
    if kind.lower() == "sqlite":
        return _file(rest)
    if not _SERVER.fullmatch(rest):
        raise BadInput("The URL of the database cannot be read, and is not repeated here.", remedy=f"{_ENCODED} {_FORMS}")
    return Server(f"{kind.lower()}:{rest}", _without_secrets(url))


def _means_a_server(path: str) -> bool:
    """A login with a password in any path; in one that does not begin as a path does, also a host and `password=...`."""
    before, at_sign, _ = path.rpartition("@")
    if at_sign and ":" in before:
        return True
    is_path = path.startswith(("/", "./", "../", "~")) and not path.startswith("//")
    return not is_path and (bool(at_sign) or bool(_KEYWORDS.search(path)))


def _file(rest: str) -> File:
    """Three slashes begin an absolute path on this machine; a host before it would be another machine's."""
    if not rest.startswith("///"):
        raise BadInput("A SQLite database is a file of this machine: three slashes come before its path.", remedy=_FORMS)
    path, _, query = rest[2:].partition("?")
    if _means_a_server(path) or "@" in query:
        raise BadInput(
            "The URL of the database looks like the login of a server, and a SQLite database is a file.",
            remedy=f"{_FORMS} In the name of a file @ is written as %40, and : as %3A.",
        )
    options = dict(parse_qsl(query, keep_blank_values=True))
    synchronous = options.pop("synchronous", "decisions").lower()
    if options or synchronous not in SYNCHRONOUS:
        names = [name for name in sorted(options) if f"{name}=" in query and _SCHEME.fullmatch(name)]
        wrong = ", ".join(names) or ("" if options else f"synchronous={synchronous}")
        raise BadInput(
            f"The URL of the database has an option that is not known{f': {wrong[:60]}' if wrong else ''}.",
            remedy="There is synchronous=full and synchronous=normal; `decisions` is the default.",
        )
    return File(_path("/" + os.fsdecode(unquote_to_bytes(path)).lstrip("/")), synchronous)


def _path(text: str) -> Path:
    path = Path(os.path.expanduser(text))  # of the text, since `./~` is no home
    if text.startswith("~") and str(path).startswith("~"):
        raise BadInput("The path of the database begins in a home directory that is not known.", remedy=_FORMS)
    if path.name in ("", "..") or text.endswith("/"):
        raise BadInput(f"{text[:200]} is a folder; the database is a file.", remedy=_FORMS)
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
