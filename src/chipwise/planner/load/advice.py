"""What to do about a load over time, in a sentence or two that follow its pattern, with the numbers that decide."""

from __future__ import annotations

from chipwise.money.layering import Layering, Option
from chipwise.planner.load.curve import Carried, LoadCurve
from chipwise.planner.values.load import MachineHours
from chipwise.text import amount, usd
from chipwise.units import HOUR, MONTH
from chipwise.workload.schedule import HOURS_PER_WEEK

MONTH_HOURS = MONTH / HOUR


def advise(pattern: str, curve: LoadCurve, carried: Carried, hours: MachineHours) -> str:
    text = {
        "continuous": _continuous,
        "business-hours": _stopping,
        "batch": _stopping,
        "bursty": _bursty,
        "development": _stopping,
    }[pattern](pattern, curve, carried, hours)
    if carried.base is not None:
        above = "the cloud takes what is above them" if carried.load.peak else "they carry all of the load"
        text += f" Own machines are the base ({carried.base.machines}, {carried.base.utilisation:.0%} used); {above}."
    return text


def _continuous(_: str, curve: LoadCurve, carried: Carried, hours: MachineHours) -> str:
    if carried.base is not None and carried.load.peak == 0:
        return "The load hardly changes: keep your own machines on around the clock, and rent none."
    layers = _committed_layers(carried)
    if not layers:
        reason = _promise(carried.kind.options, curve)
        machines = _machine_count(carried)
        return f"The load hardly changes: keep {machines} on around the clock, by the hour{f'; {reason}' if reason else ''}."
    return f"The load hardly changes: keep {layers} around the clock{_against_hourly(carried.layering)}."


def _stopping(pattern: str, curve: LoadCurve, carried: Carried, hours: MachineHours) -> str:
    action = {
        "business-hours": f"Stop the machines outside the {curve.on_hours:.0f} hours a week that are asked for",
        "batch": f"Start machines for each run and stop them after it: {curve.on_hours:.3g} hours a week",
        "development": "Stop every session that is idle, and all of them outside the schedule",
    }[pattern]
    if curve.off_hours <= 1e-9 and hours.autoscaled >= hours.static * 0.999:
        action = {
            "batch": "Start machines for each run; runs_for is not given, so that they count as always on",
            "development": "Machines are up all the time: stop idle sessions by idle_after, and give a schedule",
        }.get(pattern, action)
    saved = f" ({hours.autoscaled:,.0f} instead of {hours.static:,.0f} machine-hours a month)"
    layers = _committed_layers(carried)
    if layers:
        return f"{action}{saved}; {layers} is still cheaper than paying by the hour{_against_hourly(carried.layering)}."
    reason = _promise(carried.kind.options, curve)
    return f"{action}{saved}, and pay by the hour{f': {reason}' if reason else ''}."


def _bursty(_: str, curve: LoadCurve, carried: Carried, hours: MachineHours) -> str:
    if not curve.followed:
        return (
            f"Bursts come faster than machines start: keep {_machine_count(carried)} for the peak of {amount(curve.peak)} "
            f"{curve.unit}, or let requests wait."
        )
    layers = _committed_layers(carried)
    low, high = int(carried.load.machines[0]), carried.load.peak
    if hours.autoscaled >= hours.scheduled * 0.999 and carried.base is None:
        machines = f"{_machine_count(carried)} for the peak {'is' if high == 1 else 'are'} also the fewest"
        paid = f", by {layers.split(' by ', 1)[1]}" if layers else ", by the hour"
        return f"The peak is {curve.peak / max(curve.mean, 1e-12):.1f} times the mean, but {machines}: nothing to scale{paid}."
    base = f"keep {layers} as the base" if layers else f"keep at least {low} on"
    saved = 1.0 - hours.autoscaled / max(hours.scheduled, 1e-9)
    return (
        f"The peak is {curve.peak / max(curve.mean, 1e-12):.1f} times the mean: {base} and let an autoscaler go up to {high}; "
        f"{saved:.0%} fewer machine-hours than machines for the peak."
    )


def _committed_layers(carried: Carried) -> str:
    """The committed layers: "3 by reserved-1y"."""
    committed = {one.name for one in carried.kind.options if one.committed}
    texts = [f"{one.machines} by {one.name}" for one in carried.layering.layers if one.name in committed]
    return " and ".join(texts)


def _machine_count(carried: Carried) -> str:
    peak = carried.load.peak
    return f"{peak} machine{'s' if peak != 1 else ''}"


def _against_hourly(layering: Layering) -> str:
    on_demand = next((one for one in layering.alone if one.name == "on-demand" and one.usd is not None), None)
    if on_demand is None or on_demand.usd is None or layering.usd <= 0:
        return ""
    return f" (all on-demand: {usd(on_demand.usd)} a month instead of {usd(layering.usd)})"


def _promise(options: tuple[Option, ...], curve: LoadCurve) -> str:
    """Why no commitment is in the layers."""
    hourly = min((one.usd_per_hour for one in options if not one.committed), default=0.0)
    commitment = min((one for one in options if one.committed), key=lambda one: one.usd_per_hour, default=None)
    if commitment is None or hourly <= 0:
        return "the catalog has no commitment for this machine here"
    share, used = commitment.usd_per_hour / hourly, curve.on_hours / HOURS_PER_WEEK
    if share >= 1:
        return f"{commitment.name} costs more than an hour by the hour"
    return f"{commitment.name} pays from {share:.0%} of the hours on, and this is on for {used:.0%} of them at the most"
