"""The verbs. Each lives in a module of its own and is imported when it is first used.

from chipwise import api

session = api.open_session()                      # the catalog with the user's files and fresh prices joined
checked = api.check(session, "workload.yaml")     # a workload, or InvalidFile with every problem
meanings = api.explain(session, "p4de.24xlarge", {})
found = api.find_offers(session.catalog, api.OfferQuery())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chipwise.api.calibration import calibrate, own_model
    from chipwise.api.estimating import estimate
    from chipwise.api.feeding import import_file, refresh
    from chipwise.api.holdings import status
    from chipwise.api.meaning import explain
    from chipwise.api.planning import plan
    from chipwise.api.profiling import measure
    from chipwise.api.scoring import score
    from chipwise.api.wiring import Session, open_session
    from chipwise.api.workloads import check
    from chipwise.catalog.query import MachineQuery, OfferQuery, find_machines, find_offers

__all__ = [
    "MachineQuery",
    "OfferQuery",
    "Session",
    "calibrate",
    "check",
    "estimate",
    "explain",
    "find_machines",
    "find_offers",
    "import_file",
    "measure",
    "open_session",
    "own_model",
    "plan",
    "refresh",
    "score",
    "status",
]

_HOMES = {
    "calibrate": "chipwise.api.calibration",
    "check": "chipwise.api.workloads",
    "estimate": "chipwise.api.estimating",
    "explain": "chipwise.api.meaning",
    "find_machines": "chipwise.catalog.query",
    "find_offers": "chipwise.catalog.query",
    "import_file": "chipwise.api.feeding",
    "measure": "chipwise.api.profiling",
    "MachineQuery": "chipwise.catalog.query",
    "OfferQuery": "chipwise.catalog.query",
    "open_session": "chipwise.api.wiring",
    "own_model": "chipwise.api.calibration",
    "plan": "chipwise.api.planning",
    "refresh": "chipwise.api.feeding",
    "score": "chipwise.api.scoring",
    "Session": "chipwise.api.wiring",
    "status": "chipwise.api.holdings",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'chipwise.api' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
