"""A folder of whoever submits a job as one object in S3, which a machine unpacks before the command runs.

It is named by the digest of what is in it: the same folder is sent once, whatever jobs use it, and none is ever changed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from chipwise.errors import BadInput, NotFound

MOST_BYTES = 256 * 2**20  # before it is compressed: code, not data
LEFT_OUT = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        "venv",
        "node_modules",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".ipynb_checkpoints",
        ".tox",
        ".nox",
    }
)


def packed(folder: Path) -> bytes:
    """The same bytes for the same files, whoever owns them and whenever they were written."""
    if not folder.is_dir():
        raise NotFound(f"The folder {folder} does not exist.", remedy="Give an existing one with --folder.")
    raw, total = io.BytesIO(), 0
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _files(folder):
            try:
                entry = archive.gettarinfo(path, arcname=str(path.relative_to(folder)))
                if entry is None or not (entry.isreg() or entry.issym()):  # neither sockets nor devices
                    continue
                body = path.read_bytes() if entry.isreg() and total + entry.size <= MOST_BYTES else b""
            except FileNotFoundError:  # taken away meanwhile
                continue
            except OSError as error:
                raise BadInput(
                    f"{path} cannot be read: {error.strerror}.",
                    remedy="Fix its permissions, or put the code into a separate folder.",
                ) from error
            total += entry.size
            if total > MOST_BYTES:
                raise BadInput(
                    f"The folder {folder} holds more than {MOST_BYTES // 2**20} MiB.",
                    remedy="Put data into S3 and let the program read it there; or name a container image with the code in it.",
                )
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = 0
            entry.mode = 0o755 if entry.mode & 0o100 else 0o644
            if entry.issym():
                archive.addfile(entry)
            else:
                entry.size = len(body)  # it may have grown meanwhile
                archive.addfile(entry, io.BytesIO(body))
    return gzip.compress(raw.getvalue(), 6, mtime=0)


def name_of(body: bytes) -> str:
    return f"code/{hashlib.sha256(body).hexdigest()[:32]}.tar.gz"


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in LEFT_OUT)
        links = [one for one in folders if (Path(parent) / one).is_symlink()]  # which are not walked into
        yield from (Path(parent) / one for one in sorted((*files, *links)))
