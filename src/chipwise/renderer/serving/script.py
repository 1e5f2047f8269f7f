"""Shell scripts that start an engine: settings and secrets first, then one command that replaces the shell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.quoting import one_line, shell

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def script(head: str, body: Sequence[str]) -> str:
    comments = "".join(f"# {one_line(line)}\n" if line.strip() else "#\n" for line in head.splitlines())
    return f"#!/usr/bin/env bash\n{comments}set -euo pipefail\n\n" + "\n".join(body) + "\n"


def surroundings(deployment: Deployment) -> list[str]:
    """Settings that the program reads; secrets must be there already, and are never written down."""
    lines = [
        f"export {name}={_value(value)}" for name, value in deployment.software.env if _NAME.match(name)
    ]  # a name that no shell takes cannot be exported
    for setting, secret, key in deployment.software.secrets:
        if _NAME.match(setting):
            message = re.sub(r"[^\w ./-]", "-", f"{setting} must be set to {key} of the secret {secret}", flags=re.ASCII)
            lines.append(f': "${{{setting}:?{message}}}"')
    return [*lines, ""] if lines else []


def command(words: Sequence[tuple[str, str | None, str]], last: Sequence[str] = ('"$@"',)) -> list[str]:
    """One flag a line. `words`: flag, value (None: it has none), reason, which stands above as a comment: a comment between
    continued lines would end the command."""
    lines = [f"# {flag or value}: {one_line(why)}" for flag, value, why in words if why]
    parts = [" ".join(part for part in (flag, None if value is None else shell([value])) if part) for flag, value, _ in words]
    return [*lines, " \\\n  ".join(["exec " + parts[0], *parts[1:], *last])]


def _value(text: str) -> str:
    return shell([text])
