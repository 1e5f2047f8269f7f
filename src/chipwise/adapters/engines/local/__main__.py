"""`python -m` of this folder, with the folder of an attempt: supervises what its order says, once and never again."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from chipwise.adapters import private_environment

from . import SECRETS, folder
from .supervisor import Supervisor


def main(path: Path) -> int:
    lock = folder.lock(path / folder.LOCK)
    if lock is None:
        return 0  # another one was faster
    order = folder.read(path, folder.ORDER)
    if order is None or (path / folder.STATE).exists() or (path / folder.ENDED).exists():
        return 0  # an attempt begins once
    return Supervisor(path, order, lock, json.loads(os.environ.pop(SECRETS, "{}"))).run()


if __name__ == "__main__":
    private_environment.receive()
    sys.exit(main(Path(sys.argv[1])))
