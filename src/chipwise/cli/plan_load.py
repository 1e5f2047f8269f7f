"""The part of `chipwise plan` that tells of load over time, and of regions where traffic is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from chipwise.text import amount, round_trip, usd_cell

if TYPE_CHECKING:
    from chipwise.planner.values.load import LoadPlan
    from chipwise.planner.values.placement import Placement
    from chipwise.planner.values.plan import Plan


def show_load(plan: Plan) -> None:
    if plan.load is not None:
        _show_layers(plan.load)
    if plan.placement is not None:
        _show_regions(plan.placement)


_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def hour_words(load: LoadPlan) -> str:
    """Of every day that is unlike the one before: how many from which hour on."""
    days = [tuple(machines for _, machines in load.by_hour[24 * day : 24 * day + 24]) for day in range(len(_DAYS))]
    if len(set(days)) == 1:
        return f"every day {_day_words(days[0])}"
    first = [day for day in range(len(days)) if day == 0 or days[day] != days[day - 1]]
    spans = [
        _DAYS[start] if end == start + 1 else f"{_DAYS[start]} to {_DAYS[end - 1]}"
        for start, end in zip(first, [*first[1:], 7], strict=True)
    ]
    return "; ".join(f"{span} {_day_words(days[start])}" for span, start in zip(spans, first, strict=True))


def _day_words(machines: Sequence[int]) -> str:
    changes = [hour for hour in range(len(machines)) if hour == 0 or machines[hour] != machines[hour - 1]]
    if len(changes) == 1:
        return f"{machines[0]}"
    return ", ".join(f"{machines[hour]} from {hour}:00" for hour in changes)


def _counted(load: LoadPlan) -> str:
    if load.machines_peak > load.machines_mean:
        at_the_mean = f"{load.machines_mean} machine{'s' if load.machines_mean > 1 else ''} at the mean"
        return f"{at_the_mean}, {load.machines_peak} at the peak, of"
    return f"{load.machines_peak} machine{'s' if load.machines_peak > 1 else ''} of"


def _show_layers(load: LoadPlan) -> None:
    from chipwise.cli import text

    hours = load.machine_hours
    unit = "" if load.unit == "requests/s" else " person" if (load.unit, load.per_machine) == ("people", 1) else f" {load.unit}"
    text.show_lines(
        "",
        f"Over a week ({load.pattern}): mean {amount(load.mean)}, peak {amount(load.peak)} {load.unit} "
        f"in {load.hours_per_week:.3g} h; "
        f"{_counted(load)} {amount(load.per_machine)}{unit or ' requests/s'} each.",
        f"Machine-hours a month: {hours.static:,.0f} with machines for the peak at all times, "
        f"{hours.scheduled:,.0f} with as many while the schedule is on, "
        f"{hours.autoscaled:,.0f} under an autoscaler.",
    )
    if load.by_hour:
        text.show_lines(f"Machines by the hour: {hour_words(load)}.")
    if load.changed:
        text.show_lines(f"Best over time is {load.title}: {load.changed}.")
    text.show_table(
        [
            text.Column("layer", flexible=True),
            text.Column("machines", right=True),
            text.Column("of paid hours used", right=True),
            text.Column("USD/month", right=True),
        ],
        [
            *([one.name, f"{one.machines}", f"{one.utilisation:.0%}", usd_cell(one.usd)] for one in load.layers),
            *([["transfer and storage", "", "", usd_cell(load.other_usd)]] if load.other_usd > 0 else []),
            *([["together", "", "", usd_cell(load.usd)]] if len(load.layers) > 1 or load.other_usd > 0 else []),
            *(
                [f"only {option.name}", "", "", usd_cell(option.usd) if option.usd is not None else option.why]
                for option in load.alone
                if len(load.alone) > 1
            ),
        ],
    )
    text.show_lines(load.recommendation, *(f"Assumed: {one}." for one in load.assumed))


def _show_regions(placement: Placement) -> None:
    from chipwise.cli import text
    from chipwise.views.catalog import readable

    limit = f"{round_trip(placement.limit_s)} of round trip ({placement.basis})"
    if not placement.stands:
        text.show_lines("", f"Regions for the traffic, within {limit}: none. {placement.missing}.")
        return
    alone = f"; one region alone, without that, {usd_cell(placement.single_usd)}" if placement.single_usd is not None else ""
    text.show_lines(
        "", f"Regions for the traffic, within {limit}, and enough when one is lost: {usd_cell(placement.usd)} a month{alone}."
    )
    text.show_table(
        [
            text.Column("region", flexible=True),
            text.Column("machines", flexible=True),
            text.Column("traffic", right=True),
            text.Column("farthest", right=True),
            text.Column("USD/month", right=True),
            text.Column("if lost", flexible=True),
        ],
        [
            [
                f"{site.provider} {readable(site.region)}",
                f"{site.machines}x {site.machine}",
                f"{site.share:.0%}",
                round_trip(site.farthest_s),
                usd_cell(site.usd),
                f"{round_trip(lost.farthest_s)}, {lost.carried:.0%}",
            ]
            for site, lost in zip(placement.stands, placement.losses, strict=True)
        ],
    )
    text.show_lines(
        "If lost: the farthest round trip without this region, and the load that the others then carry, in % of the peak.",
        *(f"Assumed: {one}." for one in placement.assumed),
    )
