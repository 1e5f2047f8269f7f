"""An image whose tag was inferred may not exist: the file itself says so, and how to look."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.source import Sources

ABOUT = "tags of images were looked up"
_SIGN = re.compile(r"\s*# verify: docker buildx imagetools inspect (?P<image>\S+) \((?P<reason>.*)\)\s*")


def check(sources: Sources) -> Iterator[Finding]:
    for path, text in sources.texts:
        for number, line in enumerate(text.splitlines(), start=1):
            if (matched := _SIGN.fullmatch(line)) is not None:
                yield Finding(
                    rule="unverified-image",
                    weight=Weight.LOW,
                    path=path,
                    line=number,
                    what=f"{matched['image']} was never seen: {matched['reason']}",
                    fix="Run the command of that line; name a tag that is there, or its digest, and delete the line.",
                )
