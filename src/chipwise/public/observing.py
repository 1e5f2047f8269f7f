"""The verbs that look at what accelerators really do."""

from __future__ import annotations

from pathlib import Path

from chipwise.errors import BadInput
from chipwise.public.calling import verbs
from chipwise.public.opened import Opened
from chipwise.public.records import Record
from chipwise.public.workloads import Names


@verbs
class ObserveVerbs(Opened):
    """Watching."""

    __slots__ = ()

    def watch(
        self,
        job: str | None = None,
        *,
        pid: int | None = None,
        everything: bool = False,
        scrape: Names = (),
        record: str | Path | None = None,
        replay: str | Path | None = None,
        duration: str | float = "10s",
        every: str | float = "1s",
    ) -> Record:
        """What devices, host and program do: the newest sample, a summary over `duration` (percentiles, energy, cost), and the
        doctor's first finding over the last minute.

        Nothing named is this machine. Of a job of this machine the summary begins with the job, since its supervisor samples
        it. `record` writes all samples into a file, and `replay` reads one instead of watching.

        >>> cw.watch("train-3f2a", duration="5s").summary
        """
        from chipwise.api.observe import watching
        from chipwise.units import parse_seconds

        wanted = watching.WatchTarget(job, pid, (scrape,) if isinstance(scrape, str) else tuple(scrape))
        wanted.check(everything)
        if replay is not None:
            if job is not None or pid is not None or everything or scrape or record is not None:
                raise BadInput("replay cannot be combined with what is watched now.", remedy="Give replay alone.")
            watched, is_cut = watching.replayed(self.api, Path(replay))
        else:
            watched, is_cut = watching.begun(self.api, wanted, Path(record) if record is not None else None), False
            try:
                for _ in watching.turns(watched, parse_seconds(every), parse_seconds(duration)):
                    pass
            finally:
                watched.close()
        newest = watching.view(list(watched.store.newest.values()))
        fields = {"labels": dict(watched.header.labels), "summary": watched.summary.value(), "sources": newest["sources"]}
        fields["finding"] = watched.finding() or None
        return Record({**fields, "is_cut": is_cut, "notes": list(watched.source.notes)})
