"""The duration curve of a service's load with the layers that carry it, as a chart and as a table."""

from __future__ import annotations

from chipwise.catalog.region import readable
from chipwise.planner.values.load import LoadPlan
from chipwise.planner.values.plan import Plan
from chipwise.report.chart import INK, Axis, Chart, Columns, Lines, Stroke
from chipwise.report.markup import label, tag, text
from chipwise.report.tables import simple
from chipwise.report.words import short
from chipwise.text import amount, round_trip, usd

_COLOURS = ("#0072b2", "#009e73", "#e69f00", "#56b4e9", "#cc79a7", "#d55e00", "#8c564b", "#5f6b6d")
DAY_HOURS = 24
_SINGLE_STEPS = 8  # machines that are counted one by one on an axis


def duration(plan: Plan) -> Chart | None:
    """Machines against the hours of a month in which at least so many are up; layers from the base up. A load that never
    changes on one layer is a rectangle, and gets no chart."""
    load = plan.load
    if load is None or (len(load.steps) < 2 and len(load.layers) < 2):
        return None
    hours, needed = _falling(load)
    areas, below = [], 0.0
    for index, layer in enumerate(load.layers):
        # The base carries first: each layer takes what is above the layers before it, up to its own machines.
        top = [min(max(machines - below, 0.0), float(layer.machines)) for machines in needed]
        name, colour = label(short(layer.name, 40)), _COLOURS[index % len(_COLOURS)]
        areas.append(Lines(hours, top, Stroke(INK, 0.5, shape="hv"), name, fill=colour))
        below += layer.machines
    return Chart(
        "load",
        tuple(areas),
        x=Axis("hours of a month, the busiest first", from_zero=True),
        y=_machines_axis(max(needed)),
        height=232,
    )


def _machines_axis(most: float) -> Axis:
    return Axis("machines", from_zero=True, step=1 if most <= _SINGLE_STEPS else None)


def day_chart(plan: Plan) -> Chart | None:
    """The load of every hour of a working day, of the weekend where it differs, and the machines that are up for it; nothing
    where nobody says when the load comes, or it never changes."""
    load = plan.load
    if load is None or len(load.by_hour) != 7 * DAY_HOURS or len({rate for rate, _ in load.by_hour}) < 2:
        return None
    working, weekend = _mean_day(load, range(5)), _mean_day(load, range(5, 7))
    unit, hours = label(load.unit), list(range(DAY_HOURS))
    load_of_day = f"{unit}, Monday to Friday" if working != weekend else unit
    series: list[Columns | Lines] = [Columns(hours, working, _COLOURS[3], load_of_day)]
    if working != weekend:
        series.append(Lines(hours, weekend, Stroke(_COLOURS[0], 2, "dot"), f"{unit}, Saturday and Sunday"))
    machines = [max(load.by_hour[DAY_HOURS * day + hour][1] for day in range(5)) for hour in hours]
    series.append(Lines(hours, machines, Stroke(_COLOURS[5], 2.5, shape="hvh"), "machines that are up", second=True))
    return Chart(
        "day",
        tuple(series),
        x=Axis("hour of the day", step=3),
        y=Axis(unit, from_zero=True),
        height=216,
        second=_machines_axis(max(machines)),
    )


def _mean_day(load: LoadPlan, days: range) -> list[float]:
    means = [sum(load.by_hour[DAY_HOURS * day + hour][0] for day in days) / len(days) for hour in range(DAY_HOURS)]
    return [round(mean, 9) for mean in means]


def _falling(load: LoadPlan) -> tuple[list[float], list[float]]:
    """Hours at which the number of machines falls, the most first; owned machines are under the steps of rented ones."""
    owned = sum(one.machines for one in load.layers if one.owned)
    hours, needed, elapsed = [], [], 0.0
    for machines, lasts in reversed(load.steps):
        hours.append(elapsed)
        needed.append(float(machines + owned))
        elapsed += lasts
    return [*hours, elapsed], [*needed, needed[-1]]


def load_table(plan: Plan) -> str:
    """Layers, what each option alone would cost, and the advice."""
    load = plan.load
    if load is None:
        return ""
    rows = [[text(one.name), f"{one.machines:,}", f"{one.utilisation:.0%}", text(usd(one.usd))] for one in load.layers]
    if load.other_usd > 0:
        rows.append([text("transfer and storage"), "", "", text(usd(load.other_usd))])
    if len(load.layers) > 1 or load.other_usd > 0:
        rows.append([text("together"), "", "", text(usd(load.usd))])
    if len(load.alone) > 1:
        rows += [
            [text(f"only {one.name}"), "", "", text(usd(one.usd) if one.usd is not None else one.why)] for one in load.alone
        ]
    changed = tag("p", text(f"Best over time is {load.title}: {load.changed}.")) if load.changed else ""
    notes = tag("ul", *(tag("li", text(one)) for one in load.assumed)) if load.assumed else ""
    return "".join(
        [
            changed,
            simple(("layer", "machines", "of paid hours used", "USD a month"), rows),
            tag("p", text(load.recommendation)),
            notes,
        ]
    )


def load_told(plan: Plan) -> str:
    load = plan.load
    if load is None:
        return ""
    hours = load.machine_hours
    return (
        f"A load of the pattern {load.pattern}: mean {amount(load.mean)}, peak {amount(load.peak)} {load.unit}, "
        f"{load.hours_per_week:.3g} hours a week. Machine-hours a month: {hours.static:,.0f} always for the peak, "
        f"{hours.scheduled:,.0f} with as many while the schedule is on, {hours.autoscaled:,.0f} under an autoscaler."
    )


def regions_table(plan: Plan) -> str:
    """Where to stand; what is missing where nothing does."""
    placement = plan.placement
    if placement is None:
        return ""
    if not placement.stands:
        return tag("p", text(f"None: {placement.missing}."))
    rows = [
        [
            text(f"{site.provider} {readable(site.region)}"),
            text(f"{site.machines} x {site.machine}"),
            f"{site.share:.0%}",
            round_trip(site.farthest_s),
            text(usd(site.usd)),
            f"{round_trip(lost.farthest_s)}, {lost.carried:.0%} of the peak",
        ]
        for site, lost in zip(placement.stands, placement.losses, strict=True)
    ]
    heads = ("region", "machines", "traffic", "farthest", "USD a month", "if it is lost")
    return simple(heads, rows) + tag("ul", *(tag("li", text(one)) for one in placement.assumed))
