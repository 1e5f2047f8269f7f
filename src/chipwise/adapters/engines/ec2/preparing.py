"""What an account must have before the first machine is rented, and what engines.yaml should say of it then."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chipwise.runner.abilities import Prepared

from . import setup
from .config import Config, There
from .settings import Settings, config_of

WHY = "public_address: the default network has no NAT gateway, and without an address a machine would not reach S3"


def prepare(settings: Settings, *, dry_run: bool) -> Prepared:
    found = setup.prepare(config_of(settings), dry_run=dry_run)
    made: dict[str, Any] = {
        "queue_url": found.config.queue_url,
        "instance_profile": found.config.instance_profile,
        "security_groups": list(found.config.security_groups),
    }
    opened = found.config.public_address and "public_address" not in settings.model_fields_set
    if opened:
        made["public_address"] = True
    made["regions"] = {one.region: _own(one, found.config) for one in found.config.others}
    said = settings.model_dump(exclude_defaults=True) | {key: value for key, value in made.items() if value}
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
