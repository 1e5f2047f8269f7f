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
    from chipwise.api.catalog.check import check
    from chipwise.api.catalog.explain import explain
    from chipwise.api.catalog.feeds import import_file, refresh
    from chipwise.api.catalog.status import status
    from chipwise.api.measure.calibrate import calibrate
    from chipwise.api.measure.profile import measure as profile
    from chipwise.api.measure.score import score
    from chipwise.api.session.wiring import Session, open_session
    from chipwise.api.verbs import estimate, plan
    from chipwise.catalog.ability import abilities
    from chipwise.catalog.query import (
        MachineQuery,
        OfferOrder,
        OfferQuery,
        cheapest,
        cheapest_on_demand,
        chip_memory,
        find_machines,
        find_offers,
    )
    from chipwise.catalog.selection import (
        ability_names,
        able_chips,
        age_limit,
        machine_query,
        price_limit,
        purchases,
        region_keys,
    )
    from chipwise.files.source import read_text
    from chipwise.planner.options import (
        OPTION_FIELDS,
        Constraints,
        constrained,
        items,
        over_file,
        text_of,
        with_measured,
    )
    from chipwise.planner.overriding import over_workload, replacing_file
    from chipwise.planner.owning.rents import parse_decline, parse_rent
    from chipwise.scale.policy_files import listed as policies
    from chipwise.scale.questions.mixed import mixed_question, simulate_mixed
    from chipwise.scale.questions.queue import QueueQuestion, compare_queue, simulate_queue
    from chipwise.scale.questions.scaling import ServeQuestion, simulate_serve
    from chipwise.scale.questions.spot import SpotQuestion, compare_spot, simulate_spot
    from chipwise.workload.schema import schema_text

__all__ = [
    "OPTION_FIELDS",
    "Constraints",
    "MachineQuery",
    "OfferOrder",
    "OfferQuery",
    "QueueQuestion",
    "ServeQuestion",
    "Session",
    "SpotQuestion",
    "abilities",
    "ability_names",
    "able_chips",
    "age_limit",
    "calibrate",
    "cheapest",
    "cheapest_on_demand",
    "check",
    "chip_memory",
    "compare_queue",
    "compare_spot",
    "constrained",
    "estimate",
    "explain",
    "find_machines",
    "find_offers",
    "import_file",
    "items",
    "machine_query",
    "mixed_question",
    "open_session",
    "over_file",
    "over_workload",
    "parse_decline",
    "parse_rent",
    "plan",
    "policies",
    "price_limit",
    "profile",
    "purchases",
    "read_text",
    "refresh",
    "region_keys",
    "replacing_file",
    "schema_text",
    "score",
    "simulate_mixed",
    "simulate_queue",
    "simulate_serve",
    "simulate_spot",
    "status",
    "text_of",
    "with_measured",
]

_HOMES = {
    "abilities": "chipwise.catalog.ability",
    "ability_names": "chipwise.catalog.selection",
    "able_chips": "chipwise.catalog.selection",
    "age_limit": "chipwise.catalog.selection",
    "calibrate": "chipwise.api.measure.calibrate",
    "cheapest": "chipwise.catalog.query",
    "cheapest_on_demand": "chipwise.catalog.query",
    "check": "chipwise.api.catalog.check",
    "chip_memory": "chipwise.catalog.query",
    "compare_queue": "chipwise.scale.questions.queue",
    "compare_spot": "chipwise.scale.questions.spot",
    "constrained": "chipwise.planner.options",
    "Constraints": "chipwise.planner.options",
    "estimate": "chipwise.api.verbs",
    "explain": "chipwise.api.catalog.explain",
    "find_machines": "chipwise.catalog.query",
    "find_offers": "chipwise.catalog.query",
    "import_file": "chipwise.api.catalog.feeds",
    "items": "chipwise.planner.options",
    "machine_query": "chipwise.catalog.selection",
    "MachineQuery": "chipwise.catalog.query",
    "mixed_question": "chipwise.scale.questions.mixed",
    "OfferOrder": "chipwise.catalog.query",
    "OfferQuery": "chipwise.catalog.query",
    "open_session": "chipwise.api.session.wiring",
    "OPTION_FIELDS": "chipwise.planner.options",
    "over_file": "chipwise.planner.options",
    "over_workload": "chipwise.planner.overriding",
    "parse_decline": "chipwise.planner.owning.rents",
    "parse_rent": "chipwise.planner.owning.rents",
    "plan": "chipwise.api.verbs",
    "policies": "chipwise.scale.policy_files",
    "price_limit": "chipwise.catalog.selection",
    "profile": "chipwise.api.measure.profile",
    "purchases": "chipwise.catalog.selection",
    "QueueQuestion": "chipwise.scale.questions.queue",
    "read_text": "chipwise.files.source",
    "refresh": "chipwise.api.catalog.feeds",
    "region_keys": "chipwise.catalog.selection",
    "replacing_file": "chipwise.planner.overriding",
    "schema_text": "chipwise.workload.schema",
    "score": "chipwise.api.measure.score",
    "ServeQuestion": "chipwise.scale.questions.scaling",
    "Session": "chipwise.api.session.wiring",
    "simulate_mixed": "chipwise.scale.questions.mixed",
    "simulate_queue": "chipwise.scale.questions.queue",
    "simulate_serve": "chipwise.scale.questions.scaling",
    "simulate_spot": "chipwise.scale.questions.spot",
    "SpotQuestion": "chipwise.scale.questions.spot",
    "status": "chipwise.api.catalog.status",
    "text_of": "chipwise.planner.options",
    "with_measured": "chipwise.planner.options",
}

_NAMES = {"profile": "measure", "policies": "listed"}  # where the verb has another name at home


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'chipwise.api' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), _NAMES.get(name, name))
