"""Fetch a model's config.json from the Hugging Face hub, or from a mirror that serves the same addresses.

One small file over HTTPS with the standard library. HF_TOKEN, where set, goes along as the bearer, but never over plain
HTTP to another machine and never to where a redirect leads. Outside errors become ours in `_translate`.
"""

from __future__ import annotations

import http.client
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request

from chipwise.errors import BadInput, ChipwiseError, NotAllowed, NotFound, OutsideFailed, TryLater
from chipwise.workload.model.huggingface import LARGEST, parse_config

ENDPOINT = "https://huggingface.co"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_AGAIN = "Try again in a while, or give a downloaded config.json instead."


def fetch_config(model_id: str, endpoint: str | None = None, timeout: float = 20) -> dict[str, object]:
    """The config.json of `model_id` at its main revision; NotAllowed, NotFound or TryLater when it cannot be had."""
    if not _ID.fullmatch(model_id) or ".." in model_id:
        raise BadInput(f"{model_id[:80]!r} is not a model id.", remedy="Write it like meta-llama/Llama-3.1-8B.")
    base = (endpoint or ENDPOINT).rstrip("/")
    parts = urllib.parse.urlsplit(base)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(f"{base[:80]!r} is not an address of a hub.", remedy=f"Write it like {ENDPOINT}.")
    request = urllib.request.Request(f"{base}/{model_id}/resolve/main/config.json", headers={"User-Agent": "chipwise"})
    token = os.environ.get("HF_TOKEN", "").strip()
    if token and (parts.scheme == "https" or parts.hostname in _LOOPBACK):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            body = _read(answer, time.monotonic() + timeout)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _translate(error, model_id, base, bool(token)) from error
    if len(body) > LARGEST:
        raise OutsideFailed(f"{base} sent more than 5 MB as the config of {model_id}.", remedy="Check the id and the address.")
    try:
        return parse_config(body.decode("utf-8-sig"), f"The config of {model_id}")
    except (BadInput, UnicodeDecodeError) as error:
        message = f"{base} did not send a config for {model_id}: the answer is not a JSON object."
        raise OutsideFailed(message, remedy="Check the address: a login page or a proxy may have answered.") from error


def _read(answer: http.client.HTTPResponse, deadline: float) -> bytes:
    """The body, up to a little more than the limit; a server that dribbles is cut off at the deadline."""
    body = b""
    while len(body) <= LARGEST and (piece := answer.read1(65536)):
        body += piece
        if time.monotonic() > deadline:
            raise TimeoutError
    promised = answer.headers.get("Content-Length", "")
    if promised.isdecimal() and len(body) < min(int(promised), LARGEST):
        raise http.client.IncompleteRead(body, int(promised) - len(body))
    return body


def _translate(error: Exception, model_id: str, base: str, with_token: bool) -> ChipwiseError:
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        if error.code in (401, 403):
            answer = "refused the token in HF_TOKEN" if with_token else "wants to know who asks"
            message = f"{base} {answer} for {model_id} (HTTP {error.code}): it is gated or private, or there is no such model."
            page = f"{base}/{model_id}"
            return NotAllowed(message, remedy=f"Accept its licence at {page} and set HF_TOKEN to a token that may read it.")
        if error.code in (404, 410):
            message = f"{base} has no config.json for {model_id}."
            return NotFound(message, remedy="Check the spelling; files of weights alone have no config.")
        if error.code == 429:
            return TryLater(f"{base} answers too many requests just now (HTTP 429).", remedy=_AGAIN)
        if error.code >= 500:
            return TryLater(f"{base} failed with HTTP {error.code} on the config of {model_id}.", remedy=_AGAIN)
        return OutsideFailed(f"{base} answered HTTP {error.code} on the config of {model_id}.", remedy=_AGAIN)
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return TryLater(f"{base} did not send the config of {model_id} in time.", remedy=_AGAIN)
    if isinstance(error, http.client.IncompleteRead):
        return TryLater(f"{base} broke off while sending the config of {model_id}.", remedy=_AGAIN)
    return TryLater(f"{base} cannot be reached for the config of {model_id}: {reason}.", remedy=_AGAIN)
