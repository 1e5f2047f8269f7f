"""`python -m` of this folder, with the folder of an attempt: supervises what its order says, once and never again."""

from __future__ import annotations

import sys
from pathlib import Path

from . import folder
from .supervisor import Supervisor


def main(at: Path) -> int:
    lock = folder.lock(at / folder.LOCK)
    if lock is None:
        return 0  # another one was faster
    order = folder.read(at, folder.ORDER)
    if order is None or (at / folder.STATE).exists() or (at / folder.ENDED).exists():
        return 0  # an attempt begins once
    return Supervisor(at, order, lock).run()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
