"""API keys from a file of the operator, in which only digests stand; a new key is shown once, when it is made.

keys:
  - {name: alice, sha256: 9f86d0..., team: search, priority: 1, requests_per_s: 10, tokens_per_day: 1000000}
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import yaml

from chipwise.adapters.stores.whole import write_named
from chipwise.errors import BadInput, TryLater
from chipwise.files.source import FileKind, read_text, read_yaml
from chipwise.serving.keys import Key, KeyRing, digest_of
from chipwise.serving.limits import KeyLimits

KIND = FileKind("key file", "It has a list `keys`, each with name and sha256.", 1_000_000)
LARGEST_LIMIT = 1e18
LONGEST_NAME = 200  # of a key or a team: they stand in metrics and logs
WAITS_S = 10.0  # for another command that adds a key
_LIMITS = {entry.name for entry in fields(KeyLimits)}
_KNOWN = {"name", "sha256", "team", "priority", *_LIMITS}


def read_keys(path: Path) -> KeyRing:
    """Raises BadInput where it is not as it should be: a gateway that lets nobody or everybody in by mistake does not start."""
    document = read_yaml(read_text(path, KIND), str(path), KIND)
    entries = document.data.get("keys")
    if document.problems or not isinstance(entries, list) or not entries:
        raise BadInput(f"{path} has no list `keys`.", remedy=f"`chipwise serve key NAME --key-file {path}` writes one.")
    keys = [_key(path, number, entry) for number, entry in enumerate(entries, 1)]
    if len({key.name for key in keys}) != len(keys):
        raise BadInput(f"{path} has two keys of one name.", remedy="Give each its own name.")
    if len({key.digest for key in keys}) != len(keys):
        raise BadInput(f"{path} has one key under two names.", remedy="Delete one of them.")
    return KeyRing(keys)


def _key(path: Path, number: int, entry: Any) -> Key:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not _is_name(entry["name"]):
        raise BadInput(f"{path}: key {number} has no name.", remedy="Write {name: alice, sha256: ...}.")
    title = f"{path}: the key of {entry['name'][:60]}"
    if unknown := sorted(set(map(str, entry)) - _KNOWN):
        raise BadInput(f"{title} has unknown fields: {', '.join(unknown)}.", remedy=f"Known: {', '.join(sorted(_KNOWN))}.")
    try:
        digest = bytes.fromhex(str(entry.get("sha256", "")))
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise BadInput(f"{title} has no SHA-256 of 64 hexadecimal digits.", remedy="`chipwise serve key` makes one.")
    limits = {name: entry[name] for name in _LIMITS if entry.get(name) is not None}
    for name, value in (*limits.items(), ("priority", entry.get("priority", 0))):
        if not _is_number(value) or (name != "priority" and value <= 0):
            raise BadInput(f"{title}: {name} is {value!r:.40}.", remedy="Write a number above 0.")
    team = str(entry.get("team", ""))
    if team and not _is_name(team):
        raise BadInput(f"{title} has no printable team.", remedy=f"Write 1 to {LONGEST_NAME} printable characters.")
    return Key(
        name=entry["name"],
        digest=digest,
        team=team,
        priority=int(entry.get("priority", 0)),
        limits=KeyLimits(**limits),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_LIMIT


def add_key(path: Path, name: str, team: str = "") -> str:
    """The secret of a new key, of which the file gets the digest. It can be read nowhere afterwards."""
    if not _is_name(name) or not (team == "" or _is_name(team)):
        raise BadInput(f"A name or team of a key is 1 to {LONGEST_NAME} printable characters.", remedy="Choose another one.")
    if path.is_symlink():
        raise BadInput(f"{path} is a link, and was left as it is.", remedy="Name the file itself.")
    with _changing(path.parent):
        entries: list[dict[str, Any]] = []
        if is_known := path.exists():
            known = read_keys(path)
            if any(key.name == name for key in known.all()):
                raise BadInput(f"{path} has a key of {name} already.", remedy="Take another name, or delete its line first.")
            entries = list(cast("list[dict[str, Any]]", read_yaml(read_text(path, KIND), str(path), KIND).data["keys"]))
        secret = f"cw-{secrets.token_urlsafe(32)}"
        entries = [*entries, {"name": name, "sha256": digest_of(secret).hex(), **({"team": team} if team else {})}]
        write_named(path, yaml.safe_dump({"keys": entries}, sort_keys=False), force=True)
        if not is_known:
            path.chmod(0o600)
    return secret


def _is_name(name: str) -> bool:
    return 0 < len(name) <= LONGEST_NAME and name.isprintable()


@contextmanager
def _changing(folder: Path) -> Iterator[None]:
    """One at a time, by a lock of the folder: the file itself is replaced. What two write at once would lose a key."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + WAITS_S
        while not _locks(handle):
            if time.monotonic() > until:
                raise TryLater(f"{folder} is locked by another program.", remedy="Try again when it has ended.")
            time.sleep(0.02)
        yield
    finally:
        os.close(handle)


def _locks(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
