"""Collectives: what chips tell each other, over the fast link inside a domain and the network between domains.

With n chips, S bytes per chip, bandwidth B one way per chip and latency a per hop (Thakur, Rabenseifner and Gropp 2005):
  ring all-reduce            2 (n-1)/n S/B + 2 (n-1) a
  tree all-reduce            2 S/B + 2 log2(n) a                          (better for small S and many chips)
  all-gather, reduce-scatter   (n-1)/n S/B + (n-1) a, S = the whole gathered tensor
  all-to-all                   (n-1)/n S/B + (n-1) a, S = what one chip sends in all
A group wider than a domain of d chips goes hierarchically: inside first, then 1/d of the bytes across, then inside
again; each chip has its own share of the network, as in machines with one adapter per accelerator.
Bandwidth is reached by large messages only: B(S) = e B S / (S + s), with s the size that reaches half.
Limits: no congestion between jobs, no oversubscribed spines, no in-network reduction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array

LINK_EFFICIENCY, FABRIC_EFFICIENCY = 0.8, 0.75
LINK_HALF_BYTES, FABRIC_HALF_BYTES = 1e6, 4e6
LINK_LATENCY_S, FABRIC_LATENCY_S = 2e-6, 8e-6


@dataclass(frozen=True, slots=True)
class Network:
    """Columns: what joins the chips of a job."""

    link: Array  # bytes/s one way per chip inside a domain
    domain: Array  # chips per domain
    fabric: Array  # bytes/s one way per chip between domains

    def all_reduce(self, size: Array, chips: Array, stride: Array | float = 1.0) -> Array:
        """`stride` is the distance between members: a data-parallel group steps over its tensor-parallel ones."""
        inside, across = self._groups(chips, stride)
        ring = self._link(2 * (inside - 1) / inside * size, 2 * (inside - 1), size)
        tree = self._link(np.where(inside > 1, 2.0 * size, 0.0), 2 * np.log2(inside), size)
        part = size / inside
        ring_out = self._fabric(2 * (across - 1) / across * part, 2 * (across - 1), part)
        tree_out = self._fabric(np.where(across > 1, 2.0 * part, 0.0), 2 * np.log2(across), part)
        return np.minimum(ring, tree) + np.minimum(ring_out, tree_out)

    def gather(self, size: Array, chips: Array, stride: Array | float = 1.0) -> Array:
        """All-gather or reduce-scatter of a tensor of `size` bytes in all."""
        inside, across = self._groups(chips, stride)
        part = size / inside
        near = self._link((inside - 1) / inside * size, np.minimum(inside - 1, 2 * np.log2(inside) + 1), part)
        far = self._fabric((across - 1) / across * part, np.minimum(across - 1, 2 * np.log2(across) + 1), part / across)
        return near + far

    def all_to_all(self, size: Array, chips: Array, stride: Array | float = 1.0) -> Array:
        """Each chip sends `size` bytes in all; what leaves the domain goes by the network."""
        near, far = self.all_to_all_parts(size, chips, stride)
        return near + far

    def all_to_all_parts(self, size: Array, chips: Array, stride: Array | float = 1.0) -> tuple[Array, Array]:
        """Inside the domain, and beyond it."""
        inside, across = self._groups(chips, stride)
        leaving = np.where(across > 1, 1.0 - inside / np.maximum(chips, 1.0), 0.0)
        near = self._link(np.where(chips > 1, (1.0 - leaving) * size * (chips - 1) / chips, 0.0), np.log2(inside), size / chips)
        return near, self._fabric(leaving * size, np.log2(across), size / chips)

    def send(self, size: Array, stride: Array) -> Array:
        """From one chip to the one `stride` further, as between pipeline stages."""
        near = self._link(size, np.ones_like(size), size)
        far = self._fabric(size, np.ones_like(size), size)
        return np.where(stride < self.domain, near, far)

    def _groups(self, chips: Array, stride: Array | float) -> tuple[Array, Array]:
        inside = np.clip(np.floor(self.domain / stride), 1.0, chips)
        return inside, np.maximum(chips / inside, 1.0)

    def _link(self, moved: Array, hops: Array, message: Array) -> Array:
        speed = LINK_EFFICIENCY * self.link * message / (message + LINK_HALF_BYTES)
        return np.where(moved > 0, moved / np.maximum(speed, 1.0) + hops * LINK_LATENCY_S, 0.0)

    def _fabric(self, moved: Array, hops: Array, message: Array) -> Array:
        speed = FABRIC_EFFICIENCY * self.fabric * message / (message + FABRIC_HALF_BYTES)
        return np.where(moved > 0, moved / np.maximum(speed, 1.0) + hops * FABRIC_LATENCY_S, 0.0)
