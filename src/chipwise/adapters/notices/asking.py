"""One question to a metadata server. It is beside the machine: a proxy, a redirect or a long answer is not from there."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from chipwise.adapters.notices.notice import Silent

WITHIN_S = 5.0
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class MetadataAnswer:
    status: int
    text: str
    etag: str = ""


class _Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stays())


def ask(
    url: str, headers: Mapping[str, str], within_s: float = WITHIN_S, method: str = "GET", body: bytes | None = None
) -> MetadataAnswer:
    """Any status but those from 500 on is an answer."""
    request = urllib.request.Request(url, body, dict(headers), method=method)
    try:
        try:
            with _opener.open(request, timeout=within_s) as reply:
                answer = _read(reply)
        except urllib.error.HTTPError as refused:
            with refused:
                answer = _read(refused)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Silent(f"{url}: {error or type(error).__name__}") from None
    if answer.status >= 500:
        raise Silent(f"{url}: status {answer.status}")
    return answer


def _read(reply: http.client.HTTPResponse | urllib.error.HTTPError) -> MetadataAnswer:
    text = reply.read(_MOST_BYTES).decode("utf-8", "replace")
    return MetadataAnswer(int(reply.status or 0), text, reply.headers.get("ETag") or "")
