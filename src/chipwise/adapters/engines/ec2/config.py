"""What the `ec2` engine must know of an account. One prefix in S3 belongs to one record of jobs, and to no other.

Machines, their markers and their end are found by that prefix: two records that shared one would each take the other's machines
for left over, and end them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from chipwise.errors import InvalidSettings, Problem
from chipwise.renderer.quoting import tag_value

from . import NAME


@dataclass(frozen=True, slots=True)
class RegionConfig:
    """Another region, with what is its own there. Roles are of the whole account; S3 is that of the first region."""

    region: str
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    public_address: bool | None = None  # None: as in the first region
    image: str = ""  # a machine image is of one region, unlike the SSM parameter that names it
    queue_url: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    region: str
    keep: str  # s3://bucket/prefix: orders, markers, logs and checkpoints
    profile: str | None = None  # of the user's AWS configuration
    endpoint_url: str | None = None  # another place that answers like AWS
    subnets: tuple[str, ...] = ()  # none: those of the default VPC
    security_groups: tuple[str, ...] = ()  # none: the VPC's own
    public_address: bool = False  # machines without one need another way out, such as a NAT gateway or VPC endpoints
    instance_profile: str = ""  # what a machine may do; it needs at least the prefix
    image: str = ""  # of the machine; else what the SSM parameter says
    image_parameter: str = ""  # none: Amazon Linux, or AWS's image with drivers where GPUs are asked for
    container: str = ""  # in which commands run unless a job names another by CHIPWISE_IMAGE; none: on the machine itself
    root_gib: int = 100
    queue_url: str = ""  # of interruption and rebalance events; none: only the machine itself hears of them
    heeds_rebalance: bool = True  # a recommendation counts as a notice
    idle_minutes: float | None = 30.0  # without use of processor, GPU or log, after which a machine ends its job
    start_minutes: float = 30.0  # to boot, pull and meet the others, after which a machine ends itself
    orphan_minutes: float | None = 1440.0  # without a controller, after which a machine lets its job save, and ends itself
    other_regions: tuple[RegionConfig, ...] = ()  # regions in which a job may go on, when there is no machine here
    home: str = ""  # of a region among several: the first one, where S3 and secrets are
    clock: Callable[[], float] = time.time
    tries: int = 3  # of one request, by botocore's standard mode
    timeout_s: float = 10.0  # less than a controller's lease

    @property
    def bucket(self) -> str:
        return self.keep.removeprefix("s3://").partition("/")[0]

    @property
    def prefix(self) -> str:
        """With a slash at its end, or empty."""
        path = self.keep.removeprefix("s3://").partition("/")[2].strip("/")
        return f"{path}/" if path else ""

    @property
    def home_region(self) -> str:
        return self.home or self.region

    @property
    def place(self) -> str:
        """The same in all its regions: one controller leads them."""
        return tag_value(f"{NAME}:{self.home_region}:{self.bucket}/{self.prefix}".rstrip("/"))

    def by_region(self) -> dict[str, Config]:
        """By region, this one first."""
        own = replace(self, other_regions=())
        return {self.region: own} | {one.region: self._in_region(one) for one in self.other_regions}

    def _in_region(self, region: RegionConfig) -> Config:
        public = self.public_address if region.public_address is None else region.public_address
        return replace(
            self,
            region=region.region,
            subnets=region.subnets,
            security_groups=region.security_groups,
            image=region.image,
            queue_url=region.queue_url,
            public_address=public,
            other_regions=(),
            home=self.region,
        )


def check(config: Config) -> None:
    problems = []
    if not config.region:
        problems.append(Problem("region", "No region is given", allowed="a region of AWS, such as eu-west-1"))
    if not config.keep.startswith("s3://") or not config.bucket:
        problems.append(Problem("keep", f"{config.keep[:80]!r} is not a place in S3", allowed="s3://bucket/prefix"))
    regions = [config.region, *(one.region for one in config.other_regions)]
    twice = sorted({one for one in regions if regions.count(one) > 1})
    problems += [Problem("regions", f"{one} is named twice", allowed="each region once") for one in twice]
    if config.idle_minutes is not None and config.idle_minutes < 1:
        problems.append(Problem("idle_minutes", f"{config.idle_minutes:g} is less than a minute", allowed="1 or more, or none"))
    if config.orphan_minutes is not None and config.orphan_minutes < 5:
        reason = f"{config.orphan_minutes:g} is less than a controller may be away for a restart"
        problems.append(Problem("orphan_minutes", reason, allowed="5 or more, or none"))
    if problems:
        raise InvalidSettings(*problems)
