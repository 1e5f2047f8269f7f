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
from functools import cached_property

import numpy as np

from chipwise.perf.arrays import Array

LINK_EFFICIENCY, FABRIC_EFFICIENCY = 0.8, 0.75
LINK_HALF_BYTES, FABRIC_HALF_BYTES = 1e6, 4e6
LINK_LATENCY_S, FABRIC_LATENCY_S = 2e-6, 8e-6


@dataclass(frozen=True)
class Network:
    """Columns: what joins the chips of a job."""

    link: Array  # bytes/s one way per chip inside a domain
    domain: Array  # chips per domain
    fabric: Array  # bytes/s one way per chip between domains

    def group(self, chips: Array, stride: Array | float = 1.0) -> Group:
        """`stride` is the distance between members: a data-parallel group steps over its tensor-parallel ones."""
        inside = np.maximum(np.minimum(np.floor(self.domain / stride), chips), 1.0)
        domains = np.maximum(chips / inside, 1.0)
        return Group(
            network=self,
            chips=chips,
            inside=inside,
            domains=domains,
            others_inside=inside - 1.0,
            other_domains=domains - 1.0,
            depth_inside=np.log2(inside),
            depth_across=np.log2(domains),
        )

    def all_reduce(self, size: Array, chips: Array, stride: Array | float = 1.0) -> Array:
        return np.where(size > 0, self.group(chips, stride).all_reduce(size), 0.0)

    def gather(self, size: Array, chips: Array, stride: Array | float = 1.0) -> Array:
        """All-gather or reduce-scatter of a tensor of `size` bytes in all."""
        return np.where(size > 0, self.group(chips, stride).gather(size), 0.0)

    def all_to_all(self, size: Array, chips: Array, stride: Array | float = 1.0) -> Array:
        """Each chip sends `size` bytes in all; what leaves the domain goes by the network."""
        near, far = self.group(chips, stride).all_to_all(size)
        return near + far

    def send(self, size: Array, stride: Array) -> Array:
        """From one chip to the one `stride` further, as between pipeline stages."""
        near = (size + LINK_HALF_BYTES) * self.per_link_byte + LINK_LATENCY_S
        far = (size + FABRIC_HALF_BYTES) * self.per_fabric_byte + FABRIC_LATENCY_S
        return np.where(size > 0, np.where(stride < self.domain, near, far), 0.0)

    @cached_property
    def per_link_byte(self) -> Array:
        """Seconds of a byte in a large message."""
        return 1.0 / (LINK_EFFICIENCY * self.link)

    @cached_property
    def per_fabric_byte(self) -> Array:
        return 1.0 / (FABRIC_EFFICIENCY * self.fabric)


@dataclass(frozen=True)
class Group:
    """Chips that talk with each other. Sizes are above 0; a group of one takes no time."""

    network: Network
    chips: Array
    inside: Array  # members per domain
    domains: Array  # domains
    others_inside: Array
    other_domains: Array
    depth_inside: Array  # of a tree
    depth_across: Array

    def all_reduce(self, size: Array) -> Array:
        """The better of ring and tree, inside and between domains."""
        near = (size + LINK_HALF_BYTES) * self.network.per_link_byte
        ring = self.others_inside * (near / self.inside + LINK_LATENCY_S)
        tree = near + LINK_LATENCY_S * self.depth_inside
        far = (size / self.inside + FABRIC_HALF_BYTES) * self.network.per_fabric_byte
        ring_out = self.other_domains * (far / self.domains + FABRIC_LATENCY_S)
        tree_out = far + FABRIC_LATENCY_S * self.depth_across
        return 2.0 * (np.minimum(ring, tree) + np.minimum(ring_out, tree_out))

    def gather(self, size: Array) -> Array:
        part = size / self.inside
        near = self.others_inside * (part + LINK_HALF_BYTES) * self.network.per_link_byte
        far = self.other_domains * (part / self.domains + FABRIC_HALF_BYTES) * self.network.per_fabric_byte
        return near + far + self._gather_latency

    def all_to_all(self, size: Array) -> tuple[Array, Array]:
        """Inside the domain, and beyond it."""
        leaving = np.where(self.domains > 1, 1.0 - self.inside / np.maximum(self.chips, 1.0), 0.0)
        message = size / self.chips
        near = np.where(self.chips > 1, (1.0 - leaving) * (self.chips - 1.0) * message, 0.0)
        far = leaving * size
        link, fabric = (half / np.maximum(message, 1e-300) + 1.0 for half in (LINK_HALF_BYTES, FABRIC_HALF_BYTES))
        return (
            np.where(near > 0, near * link * self.network.per_link_byte + LINK_LATENCY_S * self.depth_inside, 0.0),
            np.where(far > 0, far * fabric * self.network.per_fabric_byte + FABRIC_LATENCY_S * self.depth_across, 0.0),
        )

    @cached_property
    def _gather_latency(self) -> Array:
        near = LINK_LATENCY_S * np.minimum(self.others_inside, 2.0 * self.depth_inside + 1.0)
        return near + FABRIC_LATENCY_S * np.minimum(self.other_domains, 2.0 * self.depth_across + 1.0)
