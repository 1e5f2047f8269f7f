"""`prepare` as a verb: what an account must have before the first machine is rented."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from chipwise.api.running import engines
from chipwise.errors import BadInput

if TYPE_CHECKING:
    from chipwise.adapters.engines.ec2 import Config, There
    from chipwise.api.session.wiring import Session


WHY = "public_address: the default network has no NAT gateway, and without an address a machine would not reach S3"


@dataclass(frozen=True, slots=True)
class Prepared:
    parts: tuple[tuple[str, str, str], ...]  # state, kind, name
    fields: Mapping[str, Any]  # of the engine, with what was made: what engines.yaml should say
    policy: Mapping[str, Any]  # of whoever starts jobs
    complete: bool
    why: str = ""  # public_address is among the fields, though nobody set it


def prepare(session: Session, name: str, given: Mapping[str, str], *, dry_run: bool) -> Prepared:
    """`given`: region and keep, where the file of engines does not say them yet."""
    reach = engines.reach(session, name, given)
    if not isinstance(reach.fields, engines.OnEc2):
        raise BadInput(
            f"Nothing is to be prepared for {name}.",
            remedy="A cluster's part is docs/running/kubernetes-role.yaml, for kubectl.",
        )
    from chipwise.adapters.ec2_fleet import setup

    found = setup.prepare(engines.ec2_config(reach.fields), dry_run=dry_run)
    made: dict[str, Any] = {
        "queue_url": found.config.queue_url,
        "instance_profile": found.config.instance_profile,
        "security_groups": list(found.config.security_groups),
    }
    opened = found.config.public_address and "public_address" not in reach.fields.model_fields_set
    if opened:
        made["public_address"] = True
    made["regions"] = {one.region: _own(one, found.config) for one in found.config.others}
    said = reach.fields.model_dump(exclude_defaults=True) | {key: value for key, value in made.items() if value}
    parts = tuple((str(one.state), one.kind, f"{one.name} in {one.region}" if one.region else one.name) for one in found.parts)
    return Prepared(
        parts,
        {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()},
        found.policy,
        found.complete,
        WHY if opened else "",
    )


def _own(there: There, config: Config) -> dict[str, Any]:
    """What a region has beside what the first one says."""
    public = None if there.public_address == config.public_address else there.public_address
    told = {**asdict(there), "public_address": public}
    return {key: list(value) if isinstance(value, tuple) else value for key, value in told.items() if key != "region" and value}
