"""Where a load test sends its requests: an address, and the key that a variable holds."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from chipwise.adapters.http.load import Target
from chipwise.errors import BadInput
from chipwise.serving.load_request import LOCAL_URL
from chipwise.serving.load_values import LoadRequest
from chipwise.serving.replica import Address


def target_of(request: LoadRequest) -> Target:
    parts = urlsplit(request.url if "//" in request.url else f"http://{request.url}")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not parts.path.isascii():
        raise BadInput(f"{request.url[:80]!r} is no address of a service.", remedy=f"Write it like {LOCAL_URL}.")
    is_secure = parts.scheme == "https"
    headers: tuple[str, ...] = ()
    if request.key_variable is not None:
        key = os.environ.get(request.key_variable, "")
        if not re.fullmatch(r"[!-~]+", key):
            raise BadInput(
                f"The variable {request.key_variable} holds no API key.", remedy=f"export {request.key_variable}=KEY"
            )
        headers = (f"authorization: Bearer {key}",)
    base = parts.path.rstrip("/")
    path = request.form.path
    path = path if base == "" else f"{base}{path.removeprefix('/v1')}" if base.endswith("/v1") else f"{base}{path}"
    return Target(Address(parts.hostname, port or (443 if is_secure else 80)), path, headers, is_secure)
