"""AWS ParallelCluster 3: a Slurm cluster that grows to the plan's machines and shrinks to its head node, and the job for it."""

from __future__ import annotations

import re

from chipwise.renderer.deployment import Deployment, Form, Node
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.starting import run_machines
from chipwise.renderer.layout import uses_efa
from chipwise.renderer.quoting import tag_value
from chipwise.renderer.slurm.script import script
from chipwise.renderer.yaml_text import Noted, Yaml, document
from chipwise.units import GB, GIB

FITS = "jobs on AWS: a Slurm cluster with the plan's machines, EFA, spot and shared storage, and its batch script"
EXPRESSES = frozenset({"hours"})
WRITES = ("cluster.yaml",)
STARTS_MACHINES = True
Object = dict[str, Yaml]
SUBNET = "subnet-00000000000000000"
BUCKET = "your-bucket"
SHARED = "/shared"
IDLE_MIN = 10  # after which a node is given back: an instance bills by the second, and comes back in minutes
FIRST_GIB, STEP_GIB = 1200, 2400  # sizes in which FSx for Lustre is sold
_HEADS = {"amd64": "m7i.large", "arm64": "m7g.large"}  # of the nodes' processor: programs are built there


def render(deployment: Deployment) -> list[File]:
    if deployment.form is not Form.JOB:
        raise CannotRender(
            f"ParallelCluster runs jobs that end, and this is a {deployment.form}.",
            remedy="Use --to kubernetes, ecs or sagemaker for a service; --stage with a stage that is a job for a pipeline.",
        )
    if deployment.node.provider != "aws":
        raise CannotRender(
            f"The plan is on {deployment.node.provider}, and ParallelCluster runs on AWS only.",
            remedy="Plan for AWS with --cloud aws, or take --to slurm for a cluster that is there.",
        )
    config: Object = {
        "Region": deployment.node.region,
        "Image": {"Os": Noted("ubuntu2404", "Comes with Slurm, EFA, and NVIDIA's driver and CUDA.")},
        "Imds": {
            "ImdsSupport": Noted("v2.0", "Only sessions with a token: a program that is tricked cannot read the role's keys.")
        },
        "HeadNode": _head(deployment),
        "Scheduling": _scheduling(deployment),
    }
    if deployment.volumes:
        config["SharedStorage"] = [_storage(deployment)]
    config["Monitoring"] = {
        "Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": 30, "DeletionPolicy": "Delete"}},
        "Dashboards": {"CloudWatch": {"Enabled": True}},
    }
    config["Tags"] = Noted(_tags(deployment), "Who pays: activate them once as cost allocation tags.")
    name = deployment.name
    head = heading(
        deployment, f"pcluster create-cluster --cluster-name {name} --cluster-configuration cluster.yaml --dryrun true"
    )
    return [
        File(
            "cluster.yaml", document(config, title=f"{head}\nReplace the subnets and {BUCKET}, and put prepare-node.sh there.")
        ),
        File("prepare-node.sh", _prepare(deployment), executable=True),
        File("job.sbatch", script(deployment, SHARED), executable=True),
    ]


def _head(deployment: Deployment) -> Object:
    return {
        "InstanceType": Noted(_HEADS[deployment.node.arch], "Schedules and compiles; it is the only machine that always runs."),
        "Networking": {"SubnetId": Noted(SUBNET, "Yours. Private is enough: people come in through Session Manager.")},
        "Imds": {"Secured": Noted(True, "The head node's role can start machines: only root may take it.")},
        "LocalStorage": {"RootVolume": {"Size": 100, "VolumeType": "gp3", "Encrypted": True}},
        "Iam": {"AdditionalIamPolicies": [{"Policy": "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"}]},
    }


def _scheduling(deployment: Deployment) -> Object:
    node, together = deployment.node, run_machines(deployment) > 1
    kinds = (
        [node, *(other for other in deployment.alternatives if _alike(node, other, together))] if deployment.spot else [node]
    )
    resource: Object = {
        "Name": "main",
        "Instances": [{"InstanceType": one.machine} for one in kinds],
        "MinCount": Noted(0, "Nothing runs while nothing is queued."),
        "MaxCount": Noted(deployment.machines, "As many as the plan uses: a mistake cannot rent more."),
    }
    if uses_efa(deployment):
        resource["Efa"] = {"Enabled": True}
    queue: Object = {"Name": "work", "CapacityType": _capacity(deployment)}
    if len(kinds) > 1:
        queue["AllocationStrategy"] = Noted(
            "capacity-optimized", "Of the types that will do, the one least likely to be taken."
        )
    queue["ComputeResources"] = [resource]
    group: Object = {}
    if together:
        group = {"PlacementGroup": {"Enabled": Noted(True, "Machines that talk all the time stand close to each other.")}}
    queue["Networking"] = {"SubnetIds": [SUBNET], **group}
    queue["ComputeSettings"] = {"LocalStorage": {"RootVolume": {"Size": 200, "VolumeType": "gp3", "Encrypted": True}}}
    queue["CustomActions"] = {
        "OnNodeConfigured": {"Script": Noted(f"s3://{BUCKET}/prepare-node.sh", "Adds what the system image lacks; see there.")}
    }
    queue["Iam"] = {"S3Access": _buckets(deployment)}
    if node.kind == "gpu" and node.vendor == "NVIDIA":
        queue["HealthChecks"] = {"Gpu": {"Enabled": Noted(True, "A broken chip is found before the job, not by it.")}}
    return {
        "Scheduler": "slurm",
        "SlurmSettings": {
            "ScaledownIdletime": Noted(IDLE_MIN, "Minutes."),
            "QueueUpdateStrategy": Noted("DRAIN", "A change of this file waits for running jobs."),
        },
        "SlurmQueues": [queue],
    }


def _capacity(deployment: Deployment) -> Yaml:
    if deployment.spot:
        return Noted("SPOT", "The job saves and is queued again when a machine is taken.")
    if deployment.purchase.startswith("reserved"):
        return Noted("ONDEMAND", "Reservations and savings plans apply to it automatically.")
    return "ONDEMAND"


def _alike(first: Node, second: Node, together: bool) -> bool:
    """Types of one compute resource must have as many processors and chips, and EFA, or all none. Machines that work
    together are of one chip as well: all would wait for the slowest."""
    alike = (first.vcpus, first.chips, first.interfaces > 0) == (second.vcpus, second.chips, second.interfaces > 0)
    return alike and (not together or (first.chip, first.interfaces) == (second.chip, second.interfaces))


def _storage(deployment: Deployment) -> Object:
    """Lustre where many chips read at once; a file system that is paid by what it holds elsewhere."""
    size = sum(one.size_bytes for one in deployment.volumes)
    keeps = deployment.volume("checkpoints") is not None or deployment.volume("models") is not None
    policy = Noted("Retain", "Checkpoints and weights outlive the cluster: delete it by hand.") if keeps else "Delete"
    if deployment.machines == 1 or size < 50 * GB:
        return {
            "Name": "store",
            "MountDir": SHARED,
            "StorageType": "Efs",
            "EfsSettings": {"Encrypted": True, "EncryptionInTransit": True, "DeletionPolicy": policy},
        }
    settings: Object = {
        "StorageCapacity": Noted(_lustre_gib(size), f"GiB; the plan's directories need {size / GIB:,.0f}."),
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 125,
        "DataCompressionType": "LZ4",
        "DeletionPolicy": policy,
    }
    data = deployment.volume("data")
    if data is not None and data.url is not None and _bucket(data.url):
        linked: Object = {
            "Name": "data",
            "DataRepositoryPath": data.url,
            "FileSystemPath": "/data",
            "BatchImportMetaDataOnCreate": True,
            "AutoImportPolicy": ["NEW", "CHANGED", "DELETED"],
        }
        settings["DataRepositoryAssociations"] = [Noted(linked, "Files appear at once and are fetched when first read.")]
    return {"Name": "store", "MountDir": SHARED, "StorageType": "FsxLustre", "FsxLustreSettings": settings}


def _lustre_gib(size: float) -> int:
    needed = size / GIB * 1.1
    return FIRST_GIB if needed <= FIRST_GIB else int(-(-needed // STEP_GIB)) * STEP_GIB


def _bucket(url: str) -> str | None:
    found = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/[\w./=-]*)?", url, re.ASCII)
    return found[1] if found else None


def _buckets(deployment: Deployment) -> list[Yaml]:
    """Read what is given, write only where checkpoints go."""
    entries: list[Yaml] = [{"BucketName": BUCKET, "KeyName": "prepare-node.sh"}]
    for volume in deployment.volumes:
        bucket = _bucket(volume.url) if volume.url is not None else None
        if bucket is not None:
            entries.append({"BucketName": bucket, "EnableWriteAccess": volume.name == "checkpoints"})
    return entries


_TAGS = 40  # of 50 that a resource may have; ParallelCluster adds some of its own


def _tags(deployment: Deployment) -> list[Yaml]:
    pairs = {"workload": deployment.name}
    for key, value in deployment.labels.items():
        name, text = tag_value(key)[:100], tag_value(value)
        if name and text and len(pairs) < _TAGS and not name.lower().startswith(("aws:", "parallelcluster:")):
            pairs[name] = text
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def _prepare(deployment: Deployment) -> str:
    lines = [
        "#!/bin/bash",
        *(f"# {line}" for line in heading(deployment, "Run by root on each node as it joins.").splitlines()),
    ]
    lines += ["set -euo pipefail", "export DEBIAN_FRONTEND=noninteractive", ""]
    lines += [
        "# Apptainer starts the plan's container without root and without a daemon.",
        "add-apt-repository --yes ppa:apptainer/ppa",
        "apt-get update",
        "apt-get install --yes apptainer",
    ]
    if deployment.node.kind == "neuron":
        lines += [
            "",
            "# The system image has no driver for Neuron chips; compiler and runtime are in the container.",
            "install --directory --mode=0755 /etc/apt/keyrings",
            "curl --fail --silent --show-error https://apt.repos.neuron.amazonaws.com/GPG-PUB-KEY-AMAZON-AWS-NEURON.PUB \\",
            "  | gpg --dearmor --output /etc/apt/keyrings/neuron.gpg",
            ". /etc/os-release",
            'where="https://apt.repos.neuron.amazonaws.com $VERSION_CODENAME main"',
            'echo "deb [signed-by=/etc/apt/keyrings/neuron.gpg] $where" > /etc/apt/sources.list.d/neuron.list',
            "apt-get update",
            'apt-get install --yes "linux-headers-$(uname -r)" aws-neuronx-dkms aws-neuronx-tools',
        ]
    return "\n".join(lines) + "\n"
