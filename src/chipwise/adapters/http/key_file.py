"""API keys from a file of the operator, in which only digests stand; a new key is shown once, when it is made.

keys:
  - {name: alice, sha256: 9f86d0..., team: search, priority: 1, requests_per_s: 10, tokens_per_day: 1000000}
"""

from __future__ import annotations

import os
import secrets
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import yaml

from chipwise.errors import BadInput
from chipwise.files.source import FileKind, read_text, read_yaml
from chipwise.serving.keys import Key, KeyRing, digest_of
from chipwise.serving.limits import KeyLimits

KIND = FileKind("key file", "It has a list `keys`, each with name and sha256.", 1_000_000)
LARGEST_LIMIT = 1e18
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
    return KeyRing(keys)


def _key(path: Path, number: int, entry: Any) -> Key:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"].isprintable():
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
    return Key(
        name=entry["name"],
        digest=digest,
        team=str(entry.get("team", "")),
        priority=int(entry.get("priority", 0)),
        limits=KeyLimits(**limits),
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST_LIMIT


def add_key(path: Path, name: str, team: str = "") -> str:
    """The secret of a new key, of which the file gets the digest. It can be read nowhere afterwards."""
    entries: list[dict[str, Any]] = []
    if path.exists():
        known = read_keys(path)
        if any(key.name == name for key in known.all()):
            raise BadInput(f"{path} has a key of {name} already.", remedy="Take another name, or delete its line first.")
        entries = list(cast("list[dict[str, Any]]", read_yaml(read_text(path, KIND), str(path), KIND).data["keys"]))
    secret = f"cw-{secrets.token_urlsafe(32)}"
    entries = [*entries, {"name": name, "sha256": digest_of(secret).hex(), **({"team": team} if team else {})}]
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        yaml.safe_dump({"keys": entries}, file, sort_keys=False)
    return secret
