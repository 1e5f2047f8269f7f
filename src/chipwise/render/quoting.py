"""Text of a user, made safe for the languages that files are written in.

Whatever a workload says (names, labels, commands, settings) passes through one of these before it stands in a file, so that
quotes, newlines, `${}` or `{{ }}` stay text. YAML has a module of its own (`yaml_text`); Python files use `repr`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Sequence

LONGEST_NAME = 40  # of 63: what is made of a name (`-models`, a pod's suffix) must fit too


def dns_name(text: str, longest: int = LONGEST_NAME) -> str:
    """A name that Kubernetes, clouds and hosts take: small letters, digits and dashes. Two texts never give one name
    unless they differ in case and signs alone: a cut name carries a part of its digest."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not name or not name[0].isalpha():
        name = f"job-{name}".rstrip("-")
    if len(name) > longest:
        name = f"{name[: longest - 7].rstrip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
    return name


def label_value(text: str) -> str:
    """A value that a Kubernetes label may have: at most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at
    both ends."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:63].strip("-._")


def tag_value(text: str) -> str:
    """A value that tags of clouds may have: letters, digits, blanks and `_.:/=+-@`, at most 256."""
    return re.sub(r"[^\w .:/=+@-]+", "-", text, flags=re.ASCII)[:256].strip()


def hcl(text: str) -> str:
    """A string of Terraform. `${` and `%{` begin a template there, and are doubled to stay text."""
    body = json.dumps(text, ensure_ascii=True)
    body = re.sub(r"\\u([dD][89aAbB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})", _joined, body)
    body = body.replace("\\b", "\\u0008").replace("\\f", "\\u000c") if "\\b" in body or "\\f" in body else body
    return body.replace("${", "$${").replace("%{", "%%{")


def _joined(pair: re.Match[str]) -> str:
    """A character beyond the first 65,536: HCL writes it as one number, JSON as two."""
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def shell(words: Sequence[str]) -> str:
    """A command line of these words. NUL cannot be part of one and is left out."""
    return " ".join(shlex.quote(word.replace("\x00", "")) for word in words)


def kubernetes(text: str) -> str:
    """A word of a container's command or the value of a setting: `$(NAME)` would be replaced there, `$$(NAME)` stays text."""
    return text.replace("$(", "$$(")


def one_line(text: str) -> str:
    """For comments: no character that ends a line, none that hides, and no more than a line holds."""
    flat = "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(flat.split())[:160]
