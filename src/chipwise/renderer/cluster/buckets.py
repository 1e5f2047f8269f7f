"""What a workload on EKS may do with the buckets that it names: an IAM policy for its own service account (Pod Identity)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chipwise.renderer.bucket_rights import listed
from chipwise.renderer.cluster.pod import Object, namespace_of
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.yaml_text import Yaml

_S3 = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", re.DOTALL)
_WRITTEN = ("checkpoints",)  # volumes that the program writes; of others it reads


@dataclass(frozen=True, slots=True)
class BucketUse:
    bucket: str
    prefix: str
    writes: bool


def buckets(deployment: Deployment) -> tuple[BucketUse, ...]:
    """Of S3, as its volumes name them; none on other clouds."""
    if deployment.node.provider != "aws":
        return ()
    uses = []
    for volume in deployment.volumes:
        if matched := _S3.fullmatch(volume.url or ""):
            writes = volume.name in _WRITTEN or not deployment.software.is_custom
            uses.append(BucketUse(matched[1], (matched[2] or "").rstrip("/"), writes))
    return tuple(uses)


def policy(deployment: Deployment) -> Object:
    statements: list[Yaml] = []
    for use in buckets(deployment):
        arn, path = f"arn:aws:s3:::{use.bucket}", listed(use.prefix) if use.prefix else "*"
        listing: Object = {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": [arn]}
        if use.prefix:
            listing["Condition"] = {"StringLike": {"s3:prefix": [path]}}
        actions = ["s3:GetObject", *(["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"] if use.writes else [])]
        statements += [listing, {"Effect": "Allow", "Action": actions, "Resource": [f"{arn}/{path}"]}]
    return {"Version": "2012-10-17", "Statement": statements}


def association(deployment: Deployment) -> Object:
    """As eksctl takes it."""
    return {
        "namespace": namespace_of(deployment),
        "serviceAccountName": deployment.name,
        "permissionPolicy": policy(deployment),
    }


def needed(deployment: Deployment) -> str:
    """For the service account: what gives it its rights; empty where it needs none."""
    uses = buckets(deployment)
    if not uses:
        return ""
    names = ", ".join(dict.fromkeys(f"s3://{use.bucket}" for use in uses))
    return (
        f"It reaches {names} by a Pod Identity association, which --to eksctl and --to terraform (eks/) write. By hand:\n"
        f"aws eks create-pod-identity-association --cluster-name CLUSTER --namespace {namespace_of(deployment)}"
        f" --service-account {deployment.name} --role-arn ROLE"
    )
