"""Scales a service between its limits, as a job of its own: looks at what the gateway sees, decides, and tells why.

python -m chipwise.api.serving.keeping NAME
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from chipwise.api.running import asking
from chipwise.api.serving import changing, folders
from chipwise.api.serving.replicas import tell
from chipwise.errors import ChipwiseError
from chipwise.serving.scaling import ScalingDecision, ScalingRule, ScalingSignals, decide
from chipwise.serving.service import ServiceRecord

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

LOOKS_S = 1.0


def looked(session: Session, service: ServiceRecord, fewer_since: float | None) -> ScalingDecision | None:
    """What should be done now; None: it has no limits to scale between, is being replaced, or its gateway is silent."""
    seen = folders.seen(session, service.name)
    if service.most_replicas is None or service.canary is not None or not seen:
        return None
    live = [record for record in service.replicas if not record.is_draining]
    requests = seen["waiting"] + sum(state["requests"] for state in seen["replicas"].values())
    rule = ScalingRule(
        fewest_replicas=service.fewest_replicas,
        most_replicas=service.most_replicas,
        at_once=min((record.at_once for record in live), default=1),
    )
    return decide(ScalingSignals(time.time(), len(live), requests), rule, fewer_since)


def keep(session: Session, name: str) -> None:
    """Until the service is gone."""
    fewer_since: float | None = None
    while name in folders.names(session):
        try:
            service = folders.load(session, name)
            decision = looked(session, service, fewer_since)
            fewer_since = None if decision is None else decision.fewer_since
            if decision is not None and decision.reason:
                print(decision.reason, flush=True)
                with asking.opened(session) as runtime:
                    tell(runtime, service.gateway, decision.reason)
                changing.scale(session, name, decision.replicas, lambda line: print(line, flush=True))
        except ChipwiseError as error:  # another command changes it, or a replica does not start: the next look decides anew
            print(error, flush=True)
        time.sleep(LOOKS_S)


if __name__ == "__main__":
    from chipwise.api.session.wiring import open_session

    keep(open_session(), sys.argv[1])
