"""One JSON page over HTTP, with retries; what goes wrong becomes one of our errors, in one table.

Tried again: no connection, a cut-off body, something that is not JSON, 429 and 5xx. `Retry-After` is obeyed up to a
minute. `httpx` is imported by the feeds that use this, when they are asked for.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from chipwise.errors import BadInput, ChipwiseError, NotAllowed, NotFound, OutsideFailed, TryLater

if TYPE_CHECKING:
    import httpx

Json = dict[str, object]

_LARGEST_BODY = 64 * 2**20
_LONGEST_WAIT_S = 60.0
_KINDS: dict[int, tuple[type[ChipwiseError], str]] = {
    400: (BadInput, "Check the regions and families that were asked for."),
    401: (NotAllowed, "Check the key."),
    403: (NotAllowed, "Check that the key is valid and the service is enabled for it."),
    404: (NotFound, "Check the endpoint."),
    429: (TryLater, "Wait a minute and refresh again."),
}
pause = time.sleep  # a name of its own, so that tests need not wait


@contextmanager
def connected(name: str, attempts: int, headers: Mapping[str, str] | None = None) -> Iterator[JsonService]:
    """A service to ask, closed at the end. The environment's proxy settings hold, and may be wrong."""
    import httpx

    try:
        client = httpx.Client(timeout=60, headers={"User-Agent": "chipwise"} | dict(headers or {}))
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        raise BadInput(
            f"{name}: the proxy settings cannot be used: {error}.", remedy="Check HTTPS_PROXY and ALL_PROXY."
        ) from error
    with client:
        yield JsonService(client, name, attempts)


@dataclass(frozen=True, slots=True)
class _Again:
    """A failure that another attempt may mend."""

    error: ChipwiseError
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class JsonService:
    """A service that answers JSON objects. `name` is how messages call it."""

    client: httpx.Client
    name: str
    attempts: int = 5

    def get(self, url: str, params: Mapping[str, str] | None = None) -> Json:
        failure: _Again | None = None
        for attempt in range(self.attempts):
            if failure is not None:
                backoff = min(_LONGEST_WAIT_S, 0.5 * 2**attempt) * random.uniform(0.5, 1)
                pause(backoff if failure.wait_s is None else failure.wait_s)
            answer = self._once(url, params)
            if not isinstance(answer, _Again):
                return answer
            failure = answer
        assert failure is not None, "attempts is at least 1"
        raise failure.error

    def _once(self, url: str, params: Mapping[str, str] | None) -> Json | _Again:
        import httpx

        try:
            with self.client.stream("GET", url, params=params) as response:
                status, headers, body = response.status_code, response.headers, bytearray()
                for piece in response.iter_bytes():
                    body += piece
                    if len(body) > _LARGEST_BODY:
                        size = f"more than {_LARGEST_BODY >> 20} MiB on one page"
                        raise OutsideFailed(f"{self.name} answered with {size}.", remedy="Check the endpoint.")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise BadInput(f"{self.name}: {error}", remedy="Check the endpoint.") from error
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            failed = TryLater(f"{self.name} could not be read: {reason}.", remedy="Check the network and refresh again.")
            failed.__cause__ = error
            return _Again(failed)
        if status != 200:
            return self._refused(status, headers.get("retry-after"), bytes(body))
        try:
            page = json.loads(body)
        except (ValueError, RecursionError) as error:
            start = bytes(body[:60]).decode("utf-8", "replace")
            malformed = OutsideFailed(
                f"{self.name} did not answer in JSON but {start!r}.", remedy="Check the endpoint and proxy."
            )
            malformed.__cause__ = error
            return _Again(malformed)
        if not isinstance(page, dict):
            shape = type(page).__name__
            raise OutsideFailed(f"{self.name} answered with a {shape} in place of an object.", remedy="Check the endpoint.")
        return page

    def _refused(self, status: int, retry_after: str | None, body: bytes) -> _Again:
        kind, remedy = _KINDS.get(
            status, (TryLater, "Try again later.") if status >= 500 else (OutsideFailed, "Check the endpoint and proxy.")
        )
        message = " ".join(_message(body).split())[:200]
        error = kind(f"{self.name} answered {status}{': ' + message if message else ''}.", remedy=remedy)
        if kind is TryLater:
            return _Again(error, _seconds(retry_after))
        raise error


def _message(body: bytes) -> str:
    """The sentence inside an error body, in the shapes Google and Microsoft use."""
    try:
        content = json.loads(body)
        content = content.get("error", content.get("Error", content))
        content = content if isinstance(content, str) else content.get("message", content.get("Message", ""))
    except (ValueError, AttributeError, RecursionError):
        return ""
    return content if isinstance(content, str) else ""


def _seconds(retry_after: str | None) -> float | None:
    """`Retry-After` is a number of seconds or a date."""
    if not retry_after:
        return None
    try:
        wait = float(retry_after)
    except ValueError:
        try:
            wait = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(_LONGEST_WAIT_S, wait) if wait >= 0 else None
