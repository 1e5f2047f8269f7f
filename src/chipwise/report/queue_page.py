"""Policies of a queue as one page: completion times, the GPUs in use over time, and when some of the jobs ran."""

from __future__ import annotations

from datetime import date

from chipwise.report.chart import COLOURS, INK, Axis, Chart, Dot, Lines, Points, Stroke
from chipwise.report.markup import label, tag, text
from chipwise.report.page import document, drawn, section
from chipwise.report.tables import simple
from chipwise.scale.simulator.queue_compared import QueueComparison, QueueTimeline
from chipwise.text import duration, plural

_MOST_CHARTS = 8  # of jobs over time
_ROW = 7  # pixels of a job


def queue_page(comparison: QueueComparison, today: date) -> str:
    timelines = comparison.timelines[:_MOST_CHARTS]
    charts = [_against(comparison)]
    inside = [
        drawn(charts, "times", "Completion times", "Left is faster on average, down is faster for the slowest 1%."),
        section("policies", "Policies", _table(comparison)),
    ]
    for place, line in enumerate(timelines):
        charts += [_gantt(place, line), _in_use(place, line)]
        shown = f"{plural(len(line.jobs), 'job')}, evenly spaced in the order of arrival: thin lines wait, thick ones run."
        inside += [
            drawn(charts, f"jobs-{place}", f"{line.policy}: jobs", shown),
            drawn(charts, f"gpus-{place}", f"{line.policy}: GPUs in use", f"Of {line.cluster_gpus:,}."),
        ]
    about = f"{plural(comparison.answers[0].jobs, 'job')} on {plural(timelines[0].cluster_gpus, 'GPU')}"
    header = tag(
        "header", tag("h1", text("Queue policies compared")), tag("p", text(about), class_="about"), _answer(comparison)
    )
    return document("Queue policies compared", header, inside, today, "simulate queue")


def _answer(comparison: QueueComparison) -> str:
    best = min(comparison.answers, key=lambda answer: answer.mean_jct_s)
    ratio = f"{best.ratio_to_bound:.3f} times the bound"
    return tag(
        "p", text(f"Soonest done on average: {best.policy}, after {duration(best.mean_jct_s)}, {ratio}."), class_="answer"
    )


def _against(comparison: QueueComparison) -> Chart:
    series = tuple(
        Points(
            "circle",
            (
                Dot(
                    answer.mean_jct_s / 3600.0,
                    answer.p99_jct_s / 3600.0,
                    9,
                    COLOURS[place % len(COLOURS)],
                    tip=label(f"{answer.policy}: {answer.ratio_to_bound:.3f} times the bound"),
                ),
            ),
            label(answer.policy),
        )
        for place, answer in enumerate(comparison.answers)
    )
    return Chart("times", series, x=Axis("mean, hours"), y=Axis("99th percentile, hours"), height=260)


def _gantt(place: int, line: QueueTimeline) -> Chart:
    waits: tuple[list[float], list[float | None]] = ([], [])
    runs: tuple[list[float], list[float | None]] = ([], [])
    for row, job in enumerate(line.jobs):
        for (xs, ys), parts in ((waits, ((job.arrival_h, job.end_h),)), (runs, job.runs_h)):
            for begin_h, end_h in parts:
                xs += [begin_h, end_h, end_h]
                ys += [float(row + 1), float(row + 1), None]
    series = (
        Lines(waits[0], waits[1], Stroke(COLOURS[1], 1), "waits"),
        Lines(runs[0], runs[1], Stroke(COLOURS[0], 4), "runs"),
    )
    height = max(_ROW * len(line.jobs), 100)
    return Chart(f"jobs-{place}", series, x=Axis("hours"), y=Axis("jobs", from_zero=True), height=height)


def _in_use(place: int, line: QueueTimeline) -> Chart:
    series = (Lines(line.hours, line.gpus, Stroke(INK, 1, shape="hv"), "in use", fill=COLOURS[4]),)
    return Chart(f"gpus-{place}", series, x=Axis("hours"), y=Axis("GPUs", from_zero=True), height=160)


def _table(comparison: QueueComparison) -> str:
    rows = [
        [
            text(answer.policy),
            duration(answer.mean_jct_s),
            duration(answer.p99_jct_s),
            duration(answer.makespan_s),
            f"{answer.fairness:.2f}",
            f"{answer.utilisation:.0%}",
            f"{answer.preemptions:,}",
            f"{answer.late:,}",
            f"{answer.ratio_to_bound:.3f}",
        ]
        for answer in comparison.answers
    ]
    headings = ("policy", "mean", "p99", "makespan", "fairness", "used", "preempted", "late", "to the bound")
    return simple(headings, rows)
