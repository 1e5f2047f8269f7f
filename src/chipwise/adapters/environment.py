"""Which settings of a user's environment a program gets without asking for them.

Whoever woke the controller lent it their whole environment, with their keys in it, and it starts the jobs of others too. So
neither a submitter's nor a controller's environment goes along whole: anything else may be a secret, and is asked for by name.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Mapping

INHERITED_NAMES = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|VIRTUAL_ENV|CONDA_(?:PREFIX|DEFAULT_ENV)|PYTHON(?:PATH|HOME|UNBUFFERED"
    r"|DONTWRITEBYTECODE|HASHSEED)|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH|CUDA_HOME|CUDA_PATH|(?:OMP|MKL|OPENBLAS|NCCL|GLOO|TORCH)_\w+|HF_HOME"
    r"|XDG_\w+|TERM|COLORTERM|NO_COLOR"
)
# Where a program that itself calls chipwise finds the same files; the record's URL may hold a password.
OUR_FOLDERS = ("CHIPWISE_CONFIG_DIR", "CHIPWISE_DATA_DIR")


_OF_A_LOGIN = re.compile(r"HOME|USER|LOGNAME|SHELL|TMPDIR|XDG_\w+")  # mean nothing to a program of another system user


def inherited(environ: Mapping[str, str], *, same_user: bool = True) -> dict[str, str]:
    """What goes along by itself; not `same_user`: to a program that runs as another system user than whoever has it."""
    names = (name for name in environ if INHERITED_NAMES.fullmatch(name))
    return {name: environ[name] for name in names if same_user or not _OF_A_LOGIN.fullmatch(name)}


def of_supervisor(environ: Mapping[str, str]) -> dict[str, str]:
    """What a program gets of its supervisor's environment: the system's own, with the home and name of this system user where
    they are missing, or are another's, as after `su` or `runuser`."""
    folders = {name: environ[name] for name in OUR_FOLDERS if name in environ}
    try:
        user = pwd.getpwuid(os.geteuid())
    except KeyError:  # a container without a name for its user
        return inherited(environ) | folders
    login = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": user.pw_shell}
    is_own = all(environ.get(name, user.pw_name) == user.pw_name for name in ("USER", "LOGNAME"))
    return login | inherited(environ, same_user=is_own) | folders
