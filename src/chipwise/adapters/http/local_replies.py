"""Answers that the gateway gives itself, in the words of the API that was called."""

from __future__ import annotations

import json
from http import HTTPStatus

from chipwise.serving.endpoints import Dialect

JSON = "application/json"
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


def error_document(dialect: Dialect, status: int, code: str, message: str) -> str:
    if dialect is Dialect.TGI:
        return json.dumps({"error": message, "error_type": code})
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def reply(
    status: int, body: str, request_id: str, *, closes: bool, content_type: str = JSON, retry_after_s: float | None = None
) -> bytes:
    content = body.encode()
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"content-type: {content_type}",
        f"content-length: {len(content)}",
        f"x-request-id: {request_id}",
    ]
    if retry_after_s is not None:
        lines.append(f"retry-after: {max(1, -int(-retry_after_s // 1))}")
    if status == 401:
        lines.append("www-authenticate: Bearer")
    if closes:
        lines.append("connection: close")
    return "\r\n".join((*lines, "", "")).encode() + content
