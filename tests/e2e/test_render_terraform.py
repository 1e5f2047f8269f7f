"""Terraform itself: it lays out, validates, applies and destroys what the target writes.

AWS is a moto server with a stand-in before EC2, SSM and EKS for what moto lacks (placement groups, public image parameters,
pod identities). The providers of Google Cloud and Azure come from Terraform's registry alone; what is written for them is
checked against the argument lists of packages that are made from their schemas. What moto cannot do is not asked of it:
budgets (it does not list their subscribers), and that a second plan shows no difference.
"""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

import aws_stand_in
import provider_schema
import terraform_tool
from aws_stand_in import Aws
from chipwise.renderer.targets.terraform import render
from chipwise.renderer.terraform.hcl import Block, Raw, document, output
from deployments import deployment
from fixed_deployments import CASES
from hcl_reading import dangling, modules
from terraform_tool import Missing, Tool, applied, subnets

pytestmark = pytest.mark.e2e
# All but pipelines, which are rendered by stage.
EXAMPLES = ("batch", "finetune", "hpc", "hybrid", "interactive", "render", "serve", "stream", "train", "transcode")
FITTING = ("train", "serve", "neuron", "tpu", "azure", "batch", "hpc", "notebooks")
HOSTILE = [
    'a"b',
    "C:\\bin",
    "a\nb\r\t",
    '${file("/etc/hostname")}',
    "$${x}",
    "%{ if true }x",
    "$(id)",
    "é😀\u2028",
    "\b\f",
    "x" * 10_000,
]


def tool(folder: Path) -> Tool:
    try:
        return terraform_tool.tool(folder)
    except Missing as what:
        pytest.skip(str(what))


@pytest.fixture(scope="module")
def aws() -> Iterator[Aws]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
        with aws_stand_in.started() as running:
            yield running


@pytest.mark.parametrize("case", FITTING)
def test_terraform_would_lay_it_out_the_same(case: str, tmp_path: Path) -> None:
    try:
        program = terraform_tool.terraform()
    except Missing as what:
        pytest.skip(str(what))
    terraform_tool.write(tmp_path, render(CASES[case]))
    said = subprocess.run(
        [program, "fmt", "-check", "-diff", "-recursive"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout) == (0, "")


def test_terraform_reads_hostile_text_as_text(tmp_path: Path) -> None:
    """All but its own normal form of unicode (NFC)."""
    try:
        program = terraform_tool.terraform()
    except Missing as what:
        pytest.skip(str(what))
    values = {f"t{number}": text for number, text in enumerate(HOSTILE)}
    (tmp_path / "main.tf").write_text(document([Block("locals", (), values), output("all", values, "x")]), encoding="utf-8")
    for words in (("init",), ("apply", "-auto-approve")):
        subprocess.run([program, *words, "-no-color"], cwd=tmp_path, capture_output=True, check=True)
    said = subprocess.run([program, "output", "-json", "all"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == {key: unicodedata.normalize("NFC", text) for key, text in values.items()}


def test_the_aws_provider_finds_every_example_valid(tmp_path: Path) -> None:
    """All as modules of one configuration, since reading the provider's schema takes most of the time; what is wrong names its
    module. Variables that a user must set are unknown, as they are when one is validated alone."""
    calls: list[Block] = []
    for example in EXAMPLES:
        files = render(deployment(example, "clouds=[aws]"))
        terraform_tool.write(tmp_path / example, files)
        for folder, found in modules(files).items():
            assert any(one.labels == ("aws",) for one in found if one.kind == "provider")
            required = [one.labels[0] for one in found if one.kind == "variable" and "default" not in one.body]
            source = f"./{example}/{folder}".rstrip("/")
            name = f"{example}_{folder}".rstrip("_").replace("/", "_").replace("-", "_")
            calls += [Block("variable", (f"{name}_{one}",), {"type": Raw("any")}) for one in required]
            given = {one: Raw(f"var.{name}_{one}") for one in required}
            calls.append(Block("module", (name,), {"source": source, **given}))
    (tmp_path / "main.tf").write_text(document(calls), encoding="utf-8")
    terraform = tool(tmp_path)
    terraform.run("init", "-no-color")
    terraform.run("validate", "-no-color")


def _image(case: str) -> dict[str, str]:
    return {"image": "registry.example/team/program:1"} if CASES[case].software.built else {}


def test_a_spot_job_over_two_machines_is_made_and_goes_away(aws: Aws, tmp_path: Path) -> None:
    region = CASES["train"].node.region
    ec2, groups = aws.client("ec2", region), aws.client("autoscaling", region)
    one = applied(aws, CASES["train"], tmp_path, {"subnet_ids": subnets(aws, region)[:1], **_image("train")})

    found = groups.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert sorted(group["AutoScalingGroupName"] for group in found) == ["llama-8b-legal-0", "llama-8b-legal-1"]
    mix = found[0]["MixedInstancesPolicy"]
    assert mix["InstancesDistribution"]["OnDemandPercentageAboveBaseCapacity"] == 0
    assert mix["InstancesDistribution"]["SpotAllocationStrategy"] == "price-capacity-optimized"
    ranks = {tag["Value"] for group in found for tag in group["Tags"] if tag["Key"] == "chipwise-first-rank"}
    assert ranks == {"0", "1"}

    (template,) = ec2.describe_launch_template_versions(Versions=["$Latest"])["LaunchTemplateVersions"]
    data = template["LaunchTemplateData"]
    assert data["MetadataOptions"]["HttpTokens"] == "required"
    assert data["BlockDeviceMappings"][0]["Ebs"]["Encrypted"] is True
    assert len(data["NetworkInterfaces"]) == 32
    assert data["ImageId"] == aws.image, "through the public parameter"
    script = gzip.decompress(base64.b64decode(data["UserData"])).decode()
    assert script.startswith("#!/bin/bash\n")
    assert "IMAGE='registry.example/team/program:1'" in script
    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False).stderr == ""

    (guard,) = (one for one in ec2.describe_security_groups()["SecurityGroups"] if one["GroupName"].startswith("llama"))
    assert [rule.get("IpRanges") for rule in guard["IpPermissions"]] == [[]], "nobody from outside"
    assert aws.placement_groups == {"llama-8b-legal"}

    one.run("destroy", "-no-color", "-auto-approve")
    assert groups.describe_auto_scaling_groups()["AutoScalingGroups"] == []
    assert aws.placement_groups == set()


def test_a_service_is_made_with_its_hours(aws: Aws, tmp_path: Path) -> None:
    region = CASES["serve"].node.region
    applied(aws, CASES["serve"], tmp_path, {"subnet_ids": subnets(aws, region), **_image("serve")})
    groups = aws.client("autoscaling", region)
    (group,) = groups.describe_auto_scaling_groups()["AutoScalingGroups"]
    assert (group["MinSize"], group["DesiredCapacity"], group["MaxSize"]) == (2, 2, 13)
    assert len(group["Instances"]) == 2
    hours = {
        one["ScheduledActionName"]: one["Recurrence"]
        for one in groups.describe_scheduled_actions()["ScheduledUpdateGroupActions"]
    }
    assert hours == {"starts": "0 7 * * 1,2,3,4,5,6", "stops": "0 22 * * 1,2,3,4,5,6"}


def test_machines_on_demand_are_made_by_number(aws: Aws, tmp_path: Path) -> None:
    region = CASES["hpc"].node.region
    applied(aws, CASES["hpc"], tmp_path, {"subnet_ids": subnets(aws, region), **_image("hpc")})
    reservations = aws.client("ec2", region).describe_instances()["Reservations"]
    tags = [{tag["Key"]: tag["Value"] for tag in one["Tags"]} for each in reservations for one in each["Instances"]]
    assert sorted(one["chipwise-first-rank"] for one in tags) == ["0", "1", "2", "3"]
    assert {one["team"] for one in tags} == {"aerodynamics"}


def test_a_node_group_joins_its_cluster(aws: Aws, tmp_path: Path) -> None:
    region = CASES["train"].node.region
    eks, places = aws.client("eks", region), subnets(aws, region)
    role = f"arn:aws:iam::{terraform_tool.ACCOUNT}:role/cluster"
    eks.create_cluster(name="main", roleArn=role, resourcesVpcConfig={"subnetIds": places})
    applied(aws, CASES["train"], tmp_path, {"subnet_ids": places[:1], "cluster_name": "main"}, "eks")
    (name,) = eks.list_nodegroups(clusterName="main")["nodegroups"]
    group = eks.describe_nodegroup(clusterName="main", nodegroupName=name)["nodegroup"]
    assert group["capacityType"] == "SPOT"
    assert group["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]
    assert group["instanceTypes"] == ["p5.48xlarge"]
    (association,) = aws.pod_identities.values()
    assert association["clusterName"] == "main", "the program reaches its bucket"


@pytest.mark.parametrize("cloud", ["gcp", "azure"])
@pytest.mark.parametrize("example", ["train", "serve", "batch", "hpc", "transcode", "render", "interactive"])
def test_google_and_azure_know_every_argument(cloud: str, example: str) -> None:
    found = modules(render(deployment(example, f"clouds=[{cloud}]")))
    told = []
    for blocks in found.values():
        assert dangling(blocks) == set()
        for one in blocks:
            provider = one.labels[0].partition("_")[0] if one.labels else ""
            if one.kind in ("resource", "data") and provider in ("google", "azurerm"):
                try:
                    told += provider_schema.complaints(provider, one.kind, one.labels, one.body)
                except Missing as what:
                    pytest.skip(str(what))
    assert told == []


def test_a_wrong_argument_is_seen() -> None:
    try:
        told = provider_schema.complaints("google", "resource", ("google_container_node_pool", "x"), {"nod_config": "1"})
    except Missing as what:
        pytest.skip(str(what))
    assert told == [
        "google_container_node_pool.x: nod_config is not an argument",
        "google_container_node_pool.x: cluster is needed",
    ]
