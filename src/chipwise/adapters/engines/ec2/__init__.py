"""Machines of EC2, rented for one attempt each: what is asked of AWS, what a machine does when it comes up, how it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.runner.abilities import Home, Market, Prepared, Traits

if TYPE_CHECKING:
    from .config import Config
    from .engine import Ec2
    from .settings import Settings

NAME = __name__.rpartition(".")[2].replace("_", "-")
TRAITS = Traits(
    page="docs/tutorial/run-on-ec2.md",
    rents=True,
    holds_budget=True,
    looks_at=("s3://",),
    turn_s=5.0,  # a look is requests
    detail="machine",
)


def connect(config: Config) -> Ec2:
    from .engine import connect

    return connect(config)


def settings_model() -> type[Settings]:
    """What engines.yaml may say of it."""
    from .settings import Settings

    return Settings


def configured(settings: Settings, home: Home) -> Config:
    from dataclasses import replace

    from .settings import config_of

    config = config_of(settings)
    # Two records, or two engines, that shared a prefix would each take the other's machines for left over.
    record = home.record if NAME == "ec2" else f"{home.record}-{NAME}"
    return replace(config, keep=f"{config.keep.rstrip('/')}/{record}")


def market(settings: Settings) -> Market:
    return Market(("aws",), (settings.region, *settings.regions))


def prepare(settings: Settings, *, dry_run: bool) -> Prepared:
    from .preparing import prepare

    return prepare(settings, dry_run=dry_run)
