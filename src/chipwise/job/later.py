"""Bytes that are made in the background: a snapshot holds what they are made from, and the writer makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Later:
    make: Callable[[], bytes]
    about_bytes: int  # for the message of a full disk
