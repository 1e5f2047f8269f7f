"""Recommendation models of the DLRM kind: embedding tables, a bottom and a top network, and what joins them.

Naumov et al. 2019 (arXiv:1906.00091). Symbols: T = tables, w = embedding width, D = dense inputs, i = features that
meet (T + 1). Assumes the last layer of the bottom network is as wide as an embedding, which the meeting requires.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import ClassVar

from chipwise.workload.model.layers import linear


class Interaction(StrEnum):
    DOT = "dot"  # every pair of features: i*(i-1)/2 numbers beside the dense vector
    CROSS = "cross"  # DCN-v2 (Wang et al. 2020, arXiv:2008.13535) in low rank over all i*w numbers


@dataclass(frozen=True, slots=True)
class RecommenderShape:
    """parameters = w * rows of all tables + bottom + top + [cross layers * (2 * i*w * rank + i*w)].

    `bottom` and `top` are the widths of the layers without their input: D goes into the bottom network, the joined
    features into the top one. `lookups` is how many rows one sample reads of all tables together, one of each unless given.
    """

    kind: ClassVar[str] = "recommender"

    tables: tuple[int, ...]  # rows of each
    embedding_width: int
    dense_inputs: int
    bottom: tuple[int, ...]
    top: tuple[int, ...]
    interaction: Interaction = Interaction.DOT
    cross_layers: int = 0
    cross_rank: int = 0
    lookups: int | None = None

    @property
    def embedding_parameters(self) -> int:
        return sum(self.tables) * self.embedding_width

    @property
    def dense_parameters(self) -> int:
        networks = (self.dense_inputs, *self.bottom), (self.joined_width, *self.top)
        layers = sum(linear(inputs, outputs) for widths in networks for inputs, outputs in pairwise(widths))
        return layers + self.cross_layers * (2 * self._crossed * self.cross_rank + self._crossed)

    @property
    def parameters(self) -> int:
        return self.embedding_parameters + self.dense_parameters

    @property
    def active_parameters(self) -> int:
        """What one sample touches: the rows it looks up and the networks."""
        return self.rows_read * self.embedding_width + self.dense_parameters

    @property
    def rows_read(self) -> int:
        return len(self.tables) if self.lookups is None else self.lookups

    @property
    def joined_width(self) -> int:
        features = len(self.tables) + 1
        if self.interaction is Interaction.CROSS:
            return self._crossed
        return features * (features - 1) // 2 + self.embedding_width

    def forward_flop(self) -> float:
        """One sample: 2 FLOP per weight of both networks, and the meeting of the features."""
        features = len(self.tables) + 1
        networks = (self.dense_inputs, *self.bottom), (self.joined_width, *self.top)
        weights = sum(inputs * outputs for widths in networks for inputs, outputs in pairwise(widths))
        if self.interaction is Interaction.CROSS:
            meeting = self.cross_layers * 2 * self._crossed * self.cross_rank
        else:
            meeting = features * features * self.embedding_width
        return 2.0 * (weights + meeting)

    @property
    def _crossed(self) -> int:
        return (len(self.tables) + 1) * self.embedding_width
