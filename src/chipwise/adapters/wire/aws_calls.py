"""Calls of AWS through boto3: its errors as ours, regions that refuse this account, and answers of many pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from chipwise.adapters.wire.aws_codes import BUSY, CREDENTIALS, NO_RIGHT, REFUSED_KEYS
from chipwise.errors import BadInput, ChipwiseError, NotAllowed, NotFound, OutsideFailed, TryLater

_PAGES = 2000  # more is a server that never ends
KEYS = "Check the AWS credentials, for example with: aws sts get-caller-identity"
_LATER = "Try again later, or with fewer regions."
_RIGHTS = (
    "Allow ec2:DescribeInstanceTypes, ec2:DescribeInstanceTypeOfferings, ec2:DescribeSpotPriceHistory, pricing:GetProducts."
)
_NOT_OPTED_IN = {"AuthFailure", "OptInRequired", "UnrecognizedClientException", "InvalidClientTokenId"}
_UNREACHABLE = (
    "EndpointConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ConnectionClosedError",
    "ProxyConnectionError",
    "HTTPClientError",
    "ResponseStreamingError",
    "IncompleteReadError",
)
# AWS error codes and botocore error names -> ours. What is not here is OutsideFailed.
_ERRORS: dict[str, tuple[type[ChipwiseError], str]] = {
    **dict.fromkeys((*CREDENTIALS, *REFUSED_KEYS), (NotAllowed, KEYS)),
    **dict.fromkeys(NO_RIGHT, (NotAllowed, _RIGHTS)),
    **dict.fromkeys((*BUSY, *_UNREACHABLE), (TryLater, _LATER)),
    **dict.fromkeys(
        (
            "InvalidParameterValue",
            "InvalidParameterException",
            "InvalidEndpointURLError",
            "InvalidRegionError",
            "NoRegionError",
            "ConfigParseError",
            "ParamValidationError",
            "ValidationException",
        ),
        (BadInput, "Check the options and the AWS configuration."),
    ),
    **dict.fromkeys(("404", "NotFoundException"), (NotFound, "Check the endpoint.")),
    "ResponseParserError": (OutsideFailed, "Refresh again; if this stays, check the endpoint and the proxy."),
    "SSLError": (OutsideFailed, "Check the endpoint and the proxy."),
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refused:
    """A region that would not answer this account."""

    error: ChipwiseError


@contextmanager
def translated(subject: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except (ClientError, BotoCoreError, ResponseParserError, ValueError) as error:
        code = str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else type(error).__name__
        if code not in _ERRORS and isinstance(error, HTTPClientError):
            code = "HTTPClientError"
        kind, remedy = _ERRORS.get(code, (OutsideFailed, ""))
        message = " ".join(str(error).split())
        failure = kind(f"{subject}: {message if len(message) <= 300 else message[:297] + '...'}", remedy=remedy or None)
        raise failure from error


def unless_refused(read: Callable[[], T], subject: str) -> T | Refused:
    from botocore.exceptions import ClientError

    try:
        with translated(subject):
            return read()
    except NotAllowed as error:
        cause = error.__cause__
        if isinstance(cause, ClientError) and cause.response.get("Error", {}).get("Code") in _NOT_OPTED_IN:
            return Refused(error)
        raise


def all_pages(pages: Iterable[Any], key: str, subject: str) -> Iterator[Any]:
    """The items under `key` of all pages. A page without the key is no answer of AWS: botocore reads what it cannot
    understand, such as a sign-in page, as an empty answer."""
    for count, page in enumerate(pages):
        if key not in page:
            raise OutsideFailed(f"{subject}: the answer came without {key}.", remedy="Check the endpoint and the proxy.")
        if count >= _PAGES:
            raise OutsideFailed(f"{subject}: more than {_PAGES} pages, and no end.", remedy="Check the endpoint.")
        yield from page[key]
