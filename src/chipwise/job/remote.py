"""An object store as a place for checkpoints, through fsspec: s3://, gs://, abfs://, memory:// and what else it knows.

There is no rename: an object appears whole when its upload ends, and the manifest, written last, is what makes a checkpoint.
There are no locks either, so that only the fence tells writers apart. Listings are never cached: another rank may have
written a moment ago.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from chipwise.errors import MissingExtra, NotAllowed, TryLater
from chipwise.job.store import Buffer

_CHUNK = 4 << 20
_ABSENT = (404, 410)
_OBJECTS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss", "hf"})


class Remote:
    quick = False

    def __init__(self, url: str, subject: str = "A checkpoint") -> None:
        try:
            fsspec = import_module("fsspec")
            self._files: Any
            self._files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        except ImportError as error:  # fsspec itself, or what this kind of URL needs
            kind = url.partition("://")[0]
            if kind in ("s3", "s3a") or error.name == "fsspec":
                raise MissingExtra(f"{subject} at {kind}://", "checkpoint") from error
            raise NotAllowed(
                f"{subject} at {kind}:// needs a library that is not here: {_sentence(error)}.",
                remedy="Install it in the environment of chipwise.",
            ) from error
        except Exception as error:  # each kind of store has its own
            raise TryLater(
                f"{_public_url(url)} cannot be opened: {_sentence(error)}.", remedy="Check it, or give a path."
            ) from error
        self._root = str(root).rstrip("/")
        self.location = _public_url(url)

    def prepare(self) -> None:
        """Where there are no directories there is nothing to make; and a bucket is its owner's to make, not ours."""
        protocols = self._files.protocol if isinstance(self._files.protocol, tuple | list) else (self._files.protocol,)
        if _OBJECTS.isdisjoint(protocols):
            with self._outside_errors("make"), contextlib.suppress(FileExistsError):
                self._files.makedirs(self._root, exist_ok=True)

    def lacks(self) -> str:
        """What is wrong with what should be at the URL itself: empty where a file that is not, or a folder, is there."""
        with self._outside_errors("look at"):
            self._files.invalidate_cache()
            try:
                info = self._files.info(self._root)
            except FileNotFoundError as error:
                if (failure := _unanswered(error.__cause__)) is not None:
                    raise failure from error
                return f"{self.location} is not there"
            return f"{self.location} is empty" if info.get("type") == "file" and info.get("size") == 0 else ""

    def names(self) -> list[str]:
        with self._outside_errors("list"):
            self._files.invalidate_cache()
            try:
                paths = self._files.ls(self._root, detail=False)
            except FileNotFoundError:
                return []
            return [str(path).rstrip("/").rsplit("/", 1)[-1] for path in paths]

    def age_s(self, name: str) -> float | None:
        try:
            return time.time() - float(self._files.modified(self._path(name)).timestamp())
        except Exception:  # not every store knows, and an unknown age is none
            return None

    def size(self, name: str) -> int:
        with self._outside_errors("look at"):
            self._files.invalidate_cache()
            return int(self._files.info(self._path(name))["size"])

    def read(self, name: str) -> bytearray:
        content = bytearray()
        for chunk in self.chunks(name):
            content += chunk
        return content

    def chunks(self, name: str) -> Iterator[bytes]:
        with self._outside_errors("read"), self._files.open(self._path(name), "rb") as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    def put(self, name: str, parts: Iterable[Buffer], temporary: str, *, lasting: bool = True) -> None:
        total = 0
        with self._outside_errors("write"):
            with self._files.open(self._path(name), "wb") as file:
                for part in parts:
                    view = memoryview(part).cast("B")
                    for start in range(0, view.nbytes, _CHUNK):
                        file.write(view[start : start + _CHUNK])
                    total += view.nbytes
            stored = self.size(name)
        if stored != total:
            raise TryLater(f"{self.location} has {stored:,} bytes of {name}, and {total:,} were sent.")

    def remove(self, *names: str) -> None:
        with self._outside_errors("remove from"):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    self._files.rm(self._path(name))

    def hold(self, lock: str) -> bool:
        return True

    def free(self, lock: str) -> None:
        pass

    def abandoned(self, lock: str) -> bool | None:
        return None

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextlib.contextmanager
    def _outside_errors(self, action: str) -> Iterator[None]:
        """Errors of the outside become ours; that something is not there is an answer, not an error."""
        try:
            yield
        except (FileNotFoundError, FileExistsError, NotAllowed, TryLater):
            raise
        except PermissionError as error:
            raise NotAllowed(
                f"{self.location} may not be used: could not {action} it ({error}).", remedy="Check the credentials."
            ) from error
        except Exception as error:
            kind = type(error).__name__
            if "Credential" in kind:
                raise NotAllowed(
                    f"No credentials for {self.location} ({kind}: {error}).", remedy="Set them for this job."
                ) from error
            raise TryLater(f"Could not {action} {self.location}: {kind}: {error}.") from error


def _sentence(error: BaseException) -> str:
    """Of a library: on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _public_url(url: str) -> str:
    """Without a name and password before the host, and without a signature after it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2][:200]
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _unanswered(cause: BaseException | None) -> BaseException | None:
    """Why nobody could look, where a file system calls that "not found", as fsspec does over HTTP whatever went wrong."""
    if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
        return cause
    return cause if getattr(cause, "status", _ABSENT[0]) not in _ABSENT else None
