"""What a controller and a machine may do in the account, as IAM policies: each action that is asked for, and no other.

`docs/running/ec2-policy.json` and `ec2-machine-policy.json` are these with placeholders; `setup` puts the real names in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from chipwise.renderer.bucket_rights import refused_without_tls
from chipwise.renderer.quoting import tag_value

from . import NAME
from .kept import ORDERS

Policy = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AccountNames:
    """Of an account, as far as its policies name them."""

    partition: str = "aws"
    account: str = "ACCOUNT"
    region: str = "REGION"
    bucket: str = "BUCKET"
    prefix: str = "PREFIX/"  # with a slash at its end, or empty
    role: str = "MACHINE_ROLE"
    queue: str = "QUEUE"
    other_regions: tuple[tuple[str, str], ...] = ()  # further regions, each with its queue

    def arn(self, service: str, rest: str, *, region: bool = True, account: bool = True) -> str:
        return f"arn:{self.partition}:{service}:{self.region if region else ''}:{self.account if account else ''}:{rest}"

    def regional_arns(self, service: str, rest: str, *, account: bool = True) -> str | list[str]:
        """The same name in every region."""
        return _alone([one.arn(service, rest, account=account) for one in self._by_region()])

    @property
    def place(self) -> str:
        """As it stands in tags, exactly: another prefix of the bucket is another place."""
        return tag_value(f"{NAME}:{self.region}:{self.bucket}/{self.prefix}".rstrip("/"))

    @property
    def queues(self) -> str | list[str]:
        return _alone([one.arn("sqs", one.queue) for one in self._by_region()])

    def _by_region(self) -> list[AccountNames]:
        return [self, *(replace(self, region=region, queue=queue, other_regions=()) for region, queue in self.other_regions)]


def _alone(names: list[str]) -> str | list[str]:
    return names if len(names) > 1 else names[0]


def partition_of(region: str) -> str:
    return {"cn": "aws-cn", "us-gov": "aws-us-gov"}.get(region.rpartition("-")[0].rpartition("-")[0], "aws")


def controller(names: AccountNames) -> Policy:
    """Machines and templates can be ended only where they carry our tag, and templates made only with it: fleets take all their
    tags from those."""
    tag = {"aws:RequestTag/chipwise:place": names.place}
    own, marked = {"StringEquals": {"aws:ResourceTag/chipwise:place": names.place}}, {"StringEquals": tag}
    created = {"StringEquals": {"ec2:CreateAction": ["CreateLaunchTemplate", "CreateFleet", "RunInstances"], **tag}}
    role = names.arn("iam", f"role/{names.role}", region=False)
    return _policy(
        _may("Look", "*", "ec2:DescribeInstances", "ec2:DescribeImages", "ec2:DescribeSubnets", "ec2:DescribeLaunchTemplates"),
        _may("Start", "*", "ec2:CreateFleet", "ec2:RunInstances"),
        _may("Template", names.regional_arns("ec2", "launch-template/*"), "ec2:CreateLaunchTemplate", Condition=marked),
        _may("Tag", "*", "ec2:CreateTags", Condition=created),
        _may("End", "*", "ec2:TerminateInstances", "ec2:DeleteLaunchTemplate", Condition=own),
        _may("Role", role, "iam:PassRole", Condition={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}),
        _may("Image", names.regional_arns("ssm", "parameter/aws/service/*", account=False), "ssm:GetParameter"),
        *_storage(names),
        _may("Events", names.queues, "sqs:ReceiveMessage", "sqs:DeleteMessage"),
    )


def machine(names: AccountNames) -> Policy:
    """Of the jobs, too: what runs on a machine has its rights. Secrets are those whose names begin with chipwise. What the
    controller orders, and the code of jobs, machines only read; what they told they do not take back."""
    orders = [f"live/*/*/{mark}" for mark in ORDERS]
    secrets = [
        names.arn("secretsmanager", "secret:chipwise/*"),
        names.arn("ssm", "parameter/chipwise/*"),
    ]
    return _policy(
        *_storage(names),
        _never("Orders", _objects(names, "code/*", "controller", "over/*", *orders), "s3:PutObject", "s3:DeleteObject"),
        _never("Told", _objects(names, "live/*", "logs/*"), "s3:DeleteObject"),
        _may("Secrets", secrets, "secretsmanager:GetSecretValue", "ssm:GetParameter"),
        _may("Registry", "*", "ecr:GetAuthorizationToken"),
        _may(
            "Images",
            names.arn("ecr", "repository/*"),
            "ecr:BatchCheckLayerAvailability",
            "ecr:BatchGetImage",
            "ecr:GetDownloadUrlForLayer",
        ),
    )


def trust(service: str) -> Policy:
    """Who may take a role."""
    return _policy({"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"})


def queue(names: AccountNames, rule: str) -> Policy:
    """Only this rule of EventBridge may send to the queue."""
    from_rule = {"ArnEquals": {"aws:SourceArn": names.arn("events", f"rule/{rule}")}}
    sent = _may("Events", names.arn("sqs", names.queue), "sqs:SendMessage", Condition=from_rule)
    return _policy({**sent, "Principal": {"Service": "events.amazonaws.com"}})


def bucket(names: AccountNames) -> Policy:
    """Of the bucket itself: nobody, whatever their rights, reaches it without TLS."""
    name = f"arn:{names.partition}:s3:::{names.bucket}"
    return _policy(refused_without_tls([name, f"{name}/*"]))


def needs_tls(policy: Policy) -> bool:
    """Whether a bucket's policy refuses requests without it."""
    statements = policy.get("Statement", [])
    return any(
        statement.get("Effect") == "Deny"
        and str(statement.get("Condition", {}).get("Bool", {}).get("aws:SecureTransport")).lower() == "false"
        for statement in (statements if isinstance(statements, list) else [statements])
    )


def _storage(names: AccountNames) -> list[Policy]:
    """Only while the bucket is the account's own: were it deleted, anybody could make another by its name."""
    [objects], bucket = _objects(names, "*"), f"arn:{names.partition}:s3:::{names.bucket}"
    own = {"StringEquals": {"aws:ResourceAccount": names.account}}
    return [
        _may("Kept", objects, "s3:GetObject", "s3:PutObject", "s3:DeleteObject", Condition=own),
        _may("List", bucket, "s3:ListBucket", Condition={"StringLike": {"s3:prefix": f"{names.prefix}*"}, **own}),
    ]


def _objects(names: AccountNames, *keys: str) -> list[str]:
    return [f"arn:{names.partition}:s3:::{names.bucket}/{names.prefix}{key}" for key in keys]


def _never(name: str, resources: list[str], *actions: str) -> Policy:
    return {"Sid": name, "Effect": "Deny", "Action": list(actions), "Resource": resources}


def _may(name: str, resource: str | list[str], *actions: str, **more: Any) -> Policy:
    return {"Sid": name, "Effect": "Allow", "Action": list(actions), "Resource": resource, **more}


def _policy(*statements: Policy) -> Policy:
    return {"Version": "2012-10-17", "Statement": list(statements)}
