"""Looks for notices beside other work, in a thread of its own. Where there is no cloud there is no thread.

$CHIPWISE_NOTICE_S: seconds between two looks, where those of the cloud (5) do not suit.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from chipwise.adapters.notices import here
from chipwise.adapters.notices.notice import Cloud, Notice, Silent

LEAST_AHEAD_S = 120.0
LONGEST_PAUSE_S = 20.0  # after failures: a notice may be two minutes long


class Watch:
    def __init__(self, cloud: Cloud | None = None) -> None:
        self.cloud = cloud
        self.notice: Notice | None = None

    def begin(self) -> None:
        self.cloud = self.cloud or here.connect()
        if self.cloud is not None:
            threading.Thread(target=self._look_for_ever, args=(self.cloud,), daemon=True).start()

    def due(self, grace_s: float) -> Notice | None:
        """A notice whose time has come. One that comes long before is heeded when what is left is needed for saving: until then
        the machine works, and the notice may be withdrawn."""
        notice = self.notice
        ahead = max(2.0 * grace_s, LEAST_AHEAD_S)
        return notice if notice is not None and notice.deadline - time.time() <= ahead else None

    def acknowledge(self) -> None:
        if self.cloud is not None and self.notice is not None:
            try:
                self.cloud.acknowledge(self.notice)
            except Silent as error:
                _tell(f"The notice could not be acknowledged: {error}")

    def _look_for_ever(self, cloud: Cloud) -> None:
        every_s = _every_s(cloud)
        pause, message = every_s, ""
        while True:
            begun = time.monotonic()
            try:
                self.notice = cloud.look()
                pause, message = every_s, ""
            except Silent as error:  # what was known still holds
                pause = min(2.0 * pause, LONGEST_PAUSE_S)
                if str(error) != message:
                    message = str(error)
                    _tell(f"The metadata service does not answer: {message}")
            except Exception as error:  # a thread that ends here would be missed by nobody
                pause = LONGEST_PAUSE_S
                _tell(f"Polling for notices failed: {error!r}")
            time.sleep(max(pause - (time.monotonic() - begun), 0.1))


def _every_s(cloud: Cloud) -> float:
    try:
        return max(float(os.environ.get("CHIPWISE_NOTICE_S") or cloud.every_s), 0.1)
    except ValueError:
        return cloud.every_s


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
