"""What the pods of an attempt wrote. The cluster forgets it with the pod, so it is fetched when an attempt leaves or is over.

Kept are files by job, attempt and pod index, each cut to its end. Who keeps logs elsewhere needs none: no folder, no files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from chipwise.adapters import state_files
from chipwise.errors import ChipwiseError, NotFound, TryLater

from .connection import Connection
from .kinds import POD, Object
from .picture import FINAL_PHASES, Key, index_of, started

KEPT_BYTES = 8 << 20  # of each pod, from the end
LINES_KEPT = 50_000
PODS_KEPT = 64  # of one attempt
PATIENCE_S = 5.0  # with a machine that is about to go, or gone
LOOK_S = 0.5  # until it is looked again whether a pod has begun, or another came in its place
_FILE = re.compile(r"([0-9]+)\.log")
Look = Callable[[], tuple[Sequence[Object], bool]]  # pods of an attempt, and whether it is over


def ordered(pods: Sequence[Object]) -> list[Object]:
    """By index, and the newest of one that was made several times last."""
    return sorted(pods, key=lambda one: (int(index_of(one) or 0), str(one["metadata"].get("creationTimestamp", ""))))


def ranked(pods: Sequence[Object], rank: int | None) -> list[tuple[int, Object]]:
    """Those of one number, or all, each with the number by which it is asked for alone: its index. Replicas of a service have
    none and are counted by age, the oldest first."""
    ages = count()
    numbered = [(int(index_of(one) or next(ages)), one) for one in ordered(pods)]
    return [(number, one) for number, one in numbered if rank in (None, number)]


def of_rank(pods: Sequence[Object], rank: int | None) -> list[Object]:
    return [one for _, one in ranked(pods, rank)]


def _headed(parts: Sequence[tuple[int, Iterator[bytes]]]) -> Iterator[bytes]:
    """What each wrote under its rank, where there are several; one that wrote nothing has no heading."""
    headings, heading, last = len({rank for rank, _ in parts}) > 1, -1, b"\n"
    for rank, pieces in parts:
        for piece in pieces:
            if headings and piece and rank != heading:
                heading = rank
                yield b"" if last.endswith(b"\n") else b"\n"
                yield f"--- rank {rank}\n".encode()
            last = piece or last
            yield piece


@dataclass(frozen=True, slots=True)
class Logs:
    connection: Connection
    folder: Path | None
    wait: Callable[[float], None] = time.sleep

    def of(self, key: Key, pods: Sequence[Object], rank: int | None) -> Iterator[bytes]:
        """Of one pod, or of all in turn, each under its rank, as far as they wrote; what was kept where they are gone."""
        chosen = ranked(pods, rank)
        if not chosen:
            yield from self._stored(key, rank)
            return
        begun = [(number, one) for number, one in chosen if started(one) is not None]  # of others the server refuses to tell
        yield from _headed([(number, self._text(one, {})) for number, one in begun])

    def follow(self, key: Key, look: Look, rank: int | None) -> Iterator[bytes]:
        """Of one pod, the first unless another is named, and of those that come in its place, until the attempt is over."""
        wanted = rank or 0
        offsets: dict[str, int] = {}  # bytes, by pod: whoever is cut off is shown the rest
        complete: set[str] = set()
        while True:
            try:
                pods, finished = look()
                for pod in of_rank(pods, wanted):
                    uid = str(pod["metadata"]["uid"])
                    if started(pod) is None or uid in complete:
                        continue
                    yield from self._rest(pod, uid, offsets)
                    if (pod.get("status") or {}).get("phase") in FINAL_PHASES:  # else a server that goes down has cut it off
                        complete.add(uid)
            except TryLater:  # the server is away for a while; the job runs on
                finished = False
            except NotFound:  # gone between the two questions
                continue
            if finished:
                if not offsets:
                    with suppress(NotFound):
                        yield from self._stored(key, wanted)
                return
            yield b""  # nothing was added since: whoever follows may look at something else
            self.wait(LOOK_S)

    def _rest(self, pod: Object, uid: str, offsets: dict[str, int]) -> Iterator[bytes]:
        skip = offsets.setdefault(uid, 0)
        for part in self._text(pod, {"follow": "true"}):
            new = part[skip:]
            skip -= len(part) - len(new)
            offsets[uid] += len(new)
            if new:
                yield new

    def _text(self, pod: Object, asked: dict[str, str], patience_s: float | None = None) -> Iterator[bytes]:
        yield from self.connection.text(POD, pod["metadata"]["name"], "log", asked, patience_s)

    def keep(self, key: Key, pods: Sequence[Object]) -> None:
        """As far as the cluster still gives them: neither leaving nor clearing is held up by what cannot be read."""
        if self.folder is None:
            return
        folder = self.folder / key[0] / str(key[1])
        with suppress(ChipwiseError, OSError):  # a node that does not answer for one pod is not asked for the next
            for number, pod in enumerate([one for one in ordered(pods) if started(one) is not None][:PODS_KEPT]):
                end = bytearray()
                for part in self._text(pod, {"tailLines": str(LINES_KEPT)}, PATIENCE_S):
                    end += part
                    if len(end) > 2 * KEPT_BYTES:
                        del end[:-KEPT_BYTES]
                state_files.make_folder(folder)
                (folder / f"{index_of(pod) or number}.log").write_bytes(end[-KEPT_BYTES:])

    def _stored(self, key: Key, rank: int | None) -> Iterator[bytes]:
        folder = None if self.folder is None else self.folder / key[0] / str(key[1])
        files = sorted(
            (int(match[1]), path)
            for path in (folder.iterdir() if folder is not None and folder.is_dir() else ())
            if (match := _FILE.fullmatch(path.name))
        )
        wanted = [(index, path) for index, path in files if rank is None or index == rank]
        if not wanted:
            raise NotFound(
                f"The pods of {key[0]}, attempt {key[1]}, are gone, and nothing that they wrote was kept.",
                remedy="A log collector of the cluster may have it.",
            )
        yield from _headed([(index, _content(path)) for index, path in wanted])


def _content(path: Path) -> Iterator[bytes]:
    yield path.read_bytes()
