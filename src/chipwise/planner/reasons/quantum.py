"""Refused on quantum devices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Analogue:
    """It runs no circuits of gates."""


@dataclass(frozen=True, slots=True)
class FewQubits:
    qubits: float | None  # None: not stated
    needed: int
    simulator: bool


@dataclass(frozen=True, slots=True)
class SellerLeftOut:
    provider: str


@dataclass(frozen=True, slots=True)
class CountryLeftOut:
    country: str | None


@dataclass(frozen=True, slots=True)
class NoQuantumPrice:
    """No price by task, shot or minute is known."""


@dataclass(frozen=True, slots=True)
class TimeNotModelled:
    device: str  # what kind of simulator


@dataclass(frozen=True, slots=True)
class StateTooLarge:
    """A simulator's state, and the largest machine there is."""

    qubits: int
    state_bytes: float
    largest_bytes: float


@dataclass(frozen=True, slots=True)
class NoDevice:
    """No quantum device is left, and the circuits cannot be simulated on it."""


Quantum = Analogue | FewQubits | SellerLeftOut | CountryLeftOut | NoQuantumPrice | TimeNotModelled | StateTooLarge | NoDevice
