"""What an account needs before the first machine: made once, by somebody who may, and left as it is where it is there.

The bucket, the queue with the rule that fills it, the role of the machines, their security group, and the two roles by which
AWS's own services start machines. Queue, rule and group are made in each region; the rest is the account's, or the first
region's. `prepare` may be asked any number of times; with `dry_run` it only says what is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from chipwise.errors import NotAllowed, NotFound

from . import policies
from .cloud import PLACE, Cloud
from .config import Config, RegionConfig, check
from .errors import translated
from .notices import REBALANCE, WARNING
from .policies import AccountNames, Policy

PATTERN = {"source": ["aws.ec2"], "detail-type": [WARNING, REBALANCE]}
SERVICES = ("ec2fleet.amazonaws.com", "spot.amazonaws.com")
CLOSED = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
_ABSENT = (
    "404",
    "NoSuchBucket",
    "NoSuchBucketPolicy",
    "NoSuchPublicAccessBlockConfiguration",
    "NoSuchEntity",
    "ResourceNotFoundException",
    "QueueDoesNotExist",
)
_NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"


class State(StrEnum):
    EXISTING = "there"
    CREATED = "made"
    MISSING = "missing"  # and not made: it was only asked for


@dataclass(frozen=True, slots=True)
class SetupPart:
    kind: str
    name: str
    state: State
    region: str = ""  # of another region than the first


@dataclass(frozen=True, slots=True)
class Prepared:
    parts: tuple[SetupPart, ...]
    config: Config  # with what was found or made: queue_url, instance_profile, security_groups; and public_address as needed
    policy: Policy  # for whoever starts jobs
    warnings: tuple[str, ...] = ()  # of what was there, and is left as it is

    @property
    def complete(self) -> bool:
        return all(one.state is not State.MISSING for one in self.parts)


def name_of(config: Config) -> str:
    """Of all that is made for a place; another place has others."""
    return f"chipwise-{hashlib.sha256(config.place.encode()).hexdigest()[:10]}"


def prepare(config: Config, *, dry_run: bool = False) -> Prepared:
    check(config)
    own, *further = [_Setup(one, dry_run) for one in config.by_region().values()]
    own.shared()
    primary, *configs = [one.regional() for one in (own, *further)]
    regions = tuple(
        RegionConfig(
            region=regional.region,
            subnets=regional.subnets,
            security_groups=regional.security_groups,
            public_address=regional.public_address,
            image=regional.image,
            queue_url=regional.queue_url,
        )
        for regional in configs
    )
    names = replace(own.names, other_regions=tuple((one.names.region, one.names.queue) for one in further))
    parts = tuple(part for one in (own, *further) for part in one.parts)
    complete_config = replace(primary, other_regions=regions, instance_profile=own.profile)
    return Prepared(parts, complete_config, policies.controller(names), tuple(own.warnings))


class _Setup:
    def __init__(self, config: Config, dry_run: bool) -> None:
        self.config, self.dry_run, self.cloud = config, dry_run, Cloud(config)
        self.name, self.profile = name_of(config), ""
        with translated("sts:GetCallerIdentity"):
            account = self.cloud.client("sts").get_caller_identity()["Account"]
        self.names = AccountNames(
            policies.partition_of(config.region), account, config.region, config.bucket, config.prefix, self.name, self.name
        )
        self.parts: list[SetupPart] = []
        self.warnings: list[str] = []

    def shared(self) -> None:
        """Of the account, or of the first region for all."""
        self._bucket()
        for service in SERVICES:
            self._service(service)
        self.profile = self.config.instance_profile or self._machine_role()

    def regional(self) -> Config:
        config = self.config
        groups = config.security_groups or self._group()
        url = config.queue_url or self._queue()
        self.names = replace(self.names, queue=url.rpartition("/")[2] or self.name)
        return replace(config, security_groups=groups, queue_url=url, public_address=self._public())

    def _part(self, kind: str, name: str, exists: Callable[[], bool], make: Callable[[], object]) -> bool:
        """Whether it is there now."""
        state = State.EXISTING if exists() else State.MISSING if self.dry_run else State.CREATED
        if state is State.CREATED:
            make()
        self.parts.append(SetupPart(kind, name, state, self.config.region if self.config.home else ""))
        return state is not State.MISSING

    def _answer(self, service: str, action: str, ask: Callable[[Any], Any]) -> Any:
        """None where it is not there."""
        with translated(f"{service}:{action}", (*_ABSENT, _NO_QUEUE)):
            return ask(self.cloud.client(service))
        return None

    # Where jobs are kept

    def _bucket(self) -> None:
        bucket, region = self.config.bucket, self.config.region

        def make() -> None:
            location = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
            with translated("s3:CreateBucket"):
                self.cloud.client("s3").create_bucket(Bucket=bucket, **location)
            with translated("s3:PutBucketPublicAccessBlock"):
                self.cloud.client("s3").put_public_access_block(
                    Bucket=bucket, PublicAccessBlockConfiguration=dict.fromkeys(CLOSED, True)
                )
            with translated("s3:PutBucketPolicy"):
                policy = json.dumps(policies.bucket(self.names))
                self.cloud.client("s3").put_bucket_policy(Bucket=bucket, Policy=policy)

        self._part("bucket", bucket, self._has_bucket, make)
        if self.parts[-1].state is State.EXISTING:
            self.warnings += self._gaps()

    def _has_bucket(self) -> bool:
        """Names of buckets are everybody's: in one of somebody else, they would read our code and change it."""
        bucket, account = self.config.bucket, self.names.account
        try:
            answer = self._answer("s3", "ListBucket", lambda s3: s3.head_bucket(Bucket=bucket, ExpectedBucketOwner=account))
        except NotAllowed as error:
            raise NotAllowed(
                f"The bucket {bucket} exists, and belongs to another account than {account}, or you may not list it.",
                remedy="Name another bucket with --keep; names of buckets are shared by all accounts.",
            ) from error
        return answer is not None

    def _gaps(self) -> list[str]:
        """What a bucket that was there lacks of those that are made here; whoever may not look hears nothing."""
        bucket, gaps = self.config.bucket, []
        with suppress(NotAllowed):
            answer = self._answer("s3", "GetBucketPublicAccessBlock", lambda s3: s3.get_public_access_block(Bucket=bucket))
            if not all((answer or {}).get("PublicAccessBlockConfiguration", {}).get(one) for one in CLOSED):
                gaps.append(f"The bucket {bucket} is not closed to the public: set all four of its public access blocks.")
        with suppress(NotAllowed):
            answer = self._answer("s3", "GetBucketPolicy", lambda s3: s3.get_bucket_policy(Bucket=bucket))
            if not policies.needs_tls(json.loads(answer["Policy"]) if answer else {}):
                gaps.append(
                    f"The bucket {bucket} takes requests without TLS: add a Deny for aws:SecureTransport false to its policy."
                )
        return gaps

    # What machines may do

    def _role(self, name: str) -> bool:
        return self._answer("iam", "GetRole", lambda iam: iam.get_role(RoleName=name)) is not None

    def _service(self, service: str) -> None:
        """AWS's own services start machines by roles of their own, one for each in an account."""

        def exists() -> bool:
            path = f"/aws-service-role/{service}/"
            answer = self._answer("iam", "ListRoles", lambda iam: iam.list_roles(PathPrefix=path))
            return bool(answer and answer["Roles"])

        def make() -> None:
            with translated("iam:CreateServiceLinkedRole"):
                self.cloud.client("iam").create_service_linked_role(AWSServiceName=service)

        self._part("service role", service, exists, make)

    def _machine_role(self) -> str:
        name, wanted = self.name, policies.machine(self.names)

        def make_role() -> None:
            trust = json.dumps(policies.trust("ec2.amazonaws.com"))
            with translated("iam:CreateRole"):
                self.cloud.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=trust, Tags=self._tags())

        def has_policy() -> bool:
            told = self._answer("iam", "GetRolePolicy", lambda iam: iam.get_role_policy(RoleName=name, PolicyName=name))
            return told is not None and bool(told["PolicyDocument"] == wanted)

        def make_policy() -> None:
            with translated("iam:PutRolePolicy"):
                self.cloud.client("iam").put_role_policy(RoleName=name, PolicyName=name, PolicyDocument=json.dumps(wanted))

        def profile() -> Any:
            told = self._answer("iam", "GetInstanceProfile", lambda iam: iam.get_instance_profile(InstanceProfileName=name))
            return told and told["InstanceProfile"]

        def make_profile() -> None:
            existing = profile()
            if existing is None:
                with translated("iam:CreateInstanceProfile"):
                    self.cloud.client("iam").create_instance_profile(InstanceProfileName=name, Tags=self._tags())
            with translated("iam:AddRoleToInstanceProfile"):
                self.cloud.client("iam").add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)

        self._part("role", name, lambda: self._role(name), make_role)
        self._part("policy of the role", name, has_policy, make_policy)
        ready = self._part("instance profile", name, lambda: bool((profile() or {}).get("Roles")), make_profile)
        return name if ready else ""

    # Where machines are in the network

    def _group(self) -> tuple[str, ...]:
        ec2, network = self.cloud.client("ec2"), self._network()
        filters = [{"Name": "group-name", "Values": [self.name]}, {"Name": "vpc-id", "Values": [network]}]

        def groups() -> list[Any]:
            with translated("ec2:DescribeSecurityGroups"):
                groups: list[Any] = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
            return groups

        def make() -> None:
            tags = [{"ResourceType": "security-group", "Tags": self._tags()}]
            description = "Machines of chipwise: nothing comes in but from each other"
            with translated("ec2:CreateSecurityGroup"):
                group = groups() or [
                    ec2.create_security_group(
                        GroupName=self.name, Description=description, VpcId=network, TagSpecifications=tags
                    )
                ]
            rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group[0]["GroupId"]}]}
            with translated("ec2:AuthorizeSecurityGroupIngress", ("InvalidPermission.Duplicate",)):
                ec2.authorize_security_group_ingress(GroupId=group[0]["GroupId"], IpPermissions=[rule])

        self._part("security group", self.name, lambda: any(one.get("IpPermissions") for one in groups()), make)
        return tuple(one["GroupId"] for one in groups())

    def _network(self) -> str:
        ec2, subnets = self.cloud.client("ec2"), list(self.config.subnets)
        with translated("ec2:DescribeSubnets"):
            query: Any = {"SubnetIds": subnets} if subnets else {"Filters": [{"Name": "default-for-az", "Values": ["true"]}]}
            networks = {one["VpcId"] for one in ec2.describe_subnets(**query)["Subnets"]}
        if len(networks) != 1:
            message = (
                f"The subnets are in {len(networks)} networks." if subnets else f"{self.config.region} has no default network."
            )
            raise NotFound(message, remedy="Set the engine's subnets: those of one network.")
        return str(networks.pop())

    def _public(self) -> bool:
        """In the default network only a public address leads to S3, unless somebody made a NAT gateway in it. Of subnets that
        were named, whoever named them knows."""
        if self.config.public_address or self.config.subnets:
            return self.config.public_address
        ec2 = self.cloud.client("ec2")
        with translated("ec2:DescribeSubnets"):
            filters = [{"Name": "default-for-az", "Values": ["true"]}]
            networks = sorted({one["VpcId"] for one in ec2.describe_subnets(Filters=filters)["Subnets"]})
        tables: list[Any] = []
        with suppress(NotAllowed), translated("ec2:DescribeRouteTables"):  # who may not look knows of none
            tables = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": networks}])["RouteTables"]
        return bool(networks) and not any(way.get("NatGatewayId") for one in tables for way in one["Routes"])

    # What is about to happen to machines

    def _queue(self) -> str:
        name, wanted = self.name, json.dumps(policies.queue(self.names, self.name))
        sqs, events = self.cloud.client("sqs"), self.cloud.client("events")

        def url() -> str:
            told = self._answer("sqs", "GetQueueUrl", lambda sqs: sqs.get_queue_url(QueueName=name))
            return told["QueueUrl"] if told else ""

        def make_queue() -> None:
            attributes = {"Policy": wanted, "MessageRetentionPeriod": "3600", "SqsManagedSseEnabled": "true"}
            with translated("sqs:CreateQueue"):
                sqs.create_queue(QueueName=name, Attributes=attributes, tags={one["Key"]: one["Value"] for one in self._tags()})

        def has_rule() -> bool:
            answer = self._answer("events", "DescribeRule", lambda events: events.describe_rule(Name=name))
            if answer is None or answer.get("State") != "ENABLED" or json.loads(answer["EventPattern"]) != PATTERN:
                return False
            targets = self._answer("events", "ListTargetsByRule", lambda events: events.list_targets_by_rule(Rule=name))
            return any(one["Arn"] == self.names.arn("sqs", name) for one in (targets or {}).get("Targets", ()))

        def make_rule() -> None:
            with translated("events:PutRule"):
                events.put_rule(Name=name, EventPattern=json.dumps(PATTERN), State="ENABLED", Tags=self._tags())
            with translated("events:PutTargets"):
                events.put_targets(Rule=name, Targets=[{"Id": "queue", "Arn": self.names.arn("sqs", name)}])

        self._part("queue", name, lambda: bool(url()), make_queue)
        self._part("rule", name, has_rule, make_rule)
        return url()

    def _tags(self) -> list[dict[str, str]]:
        return [{"Key": PLACE, "Value": self.config.place}]
