"""What an account must have before the first machine is rented, and what engines.yaml should say of it then."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from chipwise.runner.abilities import Prepared

from . import setup
from .config import Config, RegionConfig
from .settings import Settings, config_of

PUBLIC_ADDRESS_REASON = (
    "public_address: the default network has no NAT gateway, and without an address a machine would not reach S3"
)


def prepare(settings: Settings, *, dry_run: bool) -> Prepared:
    prepared = setup.prepare(config_of(settings), dry_run=dry_run)
    values: dict[str, Any] = {
        "queue_url": prepared.config.queue_url,
        "instance_profile": prepared.config.instance_profile,
        "security_groups": list(prepared.config.security_groups),
    }
    opened = prepared.config.public_address and "public_address" not in settings.model_fields_set
    if opened:
        values["public_address"] = True
    values["regions"] = {one.region: _own(one, prepared.config) for one in prepared.config.other_regions}
    fields = settings.model_dump(exclude_defaults=True) | {key: value for key, value in values.items() if value}
    parts = tuple(
        (str(one.state), one.kind, f"{one.name} in {one.region}" if one.region else one.name) for one in prepared.parts
    )
    return Prepared(
        parts=parts,
        fields={key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()},
        policy=prepared.policy,
        complete=prepared.complete,
        reason=PUBLIC_ADDRESS_REASON if opened else "",
        warnings=prepared.warnings,
    )


def _own(region: RegionConfig, config: Config) -> dict[str, Any]:
    """What a region has beside what the first one says."""
    public = None if region.public_address == config.public_address else region.public_address
    fields = {**asdict(region), "public_address": public}
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in fields.items() if key != "region" and value
    }
