"""What a plan says of its data: how much, how that is known, and what moving it takes."""

from __future__ import annotations

from chipwise.planner.values.plan import DataMoved, Plan
from chipwise.text import decimal_size, duration, price, usd, usd_range
from chipwise.units import GB, HOUR
from chipwise.workload.volume import Amount, Volume


def dominant(plan: Plan) -> bool:
    """Whether moving the data from anywhere would cost more than the answer itself, which does not count it."""
    data, winner = plan.data, plan.winner
    if data is None or winner is None or data.counted or data.usd is None:
        return False
    return data.usd[0] > winner.usd


def data_words(data: DataMoved) -> str:
    """How much, and what moving it takes, in two lines."""
    volume = data.volume
    amounts = f"It {_amounts(volume)}."
    if data.usd is None:
        return f"{amounts} Where that lies is not stated: set data.place."
    cost = usd(data.usd[0]) if data.usd[0] == data.usd[1] else usd_range(*data.usd)
    time = f" and {duration(data.seconds)}" if data.seconds >= HOUR else ""
    assumed = f" Assumed: {'; '.join(data.assumed)}." if data.assumed and data.usd[1] else ""
    if data.counted:
        return f"{amounts} Moving that from {data.place} and back is counted in: {cost}{time}.{assumed}"
    if volume.monthly:
        written = volume.written_bytes
        mean = f", {price(data.usd[0] / written * GB)} per GB" if written and data.usd[0] else ""
        return f"{amounts} Sending that out of the cloud would add {cost} a month{mean}: set data.place.{assumed}"
    way = "Sending that to" if volume.read is None else "Moving that from"
    return f"{amounts} {way} another region or cloud would add {cost}{time}: set data.place.{assumed}"


def checkpoint_words(volume: Volume) -> str:
    return "" if volume.checkpoint is None else f"Each checkpoint is {_formula(volume.checkpoint)}, derived."


def _amounts(volume: Volume) -> str:
    """The first with its formula, which is the one that people know."""
    derived = any(amount is not None and amount.formula for amount in (volume.read, volume.written))
    known = f"{' a month' if volume.monthly else ''}{', derived' if derived else ''}"
    if volume.read is None:
        return f"writes {_formula(volume.written)}{known}" if volume.written is not None else "moves nothing"
    written = f" and writes {decimal_size(volume.written.bytes)}" if volume.written is not None else ""
    return f"reads {_formula(volume.read)}{written}{known}"


def _formula(amount: Amount) -> str:
    size = decimal_size(amount.bytes)
    return f"{amount.formula} = {size}" if amount.formula else size
