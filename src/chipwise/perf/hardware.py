"""Columns of hardware for candidates: what each row's part has, and how its chips are joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chipwise.perf.arrays import Array, Coded, Index, column, cut
from chipwise.perf.collective import Network
from chipwise.perf.part import Part


@dataclass(frozen=True, slots=True)
class Hardware:
    """`node` chips share one machine; 0 stands for what is usual for the part."""

    part: Coded
    parts: Mapping[str, Part]
    node: Array
    fabric: Array  # bytes/s per chip between machines; 0: usual

    @classmethod
    def of(cls, part: Coded, parts: Mapping[str, Part], node: Array | None = None, fabric: Array | None = None) -> Hardware:
        return cls(part, parts, column(0.0) if node is None else node, column(0.0) if fabric is None else fabric)

    def rows(self, selection: slice | Index) -> Hardware:
        return Hardware(self.part.rows(selection), self.parts, cut(self.node, selection), cut(self.fabric, selection))

    def __len__(self) -> int:
        return max(len(self.part), len(self.node), len(self.fabric))

    def get(self, name: str) -> Array:
        return self.part.look_up(lambda key: float(getattr(self.parts[key], name)))

    def rate(self, precision: Coded) -> Array:
        """FLOP/s of each row's part in each row's precision."""
        table = np.array([[self.parts[key].rate(name) for name in precision.names] for key in self.part.names])
        return np.asarray(table[self.part.index, precision.index])

    @property
    def kind(self) -> Coded:
        return self.part.map(lambda key: self.parts[key].kind)

    @property
    def domain(self) -> Array:
        """Chips that fast links join: the part's own, or those of one machine where that is what holds them together.

        Links reach beyond a machine in pods of TPUs and in racks of several chips a machine (GB200): a single GH200 is rented
        alone, and what joins the chips of a Trainium machine ends with it.
        """
        usual = self.get("domain")
        pods = self.part.look_up(lambda key: float(self.parts[key].kind == "tpu")) > 0
        racks = self.part.look_up(lambda key: float(self.parts[key].kind == "gpu" and self.parts[key].domain > 8)) > 0
        inside = np.where(usual > 8, np.minimum(self.node, usual), self.node)
        return np.where((self.node <= 0) | pods | (racks & (self.node > 1)), usual, inside)

    def network(self) -> Network:
        return Network(self.get("link"), self.domain, np.where(self.fabric > 0, self.fabric, self.get("fabric")))
