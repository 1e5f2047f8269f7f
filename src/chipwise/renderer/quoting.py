"""Text of a user, made safe for the languages that files are written in.

Whatever a workload says (names, labels, commands, settings) passes through one of these before it stands in a file, so that
quotes, newlines, `${}` or `{{ }}` stay text. YAML has a module of its own (`yaml_text`); programs read
their settings as data (`program_files`).
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence

_HCL_SIGNS = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
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
    """A string of Terraform. `${` and `%{` begin a template there, and are doubled to stay text. Half of a surrogate pair is
    no character for it and becomes U+FFFD."""
    body = "".join(map(_hcl_sign, text))
    return '"' + body.replace("${", "$${").replace("%{", "%%{") + '"'


def _hcl_sign(sign: str) -> str:
    code = ord(sign)
    if sign in _HCL_SIGNS:
        return _HCL_SIGNS[sign]
    if 0xD800 <= code <= 0xDFFF:
        return "\\ufffd"
    if sign.isascii() and sign.isprintable():
        return sign
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shell(words: Sequence[str]) -> str:
    """A command line of these words. NUL cannot be part of one and is left out."""
    return " ".join(_shell_word(word.replace("\x00", "")) for word in words)


def _shell_word(word: str) -> str:
    """What would steer a terminal or hide in an editor is written by its bytes, in a way that every shell knows."""
    parts = re.split(r"([^\n\t -~]+)", word)
    hidden = [part for part in parts[1::2] if not part.isprintable()]
    if not hidden:
        return shlex.quote(word)
    quoted = [f"\"$(printf '{_octal(part)}')\"" if part in hidden else shlex.quote(part) for part in parts if part]
    return "".join(quoted)


def _octal(text: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in text.encode("utf-8", "replace"))


def kubernetes(text: str) -> str:
    """A word of a container's command or the value of a setting. `$(NAME)` would be replaced there and `$$` become `$`; a
    doubled sign stays what it was."""
    return re.sub(r"\${2,}|\$(?=\()", lambda found: found[0] * 2, text)


def file_name(text: str) -> str:
    """One part of a path: what is no letter, digit, `-`, `_` or `.` becomes a dash, and it leads nowhere else."""
    return re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII)[:120].strip("-.") or "model"


def is_hub_id(text: str) -> bool:
    """Owner and name, as hubs of models have them."""
    return re.fullmatch(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", text, re.ASCII) is not None


def one_line(text: str) -> str:
    """For comments: no character that ends a line, none that hides, and no more than a line holds."""
    flat = text if text.isprintable() else "".join(sign if sign.isprintable() else " " for sign in text)
    return " ".join(flat.split())[:160]
