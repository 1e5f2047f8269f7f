"""The options a user gives to one feed, checked before anything is fetched."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from chipwise.errors import BadInput, UnknownName
from chipwise.spelling import nearest


def check_options(feed: str, options: Mapping[str, str], allowed: tuple[str, ...]) -> None:
    """A misspelt option would silently do nothing, so it is refused."""
    for name in options:
        if name not in allowed:
            offered = f"The {feed} feed takes {', '.join(allowed)}."
            raise UnknownName(f"option of the {feed} feed", name, nearest(name, allowed), remedy=offered)


def whole_number(options: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = options.get(name, "").strip()
    if not text:
        return default
    if not (text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
        raise BadInput(f"{name}={text[:40]!r} is not a whole number from {low} to {high}.", remedy=f"Try {name}={default}.")
    return int(text)


def words(options: Mapping[str, str], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """A list written with commas or blanks; the default where nothing is written."""
    return tuple(options.get(name, "").replace(",", " ").split()) or default


def service_address(options: Mapping[str, str], name: str, default: str) -> str:
    """An http or https address without its trailing slash."""
    text = options.get(name, "").strip() or default
    try:
        host = urlsplit(text).hostname if text.startswith(("http://", "https://")) and len(text) <= 500 else None
    except ValueError:
        host = None
    if not host or any(c.isspace() for c in text):
        raise BadInput(
            f"{name}={text[:80]!r} is not a web address.", remedy="Write it like https://host or http://127.0.0.1:5000."
        )
    return text.rstrip("/")
