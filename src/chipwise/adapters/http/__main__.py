"""`python -m` of this folder, with the folder of a service: its gateway, until it is asked to end."""

from __future__ import annotations

import sys
from pathlib import Path

from chipwise.adapters.http.loops import run
from chipwise.adapters.http.service_gateway import serve
from chipwise.errors import ChipwiseError

if __name__ == "__main__":
    try:
        sys.exit(run(serve(Path(sys.argv[1]))))
    except ChipwiseError as error:
        print(f"chipwise: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
