"""Capacity that a cloud holds for the user already: machines start in it and nowhere else. It changes no plan."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator

from chipwise.workload.part import EnumChoice, Section, fault, show_value


class ReservationKind(StrEnum):
    """How it is held: for as long as it is paid for by the hour, or for a stated time that was paid at once."""

    ON_DEMAND = "on-demand"
    CAPACITY_BLOCK = "capacity-block"


def _id(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"cr-[0-9a-f]{8,17}", value):
        raise fault(f"{show_value(value)} is not a capacity reservation of AWS", "its id, such as cr-0123456789abcdef0")
    return value


class Reservation(Section):
    """A capacity reservation of AWS, by its id; Google Cloud and Azure have others, which are not written down."""

    shorthand = "id"

    id: Annotated[str, BeforeValidator(_id)]
    """Of the reservation, such as cr-0123456789abcdef0."""
    kind: Annotated[
        ReservationKind,
        EnumChoice(ReservationKind, "a kind of reservation", (("odcr", "on-demand"), ("block", "capacity-block"))),
    ] = ReservationKind.ON_DEMAND
    """on-demand (the default), or capacity-block."""
