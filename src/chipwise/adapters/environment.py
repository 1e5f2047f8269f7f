"""Which settings of a user's environment a program gets without asking for them.

Whoever woke the controller lent it their whole environment, with their keys in it, and it starts the jobs of others too. So
neither a submitter's nor a controller's environment goes along whole: anything else may be a secret, and is asked for by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

INHERITED_NAMES = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|VIRTUAL_ENV|CONDA_(?:PREFIX|DEFAULT_ENV)|PYTHON(?:PATH|HOME|UNBUFFERED"
    r"|DONTWRITEBYTECODE|HASHSEED)|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|(?:OMP|MKL|OPENBLAS|NCCL|GLOO|TORCH)_\w+|HF_HOME"
    r"|XDG_\w+|TERM|COLORTERM|NO_COLOR"
)
# Where a program that itself calls chipwise finds the same files; the record's URL may hold a password.
OUR_FOLDERS = ("CHIPWISE_CONFIG_DIR", "CHIPWISE_DATA_DIR")


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """What goes along by itself."""
    return {name: value for name, value in environ.items() if INHERITED_NAMES.fullmatch(name)}


def of_supervisor(environ: Mapping[str, str]) -> dict[str, str]:
    """What a program gets of its supervisor's environment: the system's own."""
    return inherited(environ) | {name: environ[name] for name in OUR_FOLDERS if name in environ}
