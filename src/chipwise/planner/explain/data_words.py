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
        return f"{amounts} Included: moving that from {data.place} and back, {cost}{time}.{assumed}"
    if volume.monthly:
        written = volume.written_bytes
        mean = f", {price(data.usd[0] / written * GB)} per GB" if written and data.usd[0] else ""
        return f"{amounts} Sending that out of the cloud would add {cost} a month{mean}: set data.place.{assumed}"
    way = "Sending that to" if volume.read is None else "Moving that from"
    return f"{amounts} {way} another region or cloud would add {cost}{time}: set data.place.{assumed}"


def checkpoint_words(volume: Volume) -> str:
    return "" if volume.checkpoint is None else f"Each checkpoint is {_size(volume.checkpoint)}{_formula(volume.checkpoint)}."


def _amounts(volume: Volume) -> str:
    """The first with its formula, which is the one that people know."""
    monthly = " a month" if volume.monthly else ""
    if volume.read is None:
        written = volume.written
        return "moves nothing" if written is None else f"writes {_size(written)}{monthly}{_formula(written)}"
    also = f" and writes {_size(volume.written)}{monthly}" if volume.written is not None else ""
    return f"reads {_size(volume.read)}{monthly}{_formula(volume.read)}{also}"


def _size(amount: Amount) -> str:
    return f"about {decimal_size(amount.bytes)}" if amount.formula else decimal_size(amount.bytes)


def _formula(amount: Amount) -> str:
    return f" ({amount.formula})" if amount.formula else ""
