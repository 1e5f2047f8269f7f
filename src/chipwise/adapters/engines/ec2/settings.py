"""What engines.yaml may say of an account and its regions, and what the engine makes of it."""

from __future__ import annotations

import re
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, field_validator, model_validator
from pydantic_core import PydanticCustomError

from . import config as engine_config


class RegionSettings(BaseModel):
    """Another region of the same account, with what is its own there."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    subnets: tuple[str, ...] | list[str] = ()
    security_groups: tuple[str, ...] | list[str] = ()
    public_address: bool | None = None
    image: str = ""
    queue_url: str = ""


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    PARTS: ClassVar = {"regions": ("a region", RegionSettings)}  # fields that hold others, and what those are called

    region: str
    keep: str
    profile: str = ""
    endpoint_url: str = ""
    subnets: tuple[str, ...] | list[str] = ()
    security_groups: tuple[str, ...] | list[str] = ()
    public_address: bool = False
    instance_profile: str = ""
    image: str = ""
    image_parameter: str = ""
    container: str = ""
    root_gib: int = 100
    queue_url: str = ""
    heeds_rebalance: bool = True
    idle_minutes: float | int | None = 30.0
    start_minutes: float | int = 30.0
    orphan_minutes: float | int | None = 1440.0
    regions: dict[str, RegionSettings] = {}  # where jobs may go on beside the first

    @model_validator(mode="before")
    @classmethod
    def _first(cls, values: object) -> object:
        """Without a region of its own the first of several is it; one that is named among the others as well is meant once."""
        if not isinstance(values, dict) or not isinstance(regions := values.get("regions"), list | dict):
            return values
        names = [one for one in regions if isinstance(one, str)]
        region = values.get("region") or next(iter(names), None)
        if region is None or (isinstance(regions, dict) and regions.get(region)):  # what is its own stands beside `region`
            return values
        further = {key: regions[key] for key in regions if key != region} if isinstance(regions, dict) else [*regions]
        if isinstance(further, list) and region in further:
            further.remove(region)
        return {**values, "region": region, "regions": further}

    @field_validator("regions", mode="before")
    @classmethod
    def _regions_by_name(cls, value: object) -> object:
        """Names alone will do, as a list or with nothing behind them."""
        if value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
            value = dict.fromkeys(value or ())
        if not isinstance(value, dict):
            raise PydanticCustomError("regions", "names of regions belong here, such as [eu-north-1]")
        return {key: {} if each is None else each for key, each in value.items()}

    @field_validator("region", "regions")
    @classmethod
    def _speakable(cls, value: str | dict[str, RegionSettings]) -> str | dict[str, RegionSettings]:
        """One that cannot be a region would fail at every look, and hide what runs in the others."""
        for name in [value] if isinstance(value, str) else value:
            if (name != value and not name) or not re.fullmatch(r"[a-z0-9-]{0,63}", name, re.ASCII):
                raise PydanticCustomError("region", "a region is written like eu-west-1")
        return value


def config_of(settings: Settings) -> engine_config.Config:
    """Without the record's own part of the prefix, which `prepare` does not know: rights are given for all of it."""
    values = settings.model_dump(exclude={"regions"})
    values |= {"profile": settings.profile or None, "endpoint_url": settings.endpoint_url or None}
    values |= {"subnets": tuple(settings.subnets), "security_groups": tuple(settings.security_groups)}
    regions = tuple(
        engine_config.RegionConfig(
            name, tuple(region.subnets), tuple(region.security_groups), region.public_address, region.image, region.queue_url
        )
        for name, region in settings.regions.items()
    )
    return engine_config.Config(**values, other_regions=regions)
