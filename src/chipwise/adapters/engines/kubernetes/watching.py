"""One thread for each kind keeps the picture: it lists once, then follows the changes from that version on.

After a lost connection it goes on from the last version that it saw; where the server no longer knows that one (410) it lists
anew. Failures wait ever longer, up to a limit. What may not be watched, or does not exist in this cluster, is done without.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

from chipwise.errors import ChipwiseError, NotAllowed, NotFound

from .connection import Connection, Expired
from .kinds import Watched
from .picture import Picture

STREAM_S = (45, 60)  # after which the server ends a watch, and another follows: a silence that is longer is a dead connection
WAITS_S = (0.2, 5.0)
WITHOUT_S = 60.0  # until a kind that is not there, or may not be read, is asked for again


@dataclass(slots=True)
class Watch:
    connection: Connection
    watched: Watched
    picture: Picture
    is_listed: bool = False  # listed at least once
    without: bool = False  # it cannot be had: not there, or not allowed
    trouble: ChipwiseError | None = None  # since the last thing that worked
    relists: int = 0
    streams: int = 0
    _version: str = ""
    _stopped: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._follow, name=f"watch {self.watched.kind.plural}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Soon: a thread that waits for a line ends with its stream, which whoever owns the connection cuts."""
        self._stopped.set()

    @property
    def lives(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def _follow(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
                failures = 0
            except Expired:
                self._version = ""
            except (NotAllowed, NotFound) as error:
                self._version, self.trouble, self.without = "", error, not self.watched.needed
                self._stopped.wait(WITHOUT_S if self.without else WAITS_S[1])
            except ChipwiseError as error:
                failures += 1
                self.trouble = error
                self._stopped.wait(_wait(failures))
            except Exception as error:
                # Whatever a closed client raises in the middle of a read, and a bug in chipwises: none may end the thread, for
                # the picture would stand still and nobody would know.
                if self._stopped.is_set():
                    return
                failures += 1
                self._version, self.trouble = "", ChipwiseError(f"watching {self.watched.kind.plural} failed: {error!r}")
                self._stopped.wait(_wait(failures))

    def _list(self) -> None:
        objects, version = self.connection.list(self.watched.kind, self.watched.labels)
        self.picture.listed(self.watched.kind, objects)
        self.relists += 1
        self._version, self.is_listed, self.without, self.trouble = version, True, False, None

    def _watch(self) -> None:
        began = time.monotonic()
        with self.connection.stream(
            self.watched.kind, self.watched.labels, self._version, random.randint(*STREAM_S)
        ) as changes:
            self.streams += 1
            self.trouble = None
            for change, item in changes:
                if self._stopped.is_set():
                    return
                if change in ("ADDED", "MODIFIED"):
                    self.picture.put(self.watched.kind, item)
                elif change == "DELETED":
                    self.picture.remove(self.watched.kind, item)
                self._version = str(item["metadata"]["resourceVersion"])
        if time.monotonic() - began < 1.0:  # a server that ends each at once is not asked in a tight loop
            self._stopped.wait(1.0)


def _wait(failures: int) -> float:
    first, longest = WAITS_S
    return float(min(first * 2.0 ** min(failures - 1, 10), longest)) * random.uniform(0.7, 1.3)
