"""The nearest known names to one that was mistyped. Case, blanks, `-` and `_` do not count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_NOISE = re.compile(r"[\s_\-./:]+")


@lru_cache(maxsize=2**14)  # a catalog has thousands of names, and every look at it folds them all
def fold(name: str) -> str:
    """The form in which two spellings of one name are equal: lower case, without separators."""
    return _NOISE.sub("", name.casefold())


def nearest(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Up to `count` known names, the most similar first; none when nothing is similar."""
    from difflib import get_close_matches  # only a typo pays for this import

    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(fold(candidate), candidate)
    wanted = fold(name[:200])  # a pasted document is not a name
    starts = [folded[k] for k in folded if wanted and len(wanted) >= 2 and k.startswith(wanted)]
    close = [folded[k] for k in get_close_matches(wanted, list(folded), n=count, cutoff=0.6)]
    return tuple(dict.fromkeys(close + sorted(starts, key=len)))[:count]
