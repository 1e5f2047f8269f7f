"""Power and energy from how busy a chip is.

    chip  = limit * (idle + (1 - idle) * busy),   busy = 1 - exp(-4 u_c) * exp(-1.1 u_m)
    total = (chip + host) * PUE

u_c is the share of peak FLOP/s, u_m the share of peak memory bandwidth, idle the share of the board limit that a chip draws
when nothing runs. Power rises steeply at first and flattens towards the limit: large models train at 40 to 50% of peak near
90% of the board's power, and reading memory alone takes about two thirds. Rule of thumb from public knowledge, not fitted:
expect 15%.
This is the only model of power: predictions and all kinds of plans take it. Plans count chip and host, and each region's own
PUE multiplies them in its carbon.
Left out: lower clocks at the limit (they show as a lower u_c), temperature, power supplies (within the host's share), and the
time in which a service waits for requests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.errors import BadInput, Problem
from chipwise.perf.arrays import Array, Coded, has_nonzero

COMPUTE_RISE, MEMORY_RISE = 4.0, 1.1
# Share of the board limit drawn at rest: H100 70 of 700 W, A100 50 of 400 W, T4 10 of 70 W; other kinds are rules of thumb.
IDLE = {"gpu": 0.12, "tpu": 0.25, "neuron": 0.25, "gaudi": 0.2, "npu": 0.2, "cpu": 0.35, "edge": 0.3, "fpga": 0.4}
OTHER_IDLE = 0.25
# What processors, memory, network and fans draw per chip, as a share of its limit: a DGX H100 is rated 10.2 kW for eight chips
# of 700 W (0.82 at most), about 0.5 in use. An edge module's limit is the whole device.
HOST = {"gpu": 0.5, "tpu": 0.4, "neuron": 0.5, "gaudi": 0.5, "npu": 0.5, "cpu": 0.4, "edge": 0.0, "fpga": 0.8}
OTHER_HOST = 0.4
HOST_AT_REST = 0.6  # of that, when the chip does nothing
PUE = 1.2  # large cloud sites report 1.1 to 1.2; the average of all sites is near 1.55
JOULE_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class Utilisation:
    """Shares of peak FLOP/s and of peak memory bandwidth that work takes of a chip while it runs, from 0 to 1."""

    compute: float
    memory: float


@dataclass(frozen=True, slots=True)
class Power:
    """Watts per chip, by line."""

    chip: Array
    host: Array
    facility: Array  # cooling and distribution: (PUE - 1) of both

    @property
    def machine(self) -> Array:
        """Chip and host, without cooling: what the meter of a machine reads for each of its chips."""
        return self.chip + self.host

    @property
    def total(self) -> Array:
        return self.machine + self.facility


def power(kind: Coded, limit_w: Array, compute: Array, memory: Array, pue: float = PUE) -> Power:
    """`compute` and `memory` are shares of peak from 0 to 1; more than 1 counts as 1."""
    for name, values in (("compute", compute), ("memory", memory), ("limit_w", limit_w)):
        if has_nonzero(~(values >= 0)):  # NaN is not
            raise BadInput(str(Problem(name, "is negative or no number", None, "0 or more")))
    if not pue >= 1:
        raise BadInput(str(Problem("pue", f"{pue:g} is not possible", None, "1 or more")))
    busy = -np.expm1(-COMPUTE_RISE * np.minimum(compute, 1.0) - MEMORY_RISE * np.minimum(memory, 1.0))
    idle = kind.look_up(lambda name: IDLE.get(name, OTHER_IDLE))
    chip = limit_w * (idle + (1.0 - idle) * busy)
    share = kind.look_up(lambda name: HOST.get(name, OTHER_HOST))
    host = limit_w * share * (HOST_AT_REST + (1.0 - HOST_AT_REST) * busy)
    return Power(chip, host, (pue - 1.0) * (chip + host))


def energy_j(drawn: Power, chips: Array, seconds: Array) -> Array:
    """Joules of `chips` chips over `seconds`, cooling included."""
    return drawn.total * chips * seconds


def energy_per_token_j(drawn: Power, chips: Array, tokens_per_s: Array) -> Array:
    """Joules for each token that the chips bring forth together."""
    return drawn.total * chips / tokens_per_s


def kwh(joules: Array) -> Array:
    return joules / JOULE_PER_KWH
