"""What machines on AWS may do and who may reach them: security group, role, bucket, logs, budget."""

from __future__ import annotations

from chipwise.renderer.aws.tags import OWNER_TAG
from chipwise.renderer.bucket_rights import listed, literal, refused_without_tls
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.terraform.hcl import Block, Nested, Raw, Value, data, resource, text_of
from chipwise.renderer.terraform.shape import bucket_volumes, grouped, kept_words, place, ports, saved, together
from chipwise.renderer.yaml_text import Noted

LOG_DAYS = 30
OLD_DAYS = 14  # that replaced checkpoints are kept


def network(deployment: Deployment) -> list[Block]:
    blocks = [
        data("aws_subnet", "first", {"id": Raw("var.subnet_ids[0]")}),
        resource(
            "aws_security_group",
            "machines",
            {
                "name_prefix": text_of(Raw("local.name"), "-"),
                "description": text_of("Machines of ", Raw("local.name")),
                "vpc_id": Raw("data.aws_subnet.first.vpc_id"),
                "lifecycle": Nested({"create_before_destroy": True}),
            },
        ),
        resource(
            "aws_vpc_security_group_egress_rule",
            "https",
            {
                "security_group_id": Raw("aws_security_group.machines.id"),
                "description": "Images, weights and AWS itself",
                "cidr_ipv4": "0.0.0.0/0",
                "ip_protocol": "tcp",
                "from_port": 443,
                "to_port": 443,
            },
        ),
    ]
    if together(deployment):
        rule = {
            "security_group_id": Raw("aws_security_group.machines.id"),
            "description": "Among the machines",
            "referenced_security_group_id": Raw("aws_security_group.machines.id"),
            "ip_protocol": "-1",
        }
        reason = "EFA needs every protocol among the machines, both ways; nobody else gets in."
        blocks.append(resource("aws_vpc_security_group_ingress_rule", "each_other", rule, reason))
        blocks.append(resource("aws_vpc_security_group_egress_rule", "each_other", rule))
    span = ports(deployment)
    if span is not None:
        blocks.append(
            resource(
                "aws_vpc_security_group_ingress_rule",
                "clients",
                {
                    "for_each": Raw("toset(var.client_security_group_ids)"),
                    "security_group_id": Raw("aws_security_group.machines.id"),
                    "description": "Clients",
                    "referenced_security_group_id": Raw("each.value"),
                    "ip_protocol": "tcp",
                    "from_port": span[0],
                    "to_port": span[1],
                },
                "Put a balancer with TLS and sign-in before it, and name its group; no address range is let in.",
            )
        )
    return blocks


def machine_role(name: str) -> list[Block]:
    """A role that machines take."""
    return [
        data(
            "aws_iam_policy_document",
            "assume",
            {
                "statement": Nested(
                    {
                        "actions": ["sts:AssumeRole"],
                        "principals": Nested({"type": "Service", "identifiers": ["ec2.amazonaws.com"]}),
                    }
                )
            },
        ),
        resource(
            "aws_iam_role",
            name,
            {
                "name_prefix": text_of(Raw("substr(local.name, 0, 30)"), "-"),
                "assume_role_policy": Raw("data.aws_iam_policy_document.assume.json"),
            },
        ),
    ]


def access(deployment: Deployment) -> list[Block]:
    return [
        data("aws_partition", "current", {}),
        data("aws_caller_identity", "current", {}),
        *machine_role("machines"),
        resource(
            "aws_iam_instance_profile",
            "machines",
            {
                "name_prefix": text_of(Raw("substr(local.name, 0, 30)"), "-"),
                "role": Raw("aws_iam_role.machines.name"),
            },
        ),
        data("aws_iam_policy_document", "machines", {"statement": _statements(deployment)}),
        resource(
            "aws_iam_role_policy",
            "machines",
            {
                "name": "work",
                "role": Raw("aws_iam_role.machines.id"),
                "policy": Raw("data.aws_iam_policy_document.machines.json"),
            },
        ),
        resource(
            "aws_iam_role_policy_attachment",
            "sessions",
            {
                "count": Raw("var.session_manager ? 1 : 0"),
                "role": Raw("aws_iam_role.machines.name"),
                "policy_arn": text_of(
                    "arn:", Raw("data.aws_partition.current.partition"), ":iam::aws:policy/AmazonSSMManagedInstanceCore"
                ),
            },
        ),
        resource(
            "aws_cloudwatch_log_group",
            "this",
            {
                "name": text_of("/chipwise/", Raw("local.name")),
                "retention_in_days": LOG_DAYS,
            },
            "The output of the program outlives its machine.",
        ),
    ]


def _statements(deployment: Deployment) -> list[Value]:
    arn = Raw("data.aws_partition.current.partition")
    account = (Raw("var.region"), ":", Raw("data.aws_caller_identity.current.account_id"))
    statements: list[Value] = [
        Nested(
            {
                "sid": "Logs",
                "actions": ["logs:CreateLogStream", "logs:PutLogEvents"],
                "resources": [text_of(Raw("aws_cloudwatch_log_group.this.arn"), ":*")],
            }
        )
    ]
    reads, written = _buckets(deployment)
    for number, (bucket, prefix) in enumerate(reads):
        statements += _bucket(f"Read{number}", text_of("arn:", arn, f":s3:::{bucket}"), prefix, ["s3:GetObject"])
    for number, (bucket, prefix) in enumerate(written):
        statements += _bucket(
            f"Write{number}", text_of("arn:", arn, f":s3:::{bucket}"), prefix, ["s3:GetObject", "s3:PutObject"]
        )
    if bucket_volumes(deployment):
        statements += _bucket("Work", Raw("aws_s3_bucket.work.arn"), "", ["s3:GetObject", "s3:PutObject"])
    if deployment.software.secrets:
        names = sorted({name for _, name, _ in deployment.software.secrets})
        statements.append(
            Nested(
                {
                    "sid": "Secrets",
                    "actions": ["secretsmanager:GetSecretValue"],
                    "resources": [
                        text_of("arn:", arn, ":secretsmanager:", *account, f":secret:{literal(name)}-??????") for name in names
                    ],
                }
            )
        )
    statements.append(
        Noted(
            Nested({"sid": "SignIn", "actions": ["ecr:GetAuthorizationToken"], "resources": ["*"]}),
            "For an image in ECR. This call knows no narrower resource.",
        )
    )
    statements.append(
        Nested(
            {
                "sid": "Pull",
                "actions": ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
                "resources": [text_of("arn:", arn, ":ecr:", *account, ":repository/*")],
            }
        )
    )
    if together(deployment):
        statements.append(
            Noted(
                Nested({"sid": "Meet", "actions": ["ec2:DescribeInstances"], "resources": ["*"]}),
                "To find machine 0. This call knows no narrower resource.",
            )
        )
    if deployment.form is Form.JOB and grouped(deployment):
        statements.append(
            Nested(
                {
                    "sid": "Leave",
                    "actions": ["autoscaling:TerminateInstanceInAutoScalingGroup"],
                    "resources": [
                        text_of(
                            "arn:",
                            arn,
                            ":autoscaling:",
                            *account,
                            ":autoScalingGroup:*:autoScalingGroupName/",
                            Raw("local.name"),
                            "*",
                        )
                    ],
                    "condition": Nested(
                        {
                            "test": "StringEquals",
                            "variable": f"aws:ResourceTag/{OWNER_TAG}",
                            "values": [Raw("local.name")],
                        }
                    ),
                }
            )
        )
    return statements


def _bucket(name: str, arn: Raw, prefix: str, actions: list[str]) -> list[Value]:
    inner = arn.text.strip('"') if arn.text.startswith('"') else f"${{{arn.text}}}"
    objects = Raw(f'"{inner}{text_of("/" + (listed(prefix) if prefix else "*")).text[1:-1]}"')
    listing: dict[str, Value] = {"sid": f"{name}List", "actions": ["s3:ListBucket"], "resources": [arn]}
    if prefix:
        listing["condition"] = Nested({"test": "StringLike", "variable": "s3:prefix", "values": [listed(prefix)]})
    return [Nested(listing), Nested({"sid": name, "actions": actions, "resources": [objects]})]


def _buckets(deployment: Deployment) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(read, written): bucket and prefix of what the workload names."""
    sent = {one.name for one in saved(deployment)}
    reads: list[tuple[str, str]] = []
    written: list[tuple[str, str]] = []
    for volume in deployment.volumes:
        location = place(volume.url, "s3")
        if location is not None:
            (written if volume.name in sent else reads).append((location.bucket, location.prefix))
    return reads, written


def storage(deployment: Deployment) -> list[Block]:
    return [*(_work(deployment) if bucket_volumes(deployment) else []), _budget(deployment)]


def _work(deployment: Deployment) -> list[Block]:
    bucket = Raw("aws_s3_bucket.work.id")
    return [
        resource(
            "aws_s3_bucket",
            "work",
            {
                "bucket_prefix": text_of(Raw("substr(local.name, 0, 36)"), "-"),
                "force_destroy": Noted(False, "A destroy stops here while there is something in it."),
            },
            kept_words(deployment),
        ),
        resource(
            "aws_s3_bucket_public_access_block",
            "work",
            {
                "bucket": bucket,
                "block_public_acls": True,
                "block_public_policy": True,
                "ignore_public_acls": True,
                "restrict_public_buckets": True,
            },
        ),
        *_only_with_tls(bucket),
        resource(
            "aws_s3_bucket_server_side_encryption_configuration",
            "work",
            {
                "bucket": bucket,
                "rule": Nested({"apply_server_side_encryption_by_default": Nested({"sse_algorithm": "AES256"})}),
            },
        ),
        resource(
            "aws_s3_bucket_versioning",
            "work",
            {
                "bucket": bucket,
                "versioning_configuration": Nested({"status": "Enabled"}),
            },
            "A broken checkpoint that was written over the last good one is not the end.",
        ),
        resource(
            "aws_s3_bucket_lifecycle_configuration",
            "work",
            {
                "bucket": bucket,
                "rule": Nested(
                    {
                        "id": "old",
                        "status": "Enabled",
                        "filter": Nested({}),
                        "noncurrent_version_expiration": Nested({"noncurrent_days": OLD_DAYS}),
                        "abort_incomplete_multipart_upload": Nested({"days_after_initiation": 3}),
                    }
                ),
                "depends_on": [Raw("aws_s3_bucket_versioning.work")],
            },
        ),
    ]


def _only_with_tls(bucket: Raw) -> list[Block]:
    arn = Raw("aws_s3_bucket.work.arn")
    refusal = refused_without_tls([])
    [(test, compared)] = refusal["Condition"].items()
    [(variable, value)] = compared.items()
    statement = {
        "sid": refusal["Sid"],
        "effect": refusal["Effect"],
        "actions": refusal["Action"],
        "resources": [arn, text_of(arn, "/*")],
        "principals": Nested({"type": refusal["Principal"], "identifiers": [refusal["Principal"]]}),
        "condition": Nested({"test": test, "variable": variable, "values": [value]}),
    }
    return [
        data("aws_iam_policy_document", "work", {"statement": Nested(statement)}),
        resource(
            "aws_s3_bucket_policy",
            "work",
            {
                "bucket": bucket,
                "policy": Raw("data.aws_iam_policy_document.work.json"),
                "depends_on": [Raw("aws_s3_bucket_public_access_block.work")],  # S3 refuses both at once
            },
            "Nobody, whatever their rights, reaches it without TLS.",
        ),
    ]


def _budget(deployment: Deployment) -> Block:
    notifications = [
        Nested(
            {
                "comparison_operator": "GREATER_THAN",
                "threshold": share,
                "threshold_type": "PERCENTAGE",
                "notification_type": kind,
                "subscriber_email_addresses": [Raw("var.budget_email")],
            }
        )
        for share, kind in ((80, "ACTUAL"), (100, "FORECASTED"))
    ]
    return resource(
        "aws_budgets_budget",
        "this",
        {
            "count": Raw('var.budget_email != "" && var.budget_usd != null ? 1 : 0'),
            "name": Raw("local.name"),
            "budget_type": "COST",
            "limit_amount": Raw("tostring(var.budget_usd)"),
            "limit_unit": "USD",
            "time_unit": "MONTHLY",
            "cost_filter": Nested(
                {
                    "name": "TagKeyValue",
                    "values": [Raw(f'format("user:{OWNER_TAG}$%s", local.name)')],
                }
            ),
            "notification": notifications,
        },
        "Counts only what carries the tag, and only once the tag is a cost allocation tag.",
    )
