"""What `serve` is asked for, resolved with what is known here: workloads are checked, and planned where the engine asks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chipwise.errors import BadInput, ChipwiseError
from chipwise.files.source import NamedText
from chipwise.renderer.served import (
    COMMAND,
    PLANNED,
    named,
    of_command,
    of_model,
    of_plan,
    of_workload,
    with_options,
)
from chipwise.renderer.served import UNMEASURED as UNMEASURED
from chipwise.renderer.served import ServedThing as ServedThing
from chipwise.renderer.served import ServeRequest as ServeRequest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def resolve(session: Session, request: ServeRequest) -> ServedThing:
    if not request.words:
        raise BadInput("There is nothing to serve.", remedy="chipwise serve WORKLOAD.yaml, MODEL or FILE.gguf; or -- COMMAND.")
    if request.is_command:
        if request.engine not in (None, COMMAND):
            raise BadInput(f"A command is served as it is, and not by {request.engine}.", remedy="Leave --engine out.")
        served = of_command(request)
    elif len(request.words) > 1:
        raise BadInput(f"{' '.join(request.words)[:80]!r} is more than one thing.", remedy="Write -- before a command.")
    elif isinstance(request.words[0], NamedText) or request.words[0].endswith((".yaml", ".yml")):
        served = _of_workload(session, request, request.words[0])
    else:
        served = of_model(request, request.words[0], session.known.find_model)
    return replace(served, name=named(request.name or served.name), request=with_options(served.request, request))


def _of_workload(session: Session, request: ServeRequest, path: str) -> ServedThing:
    from chipwise.api.catalog.check import check
    from chipwise.api.render import RenderRequest, deployment_of

    served = of_workload(request, path, check(session, path, request.environment).workload)
    if served.engine not in PLANNED:
        return served
    try:
        deployment = deployment_of(session, path, RenderRequest(environment=request.environment))
    except ChipwiseError as error:
        raise BadInput(f"{served.engine} takes its flags from the plan of {path}: {error}") from error
    return of_plan(request, path, served, deployment)
