"""Deployments whose every text tries to break out of the language that it is written in."""

from __future__ import annotations

from dataclasses import replace

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.quoting import dns_name

CANARY = "chipwise-escaped"  # a file that appears in the working directory where a text was run; nothing here does harm
TEXTS = (
    "'",
    '"',
    '"""',
    "'''",
    "\\",
    "\\'",
    '\\"',
    "\n",
    "\r\n#",
    f"$(touch {CANARY})",
    "${HOME}",
    f"`touch {CANARY}`",
    "{{ x }}",
    "{0}",
    "%s",
    "a b",
    f"; touch {CANARY}",
    "&& true",
    "--flag",
    "# no comment",
    "EOF\nEOF",
    "\u202eabc",
    "\u2028",
    "é\U0001d4b3",
    "!!python/object",
    "@KEEP@",
    "x" * 2000,
)


def hostile(planned: Deployment, text: str) -> Deployment:
    software = replace(
        planned.software,
        command=("python", "train.py", text, f"--a={text}"),
        env=(("SETTING", text), ("OTHER", f"x{text}")),
        is_custom=True,
    )
    return replace(
        planned,
        title=text,
        name=dns_name(text),
        description=text,
        labels={"owner": text, text[:60]: "x"},
        software=software,
        notes=(text,),
    )
