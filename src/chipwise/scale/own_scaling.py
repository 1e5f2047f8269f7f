"""A user's own scaling rule: a function of the signals, asked at every tick, that returns how many replicas there should be.

    def decide(signals):
        busy = signals.utilisation * signals.ready
        return busy / 0.8 + signals.waiting / 50

Who needs the service's settings, or a memory, defines `begin(service)`, which returns such a function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chipwise.errors import BadInput
from chipwise.scale.serving import BeginScaling, Scale, ScaledService, ServeSignals


def own_scaling(name: str, begin: Callable[[ScaledService], object] | None, decide: object) -> BeginScaling:
    """Errors of the file as sentences."""

    def begin_own(service: ScaledService) -> Scale:
        rule = _call(name, begin, service) if begin is not None else decide
        if not callable(rule):
            raise BadInput(f"{name}: begin answered no function.", remedy="Return a function of the signals.")

        def scale(signals: ServeSignals) -> float:
            replicas: float = _call(name, rule, signals)  # the simulator refuses what is no number
            return replicas

        return scale

    return begin_own


def _call(name: str, rule: Callable[..., Any], argument: object) -> Any:
    try:
        return rule(argument)
    except (Exception, SystemExit) as error:
        raise BadInput(f"{name} failed: {type(error).__name__}: {str(error)[:200]}") from error
