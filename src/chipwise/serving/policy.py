"""What a routing policy is given and gives back; policies are in `policies/`, one a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from chipwise.serving.replica import Replica

Draw = Callable[[], float]  # uniform in [0, 1)


class RouteQuery(NamedTuple):
    """What a policy may know of a request."""

    prompt_tokens: float
    answer_tokens: float  # predicted
    blocks: tuple[int, ...] = ()  # hashes of the prompt's blocks, each of all that stands before it too
    block_tokens: float = 0.0
    session: str = ""

    @property
    def tokens(self) -> float:
        return self.prompt_tokens + self.answer_tokens


class Policy(Protocol):
    needs_blocks: bool

    def choose(self, ask: RouteQuery, candidates: Sequence[Replica]) -> Replica:
        """One of the candidates, of which there is at least one. The policy remembers its choice where it needs to."""
        ...
