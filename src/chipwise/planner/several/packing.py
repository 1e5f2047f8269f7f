"""Several small models on few chips: which go together, on which kind of machine, at the least cost.

A chip is shared in one of two ways:
- in turns (time slicing or MPS): each model has a share of the chip's speed and its own part of the memory. Shares add up to at
  most `MOST_SHARE`, memory to `MOST_MEMORY`: what is left is for switching, for caches that neighbours spoil, and for two
  that are busy at once. Both are rules of thumb, not measured;
- in slices (MIG): each model has a slice of its own, with the compute and memory that the chip's table states. Slices start at
  multiples of their own size, so that which go together is decided by placing them (`placed`), not by adding.

The cheapest partition is exact for up to `EXACT` models: the cost of every subset is the cheapest machine that holds it, and
the cheapest set of subsets follows by dynamic programming over subsets (3^n steps). Beyond that, first-fit decreasing on the
machine that does best by it; that is not proven to be the cheapest, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from chipwise.perf.arrays import Array
from chipwise.planner.limits import Mask

EXACT = 12  # models, copies counted
MOST_SHARE = 0.8  # of a chip's speed, over models in turns
MOST_MEMORY = 0.9  # of its memory
ALONE, IN_TURNS, IN_SLICES = "alone", "time sharing", "MIG"
_HAIR = 1e-9


@dataclass(frozen=True, slots=True)
class Profile:
    """A kind of slice: of the chip's compute and memory units, and where in its memory it may start."""

    name: str
    compute: int
    memory: int
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """A kind of machine with one chip."""

    name: str
    memory_bytes: float
    in_turns: bool  # whether models may take turns on it
    compute: int = 0  # units that slices are made of; 0: cannot be cut
    profiles: tuple[Profile, ...] = ()  # the smallest first, each at least as large as the one before in all


@dataclass(frozen=True)
class Item:
    """A model, or one of its copies: what it takes of every host. Infinity or -1: cannot."""

    model: int  # copies of one model do not share a chip: one may fail
    rules: int  # kind of limits: machines must be allowed by those of all that share them
    alone: Mask  # by host
    share: Array
    memory: Array  # bytes
    profile: Sequence[int]  # the smallest that holds it; -1: none
    precision: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of the weights: how it is held -> by host


@dataclass(frozen=True, slots=True)
class Bin:
    """One machine and who is on it."""

    host: int
    sharing: str  # ALONE, IN_TURNS or IN_SLICES
    items: tuple[int, ...]
    rules: int  # kinds of limits, as a bit mask
    usd: float


@dataclass(frozen=True, slots=True)
class Packing:
    bins: tuple[Bin, ...]
    usd: float
    proven: bool


Prices = Callable[[int], Array]  # kinds of limits as a bit mask -> USD of every host; infinity: none on offer


def pack(items: Sequence[Item], hosts: Sequence[Host], prices: Prices) -> Packing | None:
    """None: some item has no host at all."""
    market = _Market(items, hosts, prices)
    if any(market.best(1 << at) is None for at in range(len(items))):
        return None
    return _exact(market) if len(items) <= EXACT else _first_fit(market)


def apart(items: Sequence[Item], hosts: Sequence[Host], prices: Prices) -> tuple[Bin, ...]:
    """One chip each."""
    market = _Market(items, hosts, prices)
    bins = [market.best(1 << at) for at in range(len(items))]
    return tuple(one for one in bins if one is not None)


class _Market:
    """What the cheapest host of a set of items costs, each set once."""

    def __init__(self, items: Sequence[Item], hosts: Sequence[Host], prices: Prices) -> None:
        self.items, self.hosts = items, hosts
        self.prices = lru_cache(maxsize=None)(prices)
        self.alone = np.stack([one.alone for one in items])
        self.share, self.memory = np.stack([one.share for one in items]), np.stack([one.memory for one in items])
        self.room = np.array([MOST_MEMORY * one.memory_bytes for one in hosts])
        self.turns = np.array([one.in_turns for one in hosts], dtype=bool)
        self.known: dict[int, Bin | None] = {}

    def best(self, chosen: int) -> Bin | None:
        """The cheapest host of the items whose bits are set."""
        if chosen not in self.known:
            self.known[chosen] = self._best(chosen)
        return self.known[chosen]

    def _best(self, chosen: int) -> Bin | None:
        inside = [at for at in range(len(self.items)) if chosen >> at & 1]
        if len({self.items[at].model for at in inside}) < len(inside):
            return None
        rules = 0
        for item in inside:
            rules |= 1 << self.items[item].rules
        usd = self.prices(rules)
        able, modes = self._able(inside)
        able &= np.isfinite(usd)
        if not able.any():
            return None
        host = int(np.argmin(np.where(able, usd, np.inf)))
        return Bin(host=host, sharing=modes[host], items=tuple(inside), rules=rules, usd=float(usd[host]))

    def _able(self, inside: list[int]) -> tuple[Mask, list[str]]:
        """Hosts that hold all of them, and how."""
        if len(inside) == 1:
            return self.alone[inside[0]].copy(), [ALONE] * len(self.hosts)
        share, memory = self.share[inside].sum(axis=0), self.memory[inside].sum(axis=0)
        able: Mask = self.turns & (share <= MOST_SHARE + _HAIR) & (memory <= self.room)
        modes = [IN_TURNS] * len(self.hosts)
        for index, host in enumerate(self.hosts):
            if host.profiles and all(self.items[one].profile[index] >= 0 for one in inside):
                wanted = tuple(
                    sorted((host.profiles[self.items[one].profile[index]] for one in inside), key=_size, reverse=True)
                )
                if placed(wanted, host.compute) is not None:  # slices keep neighbours apart: rather than turns
                    able[index], modes[index] = True, IN_SLICES
        return able, modes


def _size(profile: Profile) -> tuple[int, int]:
    return profile.memory, profile.compute


@lru_cache(maxsize=65536)
def placed(wanted: tuple[Profile, ...], compute: int) -> tuple[int, ...] | None:
    """Where each slice starts, so that none overlap and their compute suffices; None: they do not go together."""
    if sum(one.compute for one in wanted) > compute:
        return None

    def place(number: int, occupied: int) -> tuple[int, ...] | None:
        if number == len(wanted):
            return ()
        size = (1 << wanted[number].memory) - 1
        for start in wanted[number].starts:
            if not occupied & size << start:
                rest = place(number + 1, occupied | size << start)
                if rest is not None:
                    return (start, *rest)
        return None

    return place(0, 0)


def _exact(market: _Market) -> Packing:
    """The cheapest partition of every set, from those of smaller sets: its lowest item is in one of the subsets."""
    full = (1 << len(market.items)) - 1
    cost = [0.0] + [float("inf")] * full
    chosen: list[Bin | None] = [None] * (full + 1)
    for subset in range(1, full + 1):
        lowest = subset & -subset
        rest = subset ^ lowest
        part = rest
        while True:
            bin_ = market.best(part | lowest)
            if bin_ is not None and bin_.usd + cost[rest ^ part] < cost[subset]:
                cost[subset], chosen[subset] = bin_.usd + cost[rest ^ part], bin_
            if not part:
                break
            part = (part - 1) & rest
    bins: list[Bin] = []
    left = full
    while left:
        bin_ = chosen[left]
        assert bin_ is not None
        bins.append(bin_)
        left &= ~sum(1 << at for at in bin_.items)
    return Packing(tuple(bins), sum(one.usd for one in bins), True)


def _first_fit(market: _Market) -> Packing:
    """For every host: the largest first, each into the first machine that still holds it; the host that does best by it."""
    count, best = len(market.items), None
    for host in range(len(market.hosts)):
        with np.errstate(invalid="ignore"):
            large = np.maximum(market.share[:, host] / MOST_SHARE, market.memory[:, host] / market.room[host])
        order = sorted(range(count), key=lambda at: (-float(large[at]) if np.isfinite(large[at]) else -np.inf, at))
        bins: list[int] = []
        for item in order:
            for place, members in enumerate(bins):
                together = market.best(members | 1 << item)
                before, alone = market.best(members), market.best(1 << item)
                assert before is not None
                assert alone is not None
                if together is not None and together.usd < before.usd + alone.usd - _HAIR:
                    bins[place] = members | 1 << item
                    break
            else:
                bins.append(1 << item)
        filled = [bin_ for held in bins if (bin_ := market.best(held)) is not None]
        usd = sum(one.usd for one in filled)
        if best is None or usd < best.usd:
            best = Packing(tuple(filled), usd, False)
    assert best is not None
    return best
