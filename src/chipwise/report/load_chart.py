"""The duration curve of a service's load with the layers that carry it, as a chart and as a table."""

from __future__ import annotations

from chipwise.catalog.region import readable
from chipwise.planner.values.load import LoadPlan
from chipwise.planner.values.plan import Plan
from chipwise.report.charts import Chart
from chipwise.report.markup import label, tag, text
from chipwise.report.tables import simple
from chipwise.report.words import short
from chipwise.text import amount, usd

_COLOURS = ("#0072b2", "#009e73", "#e69f00", "#56b4e9", "#cc79a7", "#d55e00", "#8c564b", "#5f6b6d")
DAY_HOURS = 24
_GRID, _INK, _QUIET = "#d8dee4", "#1f2328", "#57606a"


def duration(plan: Plan) -> Chart | None:
    """Machines against the hours of a month in which at least so many are up; layers from the base up. A load that never
    changes on one layer is a rectangle, and gets no chart."""
    load = plan.load
    if load is None or (len(load.steps) < 2 and len(load.layers) < 2):
        return None
    hours, needed = _falling(load)
    traces, below = [], 0.0
    for index, layer in enumerate(load.layers):
        # The base carries first: each layer takes what is above the layers before it, up to its own machines.
        top = [min(max(machines - below, 0.0), float(layer.machines)) for machines in needed]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "stackgroup": "layers",
                "name": label(short(layer.name, 40)),
                "x": hours,
                "y": top,
                "line": {"width": 0.5, "color": _INK, "shape": "hv"},
                "fillcolor": _COLOURS[index % len(_COLOURS)],
                "hovertemplate": (
                    f"{label(layer.name)}: %{{y}} of {layer.machines}, {label(usd(layer.usd))} a month<extra></extra>"
                ),
            }
        )
        below += layer.machines
    layout = {
        "height": 340,
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "hovermode": "x unified",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": _INK},
        "xaxis": {
            "title": {"text": "hours of a month, the busiest first"},
            "gridcolor": _GRID,
            "linecolor": _QUIET,
            "rangemode": "tozero",
        },
        "yaxis": {
            "title": {"text": "machines"},
            "gridcolor": _GRID,
            "linecolor": _QUIET,
            "rangemode": "tozero",
            **({"dtick": 1} if max(needed) <= 8 else {}),
        },
        "margin": {"l": 56, "r": 16, "t": 12, "b": 96},
        "legend": {"orientation": "h", "y": -0.28, "yanchor": "top", "x": 0},
    }
    return Chart("load", tuple(traces), layout)


def day_chart(plan: Plan) -> Chart | None:
    """The load of every hour of a working day, of the weekend where it differs, and the machines that are up for it; nothing
    where nobody says when the load comes, or it never changes."""
    load = plan.load
    if load is None or len(load.by_hour) != 7 * DAY_HOURS or len({rate for rate, _ in load.by_hour}) < 2:
        return None
    working, weekend = _mean_day(load, range(5)), _mean_day(load, range(5, 7))
    unit, hours = label(load.unit), list(range(DAY_HOURS))
    bars = {
        "type": "bar",
        "name": f"{unit}, Monday to Friday" if working != weekend else unit,
        "x": hours,
        "y": working,
        "marker": {"color": _COLOURS[3], "line": {"color": _INK, "width": 0.5}},
        "hovertemplate": f"%{{x}}:00: %{{y:.3~g}} {unit}<extra></extra>",
    }
    traces = [bars]
    if working != weekend:
        line = {"color": _COLOURS[0], "width": 2, "dash": "dot"}
        name = f"{unit}, Saturday and Sunday"
        traces.append({"type": "scatter", "mode": "lines", "name": name, "x": hours, "y": weekend, "line": line})
    machines = [max(load.by_hour[DAY_HOURS * day + hour][1] for day in range(5)) for hour in hours]
    traces.append(
        {
            "type": "scatter",
            "mode": "lines",
            "name": "machines that are up",
            "x": hours,
            "y": machines,
            "yaxis": "y2",
            "line": {"color": _COLOURS[5], "width": 2.5, "shape": "hvh"},
        }
    )
    axis = {"rangemode": "tozero", "fixedrange": True}
    layout = {
        "height": 340,
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "bargap": 0.1,
        "hovermode": "x unified",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": _INK},
        "xaxis": {"title": {"text": "hour of the day"}, "dtick": 3, "fixedrange": True},
        "yaxis": {**axis, "title": {"text": unit}, "gridcolor": _GRID},
        "yaxis2": {
            **axis,
            "title": {"text": "machines"},
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "tickmode": "auto",
            **({"dtick": 1, "tickmode": "linear"} if max(machines) <= 8 else {}),
        },
        "margin": {"l": 56, "r": 56, "t": 12, "b": 112},
        "legend": {"orientation": "h", "y": -0.3, "yanchor": "top", "x": 0},
    }
    return Chart("day", tuple(traces), layout)


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
    if len(load.layers) > 1:
        rows.append([text("together"), "", "", text(usd(load.usd))])
    if len(load.alone) > 1:
        rows += [
            [text(f"only {one.name}"), "", "", text(usd(one.usd) if one.usd is not None else one.why)] for one in load.alone
        ]
    changed = tag("p", text(f"Best over time is {load.title}: {load.changed}.")) if load.changed else ""
    notes = tag("ul", *(tag("li", text(one)) for one in load.assumed)) if load.assumed else ""
    return "".join(
        [changed, simple(("layer", "machines", "used", "USD a month"), rows), tag("p", text(load.recommendation)), notes]
    )


def load_told(plan: Plan) -> str:
    load = plan.load
    if load is None:
        return ""
    hours = load.machine_hours
    return (
        f"A load of the pattern {load.pattern}: mean {amount(load.mean)}, peak {amount(load.peak)} {load.unit}, "
        f"{load.hours_per_week:.3g} hours a week. Machine-hours a month: {hours.static:,.0f} always for the peak, "
        f"{hours.scheduled:,.0f} started and stopped as the load is expected, {hours.autoscaled:,.0f} under an autoscaler."
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
            f"{site.farthest_s * 1e3:.0f} ms",
            text(usd(site.usd)),
            f"{lost.farthest_s * 1e3:.0f} ms, {lost.carried:.0%} of the peak",
        ]
        for site, lost in zip(placement.stands, placement.losses, strict=True)
    ]
    heads = ("region", "machines", "traffic", "farthest", "USD a month", "if it is lost")
    return simple(heads, rows) + tag("ul", *(tag("li", text(one)) for one in placement.assumed))
