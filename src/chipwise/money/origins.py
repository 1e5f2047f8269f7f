"""Where data is, by what a workload writes of it: a cloud and its region, the web, one of your own sites."""

from __future__ import annotations

import re
from typing import NamedTuple

_SCHEMES = {
    "s3": "aws",
    "s3a": "aws",
    "s3n": "aws",
    "gs": "gcp",
    "gcs": "gcp",
    "az": "azure",
    "abfs": "azure",
    "abfss": "azure",
    "wasb": "azure",
    "wasbs": "azure",
    "adl": "azure",
    "oci": "oci",
}

_HOSTS = (
    (re.compile(r"(?:.*\.)?s3[.-](?:dualstack\.)?([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com"), "aws"),
    (re.compile(r"(?:.*\.)?objectstorage\.([a-z]+(?:-[a-z]+)+-\d)\.oraclecloud\.com"), "oci"),
    (re.compile(r"(?:.*\.)?s3[a-z.-]*\.amazonaws\.com()"), "aws"),
    (re.compile(r"(?:.*\.)?storage\.(?:cloud\.google|googleapis)\.com()"), "gcp"),
    (re.compile(r".*\.(?:blob|dfs)\.core\.windows\.net()"), "azure"),
)


class Origin(NamedTuple):
    """Where data lies: cloud (with its region, "" where nobody says), web, own site, or unknown."""

    kind: str
    provider: str = ""
    region: str = ""


def origin_of(place: str | None) -> Origin:
    """What a workload's `data.place` means: cloud:region, a URL, or a path."""
    text = (place or "").strip()
    if not text:
        return Origin("unknown")
    if cloud := re.fullmatch(r"([A-Za-z][\w-]+):(?!/)([\w-]+)", text):  # one letter is a drive
        return Origin("cloud", cloud[1].lower(), cloud[2])
    url = re.match(r"([a-z][a-z0-9+.-]*)://([^/:?#]*)", text.lower())
    if url is None or url[1] in ("file", "nfs", "smb", "lustre"):
        return Origin("own site")
    if url[1] in _SCHEMES:
        return Origin("cloud", _SCHEMES[url[1]])
    for pattern, provider in _HOSTS:
        if host := pattern.fullmatch(url[2]):
            return Origin("cloud", provider, host[1])
    return Origin("web")
