"""What a job must leave behind, whoever looks for it: files where they lie, by its engine; URLs by the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a supervisor reads this too, and needs no more of it
    from chipwise.runner.job import Spec

CODE = 66  # with which a job ends that ended well and left not all of it
LOOKS = "it ended well; looks for what it made"  # said while whoever keeps it does not answer
TOLD_AFTER_S = 2.0  # most answers come sooner, and need no word
PATIENCE_S = 600.0


def by_engine(spec: Spec, looks_at: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Files of its machines, and URLs that these look at with their own rights (`Traits.looks_at`)."""
    return tuple(one for one in spec.produces if "://" not in one or one.startswith(looks_at))


def by_controller(spec: Spec, looks_at: tuple[str, ...] = ()) -> tuple[str, ...]:
    """URLs that can be seen from anywhere."""
    local = by_engine(spec, looks_at)
    return tuple(one for one in spec.produces if one not in local)


def failure_reason(lacks: str) -> str:
    """Why it has failed after all. `lacks`: such as "a.bin is not there"."""
    return f"it ended well, but {lacks}"
