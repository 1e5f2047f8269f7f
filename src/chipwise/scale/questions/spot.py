"""Rules that spend money, by name or from a user's file, and what each would have cost on traces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput, UnknownName
from chipwise.files.handed import read_bytes
from chipwise.scale.policy_files import spot_policy
from chipwise.scale.simulator.size import check_flags, check_size
from chipwise.scale.simulator.spot_compared import SpotAnswer, SpotComparison, SpotHours, fitted
from chipwise.scale.simulator.synthetic import SyntheticMarket, series
from chipwise.scale.spot import Flags, SpotJob
from chipwise.scale.trace_tables import NotASeries
from chipwise.scale.traces import MOST_BYTES, Series, cut, evaluated, read_series, read_windows
from chipwise.spelling import nearest
from chipwise.text import plural
from chipwise.units import parse_count

if TYPE_CHECKING:
    from chipwise.catalog.feed import Report

WINDOWS = (
    "windows.csv",
    "windows.csv.gz",
)  # a folder that has one is the public evaluation, and names series of another folder
EVALUATED_SERIES = Path("spot_traces/availability/1-node/aws-10-26-2022")
SYNTHETIC_TICK_S = 600.0
MOST_JOBS = 10_000
MOST_FILES = 100_000  # and folders, of a folder of traces


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotQuestion:
    """Every series, deadline and restart with each other is a scenario."""

    policies: tuple[str, ...]
    trace: Path | None = None
    synthetic: str | None = None
    tick_s: float | None = None
    available_is: int | None = None
    windows: int = 1
    job_hours: float | None = None  # None, as for the deadlines: those of the public evaluation, in proportion to short traces
    deadline_hours: tuple[float, ...] | None = None
    restart_hours: tuple[float, ...] = (0.02, 0.05, 0.1)
    spot_price: float = 0.9731
    on_demand_price: float = 3.06
    seed: int = 0


def simulate_spot(question: SpotQuestion, report: Report) -> list[SpotAnswer]:
    """One answer per policy, in the order asked for."""
    return list(compare_spot(question, report).answers)


def named_policies(policies: Sequence[str]) -> Sequence[str]:
    """Raises where there is none to simulate."""
    if not any(name.strip() for name in policies):
        raise BadInput("No policy is named.", remedy="Name some of those that `chipwise policies` lists.")
    return policies


def compare_spot(question: SpotQuestion, report: Report) -> SpotComparison:
    """The answers, what each scenario cost, and what is to be said of the traces."""
    import numpy as np

    from chipwise.scale.simulator.optimum import optimum
    from chipwise.scale.simulator.spot import play

    begins = {name: spot_policy(name) for name in named_policies(question.policies)}
    batches, notes = _batches(question)
    total = sum(job.ticks for job, _ in batches)
    scenarios = sum(len(available) for _, available in batches)
    report(0, None, "bound")
    bounds_usd = np.concatenate([optimum(available, job) for job, available in batches])
    bound = float(bounds_usd.sum())
    answers, costs_usd, unused = [], [], []
    for name, begin in begins.items():
        outcomes, elapsed = [], 0
        for job, available in batches:
            outcomes.append((job, play(available, job, begin, each_tick=_ticks_of(report, elapsed, total, name))))
            elapsed += job.ticks
        usd = sum(float(outcome.usd.sum()) for _, outcome in outcomes)
        late = sum(int(outcome.is_late.sum()) for _, outcome in outcomes)
        answers.append(
            SpotAnswer(policy=name, scenarios=scenarios, mean_usd=usd / scenarios, late=late, ratio_to_bound=usd / bound)
        )
        costs_usd.append(np.concatenate([outcome.usd for _, outcome in outcomes]))
        unused.append(np.concatenate([1.0 - outcome.finish_h / job.deadline_h for job, outcome in outcomes]))
    return SpotComparison(
        answers=tuple(answers), bounds_usd=bounds_usd, costs_usd=tuple(costs_usd), unused=tuple(unused), notes=tuple(notes)
    )


def spot_series(question: SpotQuestion) -> list[Series]:
    """Of the trace, or invented."""
    if question.trace is not None:
        return _traces(question.trace, question)[0]
    return _synthetic(question, SpotHours.of(question.job_hours, question.deadline_hours))


def _ticks_of(report: Report, elapsed: int, total: int, name: str) -> Callable[[int], None]:
    return lambda tick: report(elapsed + tick + 1, total, name)


def _batches(question: SpotQuestion) -> tuple[list[tuple[SpotJob, Flags]], list[str]]:
    """Jobs with the windows that they are tried on, and notes on what was left out or assumed."""
    if (question.trace is None) == (question.synthetic is None):
        raise BadInput("Give either --trace or --synthetic.")
    hours = SpotHours.of(question.job_hours, question.deadline_hours)
    if (count := len(hours.deadlines) * len(question.restart_hours)) > MOST_JOBS:
        raise BadInput(f"{count:,} pairs of deadline and restart are too many.", remedy=f"Give at most {MOST_JOBS:,}.")
    notes: list[str] = []
    if question.trace is None:
        all_series = _synthetic(question, hours)
    else:
        all_series, notes = _traces(question.trace, question)
        all_series, hours, remarks = fitted(all_series, hours)
        notes += remarks
    import numpy as np

    jobs = _jobs(question, hours, sorted({one.tick_h for one in all_series}))
    ticks = {tick_h: max(job.ticks for job in jobs if job.tick_h == tick_h) for tick_h in {job.tick_h for job in jobs}}
    counts = {
        tick_h: sum(min(question.windows, max(len(one.available) - count + 1, 1)) for one in all_series if one.tick_h == tick_h)
        for tick_h, count in ticks.items()
    }
    check_flags(sum(counts.values()), max(ticks.values()))
    check_size([(job, counts[job.tick_h]) for job in jobs], len(question.policies))
    windows = {
        tick_h: np.concatenate([cut(one, count, question.windows) for one in all_series if one.tick_h == tick_h])
        for tick_h, count in ticks.items()
    }
    return [(job, windows[job.tick_h]) for job in jobs], notes


def _jobs(question: SpotQuestion, hours: SpotHours, ticks_h: list[float]) -> list[SpotJob]:
    return [
        SpotJob(
            work_h=hours.job,
            deadline_h=deadline_h,
            restart_h=restart_h,
            spot_usd=question.spot_price,
            on_demand_usd=question.on_demand_price,
            tick_h=tick_h,
        )
        for tick_h in ticks_h
        for restart_h in dict.fromkeys(question.restart_hours)
        for deadline_h in dict.fromkeys(hours.deadlines)
    ]


def _synthetic(question: SpotQuestion, hours: SpotHours) -> list[Series]:
    """`series=100,losses=1,returns=1,spread=4,exponent=0.7`, each with a default."""
    settings = {"series": 100.0, "losses": 1.0, "returns": 1.0, "spread": 4.0, "exponent": 0.7}
    for part in filter(None, (question.synthetic or "").split(",")):
        key, equals, value = part.partition("=")
        if key.strip() not in settings or not equals:
            raise UnknownName(
                "setting of --synthetic", key.strip(), nearest(key.strip(), settings), remedy="Write series=100,losses=1."
            )
        settings[key.strip()] = parse_count(value)
    market = SyntheticMarket(
        losses_per_hour=settings["losses"],
        returns_per_hour=settings["returns"],
        spread=settings["spread"],
        exponent=settings["exponent"],
    )
    count, tick_h = int(settings["series"]), (question.tick_s or SYNTHETIC_TICK_S) / 3600.0
    if not 1 <= count <= 100_000:
        raise BadInput(f"--synthetic series={count} is not possible.", remedy="Allowed: 1 to 100,000.")
    check_flags(count, hours.longest / tick_h)
    check_size([(job, 1) for job in _jobs(question, hours, [tick_h])], len(question.policies))
    flags = series(market, count=count, ticks=int(hours.longest / tick_h) + 1, tick_h=tick_h, seed=question.seed)
    return [Series(f"series {place + 1}", tick_h, row) for place, row in enumerate(flags)]


def _traces(path: Path, question: SpotQuestion) -> tuple[list[Series], list[str]]:
    """Of a folder: files of something else are passed over as long as there are series."""
    path = path.expanduser()
    table = next((path / name for name in WINDOWS if (path / name).is_file()), None)
    if table is not None:
        return _evaluation(table, question), []
    all_series, problems = [], []
    for file in trace_files(path):
        try:
            all_series.append(_series(file, question))
        except NotASeries as problem:
            problems.append(problem)
    if not all_series:
        raise problems[0]
    return all_series, [f"{plural(len(problems), 'file')} of something else left out." for _ in problems[:1]]


def trace_files(path: Path, endings: tuple[str, ...] = (".json", ".csv", ".txt")) -> list[Path]:
    """The file itself, or those of a folder and all below it that end so, also with .gz."""
    if not path.exists():
        raise BadInput(f"{path} is not there.", remedy="Give a trace, or a folder of traces.")
    if not path.is_dir():
        return [path]
    entries = list(islice(path.rglob("*"), MOST_FILES + 1))
    if len(entries) > MOST_FILES:
        raise BadInput(f"{path} has more than {MOST_FILES:,} files.", remedy="Give a folder that has only traces.")
    files = [file for file in entries if file.is_file() and _is_trace(file.relative_to(path), endings)]
    if not files:
        kinds = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise BadInput(f"{path} has no traces.", remedy=f"Traces are {kinds} files, also with .gz.")
    return sorted(files)


def _is_trace(path: Path, endings: tuple[str, ...]) -> bool:
    return path.name.removesuffix(".gz").endswith(endings) and not any(part.startswith(".") for part in path.parts)


def _series(path: Path, question: SpotQuestion) -> Series:
    return read_series(path.name, content_of(path), tick_s=question.tick_s, available_is=question.available_is)


def content_of(path: Path) -> bytes:
    try:
        content = read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.", remedy="Check the path and its permissions.") from error
    if len(content) > MOST_BYTES:
        raise BadInput(f"{path} is larger than {MOST_BYTES // 10**6} MB.", remedy="Give a part of it.")
    return content


def _evaluation(table: Path, question: SpotQuestion) -> list[Series]:
    """The windows of the public evaluation, out of the series in the folder beside it."""
    windows = evaluated(read_windows(table.name, content_of(table)))
    folder = table.parent.parent / EVALUATED_SERIES
    series_by_name: dict[str, Series] = {}
    for name in dict.fromkeys(window.series for window in windows):
        file = next((one for one in (folder / f"{name}.json", folder / f"{name}.json.gz") if one.is_file()), None)
        if file is None:
            raise BadInput(f"{table} names the series {name}, which is not in {folder}.")
        series_by_name[name] = _series(file, question)
    return [
        Series(
            f"{window.series} from {window.start}",
            series_by_name[window.series].tick_h,
            series_by_name[window.series].available[window.start : window.start + window.ticks],
        )
        for window in windows
    ]
