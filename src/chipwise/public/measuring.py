"""The verbs that measure, and hold predictions against measurements."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chipwise.errors import BadInput, NoResult
from chipwise.public.calling import verbs
from chipwise.public.opened import Opened
from chipwise.public.plans import NoPlan, Plan
from chipwise.public.records import Record, Table
from chipwise.public.workloads import Names, read_workload

if TYPE_CHECKING:
    from chipwise.workload.common import Common


def _is_workload_text(target: str) -> bool:
    """A workload file, or its text."""
    return target.endswith((".yaml", ".yml")) or "\n" in target


def _quiet(done: int, total: int | None, what: str) -> None:
    """The library prints nothing."""


@verbs
class MeasureVerbs(Opened):
    """Measurements, and predictions held against them."""

    __slots__ = ()

    def bench(
        self,
        workload: str | Path | Mapping[str, Any] | Common | Plan | NoPlan,
        *,
        on: Names,
        repeat: int = 1,
        steps: int | None = None,
        longest: str | float | None = None,
        environment: str | None = None,
        out: str | Path | None = None,
        force: bool = False,
    ) -> Table:
        """Run the same work at several places, one after the other: measured speed and cost beside the prediction.

        A place is local, `local:gpus=1`, kubernetes, `ec2:INSTANCE_TYPE`, a name of engines.yaml, or simulated. `out` gets rows
        that `cw.calibrate` reads; a file that is there stays unless `force`.

        >>> cw.bench("workload.yaml", on=["local:cpus=1", "local:cpus=2"], steps=200)
        """
        from chipwise.api.measure import bench as benching
        from chipwise.api.measure import places
        from chipwise.api.measure.profile import check_out, write
        from chipwise.units import parse_seconds
        from chipwise.views.bench import result_view

        session, source = self.api, read_workload(workload)
        work = places.checked(session, source, environment)
        wanted = places.BenchRequest(
            path=source,
            work=work,
            places=places.places(session, (on,) if isinstance(on, str) else tuple(on)),
            repeat=repeat,
            steps=steps,
            longest=None if longest is None else parse_seconds(longest),
            environment=environment,
        )
        if out is not None:
            check_out(Path(out), force)
            benching.check_rows(session, wanted)
        notes: list[str] = []
        results = benching.bench(session, wanted, _quiet, notes.append)
        if out is not None:
            table, left_out = benching.rows(session, wanted, results)
            notes += left_out
            if table:
                write(Path(out), table, force)
        return Table(map(result_view, results), notes=notes)

    def load(
        self,
        target: str | Path | Mapping[str, Any] | Common | Plan | NoPlan,
        *,
        url: str | None = None,
        environment: str | None = None,
        rate: float | None = None,
        duration: str | float | None = None,
        warm_up: str | float | None = None,
        arrivals: str | None = None,
        burstiness: float | None = None,
        trace: str | Path | None = None,
        speed: float | None = None,
        input: int | None = None,
        output: int | None = None,
        model: str | None = None,
        api: str | None = None,
        stream: bool = True,
        key_variable: str | None = None,
        ttft: str | float | None = None,
        tpot: str | float | None = None,
        latency: str | float | None = None,
        percentile: float | None = None,
        connections: int | None = None,
        seed: int | None = None,
        usd_per_hour: float | None = None,
        search: bool = False,
        on: str | None = None,
        replicas: int | None = None,
        html: str | Path | None = None,
        force: bool = False,
    ) -> Record:
        """Send requests to a service at a rate that does not wait for its answers: percentiles from when each was due.

        `target` is a URL or a workload; `search` finds the highest rate within the goals; `on` adds the prediction; `html` is a
        file to write as a page with curves, which `force` overwrites.

        >>> cw.load("http://127.0.0.1:8000", rate=20, duration="60s").ttft_s.p95
        """
        from chipwise.api import report
        from chipwise.api.measure.load import LoadOptions, measured
        from chipwise.units import parse_goal, parse_seconds
        from chipwise.views.load_result import result_view

        def seconds(value: str | float | None) -> float | None:
            return None if value is None else parse_seconds(value)

        def goal(name: str, value: str | float | None) -> float | None:
            return None if value is None else parse_goal(str(value), name)

        options = LoadOptions(
            url=url,
            environment=environment,
            rate=rate,
            duration=seconds(duration),
            warm_up=seconds(warm_up),
            arrivals=arrivals,
            burstiness=burstiness,
            trace=None if trace is None else str(trace),
            speed=speed,
            input=input,
            output=output,
            model=model,
            api=api,
            stream=stream,
            key_variable=key_variable,
            ttft=goal("ttft", ttft),
            tpot=goal("tpot", tpot),
            latency=goal("latency", latency),
            percentile=percentile,
            connections=connections,
            seed=seed,
            usd_per_hour=usd_per_hour,
            search=search,
            chip=on,
            replicas=replicas,
        )
        is_url = isinstance(target, str) and not _is_workload_text(target)
        source = str(target) if is_url else read_workload(target)
        if html is not None:
            report.check(Path(html), None if is_url else source, force)
        result = measured(self.api, source, options, _quiet)
        if html is not None:
            report.write_load(result, Path(html), force=force)
        return Record(result_view(result))

    def profile(
        self,
        *,
        quick: bool = False,
        device: str = "auto",
        chip: str | None = None,
        seconds: float | None = None,
        show: str | None = None,
        forget: str | None = None,
        out: str | Path | None = None,
        picture: str | Path | None = None,
    ) -> Record:
        """Measure this machine's GPU or processor with PyTorch and keep the profile; predictions for that chip use it.

        `show` gives a stored profile (`""` the newest) instead of measuring, `forget` removes one; `out` and `picture` are
        files.

        >>> cw.profile(quick=True, picture="roofline.svg")
        """
        from chipwise.api.measure import profile as profiling
        from chipwise.perf.profile import dump
        from chipwise.views.profile import picture as draw
        from chipwise.views.profile import view

        if device not in ("auto", "cuda", "cpu"):
            raise BadInput(f"There is no device {device!r}.", remedy="Use auto, cuda or cpu.")
        if forget is not None:
            removed = profiling.forget(self.api, forget)
            self.reload()
            return Record({"forgotten": str(removed)})
        if show is not None:
            measured = profiling.show(self.api, show or None)
        else:
            measured = profiling.measure(self.api, profiling.Wish(quick, device, chip, seconds), _quiet)
            self.reload()
        if out is not None:
            profiling.write(Path(out), dump(measured.profile))
        if picture is not None:
            profiling.write(Path(picture), draw(measured))
        return Record(view(measured))

    def characterize(
        self,
        command: str | Sequence[str],
        *,
        duration: float | str = 120.0,
        out: str | Path | None = None,
        force: bool = False,
        threads: Sequence[int] | None = None,
        single_run: bool = False,
        on: str | None = None,
        stdin: str | Path | None = None,
        steps: int | None = None,
        name: str | None = None,
        explain: bool = False,
    ) -> Record:
        """Run a program until it has been steady for `duration`, and say what it is: time, operations, bytes, parallel share.

        `workload` of the record is the text of a workload file for `cw.plan`; `out` gets it too. `explain` adds the four
        answers. The program is run several times unless `single_run`, and its output is left out.

        >>> cw.characterize("python train.py", duration=30, out="workload.yaml").step_s
        """
        from chipwise.api.measure import characterise as characterising
        from chipwise.api.measure.profile import check_out, write
        from chipwise.units import parse_seconds
        from chipwise.views.characterise import answers_view, view

        if out is not None:
            check_out(Path(out), force)
        request = characterising.CharacteriseRequest(
            command=tuple(shlex.split(command)) if isinstance(command, str) else tuple(command),
            steady_s=parse_seconds(duration),
            threads=None if threads is None else tuple(threads),
            single_run=single_run,
            on=on,
            stdin=None if stdin is None else Path(stdin),
            steps=steps,
            name=name,
        )
        result = characterising.characterise_program(self.api, request, None, lambda line: None)
        if out is not None:
            write(Path(out), result.text, force)
        answers = {"answers": answers_view(result.character, characterising.plan_of(self.api, result.text))} if explain else {}
        return Record({**view(result.character), **answers, "workload": result.text})

    def calibrate(
        self,
        path: str | Path | None = None,
        *,
        from_runs: bool = False,
        dry_run: bool = False,
        force: bool = False,
        forget: bool = False,
    ) -> Record:
        """Fit predictions to your own runs (CSV or JSON lines) and keep the factors; without a file, what is stored.

        `from_runs` takes the finished runs of the database instead of a file, if settings.yaml of the config directory says
        `calibrate_from_runs: true`.

        >>> cw.calibrate("measured.csv", dry_run=True).held_out
        """
        from chipwise.api.measure import calibrate as calibration
        from chipwise.calibration.stored import stored
        from chipwise.views.calibrate import calibration_view, stored_view

        if from_runs and path is not None:
            raise BadInput("from_runs takes no file.", remedy="Give a file or from_runs.")
        if forget:
            if path is not None or from_runs:
                raise BadInput("forget takes no file.", remedy="Forget first, then calibrate again.")
            removed = calibration.forget(self.api)
            self.reload()
            return Record({"forgotten": str(removed)})
        if path is None and not from_runs:
            stored_factors = stored(self.api.config.calibration)
            if stored_factors is None:
                raise NoResult("No calibration is stored.", remedy="cw.calibrate('measured.csv') makes one.")
            return Record(stored_view(stored_factors))
        if path is None:
            fitted = calibration.calibrate_from_runs(self.api, dry_run=dry_run, force=force)
        else:
            fitted = calibration.calibrate(self.api, str(path), None, dry_run=dry_run, force=force)
        if fitted.path is not None:
            self.reload()
        return Record({**calibration_view(fitted), "notes": list(fitted.measured.notes)})

    def accuracy(self, name: str | None = None, *, since: str | float | None = None) -> Record:
        """Compare predictions with your own finished runs: each run, coverage of the intervals, trend and drifts.

        `name` is that of a workload or job, `since` a time such as "30d".

        >>> cw.accuracy("train", since="30d").overall
        """
        import time

        from chipwise.api.measure import runs
        from chipwise.units import parse_seconds
        from chipwise.views.accuracy import view

        earliest = 0.0 if since is None else time.time() - parse_seconds(since)
        return Record(view(runs.accuracy(self.api, name or "", earliest)))

    def score(
        self,
        path: str | Path,
        *,
        leave_out: str | None = None,
        folds: int | None = None,
        own: bool = True,
        out: str | Path | None = None,
        force: bool = False,
    ) -> Record:
        """Score predictions against the measurements in a file (CSV or JSON lines).

        `leave_out` is group, configuration or chip: each row is answered as if that had never been seen. `own=False` leaves
        your own calibration and profiles out; `out` gets all rows with what was predicted, and a file that is
        there stays unless `force`.

        >>> cw.score("measured.csv").scored
        """
        from chipwise.api.measure.profile import check_out, write
        from chipwise.api.measure.score import Ask
        from chipwise.api.measure.score import score as ask
        from chipwise.views.score import predictions, view

        if leave_out not in (None, "group", "configuration", "chip"):
            raise BadInput(f"leave_out={leave_out!r} is not known.", remedy="Use group, configuration or chip.")
        if folds is not None and leave_out is None:
            raise BadInput("folds says how leave_out fits.", remedy="Add leave_out.")
        if out is not None:
            check_out(Path(out), force)
        scored = ask(self.api, str(path), None, Ask(leave_out, folds, own), _quiet)
        if out is not None:
            write(Path(out), predictions(scored), force)
        return Record(view(scored))
