"""The verbs that look at what runs: why it is slow, and whether devices are well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput
from chipwise.public.calling import verbs
from chipwise.public.opened import Opened
from chipwise.public.records import Record

if TYPE_CHECKING:
    from chipwise.observe.sample import Recording


def _quiet(passed_s: float) -> None:
    """The library prints nothing."""


@verbs
class DiagnoseVerbs(Opened):
    """Diagnoses of programs and devices."""

    __slots__ = ()

    def doctor(
        self, target: str | Path | Recording | None = None, *, pid: int | None = None, duration: str | float = "30s"
    ) -> Record:
        """Why a program is slow: a job or process that is sampled for so long, or a recording (a file, or a value).

        >>> cw.doctor("run.jsonl").findings
        """
        from chipwise.api.observe import doctor as api
        from chipwise.observe.sample import Recording
        from chipwise.units import parse_seconds
        from chipwise.views.doctor import view

        if (target is None) == (pid is None):
            raise BadInput("Give a job, a recording or a pid.", remedy='cw.doctor("run.jsonl") or cw.doctor(pid=4711).')
        if isinstance(target, Recording):
            return Record(view(api.diagnosed(self.api, target)))
        length_s = parse_seconds(duration)
        if pid is not None:
            return Record(view(api.from_process(self.api, pid, length_s, _quiet)))
        if isinstance(target, Path) or Path(str(target)).is_file():
            return Record(view(api.from_file(self.api, Path(str(target)))))
        return Record(view(api.of_target(self.api, str(target), length_s, _quiet)))

    def health(self, source: str | Path | None = None, *, drain: bool = False) -> Record:
        """Judge the health of devices: of this machine, a recording, a kernel log or a list of nodes.

        `drain`: local jobs get no GPU that should be drained until it recovers.

        >>> cw.health("kernel.log").devices
        """
        from chipwise.api.observe import health as api
        from chipwise.views.health import view

        if drain and source is not None:
            raise BadInput("Only devices of this machine can be drained.", remedy="Leave the file out.")
        judged, notes = (api.of_file(Path(source)), []) if source is not None else api.here(self.api)
        if drain:
            api.drain_here(self.api, judged)
        return Record(view(judged, notes))
