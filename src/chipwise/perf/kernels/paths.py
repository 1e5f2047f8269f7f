"""How messages of a stream reach what works on them, and how long that takes in and out.

- port: an FPGA card with a network port of its own. Nothing but its MAC and the wire is in the path: 0.8 us.
- card behind a host: rented FPGAs (EC2 F1 and F2, Azure NP) have no port. Packets pass the virtual network card and the
  kernel of the host, then PCIe to the card, and back: 30 us and 10 us.
- host: software alone, 30 us.
All of these are rules of thumb. How long a host takes depends on its driver, its kernel and its load, hence the wide interval
(12 to 74 us, four times of five): kernel bypass is faster, a busy host slower. A path through a host has a tail, since
interrupts and schedulers come in between: its 99th percentile is taken as three times the median, on a logarithmic normal
law. A port has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist

from chipwise.perf.arrays import Array, column

PORT_S, PORT_SPREAD = 0.8e-6, 0.4
HOST_S, HOST_SPREAD = 30e-6, 0.7
PCIE_S, PCIE_SPREAD = 10e-6, 0.7
PCIE_BYTES_PER_S = 12e9  # third generation, 16 lanes
LINE_SHARE = 0.8  # of a network card's rate that a stream may fill: headers, bursts; rule of thumb
TAIL = 3.0  # the 99th percentile over the median

PORT: Mapping[str, tuple[Array, float]] = {"wire": (column(PORT_S), PORT_SPREAD)}
HOST: Mapping[str, tuple[Array, float]] = {"host": (column(HOST_S), HOST_SPREAD)}
CARD: Mapping[str, tuple[Array, float]] = {**HOST, "pcie": (column(PCIE_S), PCIE_SPREAD)}

_WIDTH = math.log(TAIL) / NormalDist().inv_cdf(0.99)


def tail(percentile: float) -> float:
    """What a percentile of a path through a host is over its median."""
    share = min(max(percentile / 100.0, 0.5), 1.0 - 1e-9)
    return math.exp(_WIDTH * NormalDist().inv_cdf(share))


def at_percentile(median_s: float, percentile: float, hosted: bool) -> float:
    """Seconds at a percentile; `hosted`: the path leads through a host."""
    return median_s * tail(percentile) if hosted else median_s
