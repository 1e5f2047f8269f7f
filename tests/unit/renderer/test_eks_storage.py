"""On EKS a workload may reach its buckets, and its volumes are of classes that exist or are written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.cluster.work import work
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.named_targets import files, target
from fixed_deployments import CASES

TRAIN, SERVE, BATCH, AZURE = CASES["train"], CASES["serve"], CASES["batch"], CASES["azure"]
DISKS = replace(SERVE, volumes=tuple(replace(one, shared=False) for one in SERVE.volumes))


def texts(name: str, planned: Deployment) -> dict[str, str]:
    return {file.path: file.text for file in files(name, target(name), planned)}


def objects(name: str, planned: Deployment) -> list[dict[str, Any]]:
    return [one for text in texts(name, planned).values() for one in yaml.safe_load_all(text)]


def test_eksctl_gives_the_service_account_its_buckets() -> None:
    [config] = objects("eksctl", TRAIN)
    [association] = config["iam"]["podIdentityAssociations"]
    assert (association["namespace"], association["serviceAccountName"]) == (TRAIN.name, TRAIN.name)
    resources = [one["Resource"] for one in association["permissionPolicy"]["Statement"]]
    assert resources == [["arn:aws:s3:::legal-text"], ["arn:aws:s3:::legal-text/tokens/*"]]
    actions = [action for one in association["permissionPolicy"]["Statement"] for action in one["Action"]]
    assert actions == ["s3:ListBucket", "s3:GetObject"], "data is read and not written"
    assert "podIdentityAssociations" not in objects("eksctl", SERVE)[0]["iam"]


def test_checkpoints_in_a_bucket_are_written() -> None:
    kept = replace(TRAIN.volumes[2], url="s3://legal-runs/checkpoints")
    [config] = objects("eksctl", replace(TRAIN, volumes=(kept,)))
    [association] = config["iam"]["podIdentityAssociations"]
    assert "s3:PutObject" in association["permissionPolicy"]["Statement"][1]["Action"]


def test_terraform_gives_it_too() -> None:
    text = texts("terraform", TRAIN)["eks/main.tf"]
    assert 'resource "aws_eks_pod_identity_association" "program"' in text
    assert "arn:aws:s3:::legal-text/tokens/*" in text
    assert "pods.eks.amazonaws.com" in text


def test_the_service_account_says_what_gives_it_its_rights() -> None:
    assert "create-pod-identity-association" in texts("kubernetes", TRAIN)["namespace.yaml"]
    assert "create-pod-identity-association" not in texts("kubernetes", SERVE)["namespace.yaml"]


@pytest.mark.parametrize("name", ["kubernetes", "kueue", "ray"])
@pytest.mark.parametrize("planned", [SERVE, DISKS], ids=["shared", "disks"])
def test_every_claim_names_a_class_that_the_files_write(name: str, planned: Deployment) -> None:
    every = objects(name, planned)
    classes = {one["metadata"]["name"] for one in every if one["kind"] == "StorageClass"}
    claims = [one for one in every if one["kind"] == "PersistentVolumeClaim"]
    assert claims
    assert {one["spec"]["storageClassName"] for one in claims} == classes


@pytest.mark.parametrize(("planned", "name"), [(BATCH, "standard-rwx"), (AZURE, "azurefile-csi-premium")])
def test_other_clouds_have_classes_of_their_own(planned: Deployment, name: str) -> None:
    every = objects("kubernetes", planned)
    assert {one["spec"]["storageClassName"] for one in every if one["kind"] == "PersistentVolumeClaim"} == {name}
    assert not any(one["kind"] == "StorageClass" for one in every)


def test_the_engine_leaves_the_class_to_the_cluster() -> None:
    claims = [one for one in work(replace(SERVE, starts="", stops="")) if one["kind"] == "PersistentVolumeClaim"]
    assert claims
    assert all("storageClassName" not in dict(one)["spec"] for one in claims)  # type: ignore[operator]
