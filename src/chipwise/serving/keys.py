"""API keys, of which only digests are kept: a file that leaks opens no door.

Keys are long and random, so one round of SHA-256 is enough: there is no dictionary to try, as there is for passwords.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from chipwise.errors import BadInput
from chipwise.serving.limits import NO_LIMITS, KeyLimits

MOST_SEEN = 4096
SHORTEST_KEY = 20  # characters; a key that can be guessed is none


@dataclass(frozen=True, slots=True)
class Key:
    name: str  # for logs and metrics
    digest: bytes
    team: str = ""
    priority: int = 0  # higher goes first where requests wait
    limits: KeyLimits = NO_LIMITS


def digest_of(secret: str) -> bytes:
    if len(secret) < SHORTEST_KEY:
        raise BadInput(f"An API key of {len(secret)} characters can be guessed. Use at least {SHORTEST_KEY} random characters.")
    return sha256(secret.encode()).digest()


class KeyRing:
    """Finds keys by what clients send. Without any key everyone is let in, as `ANYONE`."""

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._keys = {key.digest: key for key in keys}
        self._seen: dict[bytes, Key] = {}  # headers with valid keys, in memory only

    @property
    def is_open(self) -> bool:
        return not self._keys

    def all(self) -> list[Key]:
        return list(self._keys.values()) or [ANYONE]

    def find(self, authorization: bytes) -> Key | None:
        """The key of a header `Authorization: Bearer SECRET`. Looked up by its digest, so its timing reveals nothing."""
        if not self._keys:
            return ANYONE
        key = self._seen.get(authorization)
        if key is None and authorization[:7].lower() == b"bearer ":
            key = self._keys.get(sha256(authorization[7:].strip()).digest())
            if key is not None:
                if len(self._seen) >= MOST_SEEN:
                    self._seen.clear()
                self._seen[authorization] = key
        return key


ANYONE = Key("anyone", b"")
