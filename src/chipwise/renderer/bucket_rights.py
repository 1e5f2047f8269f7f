"""What policies say about buckets of S3, for rendered roles and for the engine that rents machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def literal(name: str) -> str:
    """`*`, `?` and `${` have a meaning in a policy; a name that has them stands for itself."""
    return name.replace("$", "${$}").replace("*", "${*}").replace("?", "${?}")


def listed(prefix: str) -> str:
    """What may be asked for as `s3:prefix` below a folder. With the slash: `data*` would list `database/` too."""
    return f"{literal(prefix)}/*"


def refused_without_tls(resources: Sequence[str]) -> dict[str, Any]:
    """A statement of the bucket's own policy: nobody, whatever their rights, reaches it without TLS."""
    return {
        "Sid": "Tls",
        "Effect": "Deny",
        "Action": ["s3:*"],
        "Resource": list(resources),
        "Principal": "*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
