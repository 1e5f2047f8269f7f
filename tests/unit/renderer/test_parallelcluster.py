"""Cluster files: the plan's machines and no more, fabric and storage where the job needs them, nothing open or unencrypted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets.parallelcluster import render
from fixed_deployments import BATCH, HPC, NEURON, SERVE, TRAIN


def cluster(what: Deployment) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(render(what)[0].text)
    return found


def queue(what: Deployment) -> dict[str, Any]:
    (found,) = cluster(what)["Scheduling"]["SlurmQueues"]
    assert isinstance(found, dict)
    return found


def test_the_cluster_grows_to_the_plan_and_shrinks_to_nothing() -> None:
    (resource,) = queue(TRAIN)["ComputeResources"]
    assert (resource["MinCount"], resource["MaxCount"]) == (0, TRAIN.machines)
    assert queue(TRAIN)["CapacityType"] == "SPOT"
    assert queue(HPC)["CapacityType"] == "ONDEMAND"


def test_machines_that_work_together_are_of_one_chip_and_close() -> None:
    (resource,) = queue(TRAIN)["ComputeResources"]
    assert resource["Instances"] == [{"InstanceType": "p5.48xlarge"}], "the others have another chip"
    assert resource["Efa"] == {"Enabled": True}
    assert queue(TRAIN)["Networking"]["PlacementGroup"] == {"Enabled": True}


def test_one_machine_may_be_another_type_on_spot() -> None:
    (resource,) = queue(replace(TRAIN, machines=1))["ComputeResources"]
    assert [one["InstanceType"] for one in resource["Instances"]] == ["p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"]
    assert "Efa" not in resource


def test_storage_is_sold_in_steps_and_linked_to_the_data() -> None:
    (store,) = cluster(TRAIN)["SharedStorage"]
    settings = store["FsxLustreSettings"]
    assert settings["StorageCapacity"] == 1200
    assert settings["DataRepositoryAssociations"][0]["DataRepositoryPath"] == "s3://legal-text/tokens/"
    assert settings["DeletionPolicy"] == "Retain"


def test_neuron_nodes_get_their_driver() -> None:
    script = next(file.text for file in render(NEURON) if file.path == "prepare-node.sh")
    assert "aws-neuronx-dkms" in script
    assert "aws-neuronx-dkms" not in next(file.text for file in render(TRAIN) if file.path == "prepare-node.sh")


def test_disks_are_encrypted_and_roles_guarded() -> None:
    made = cluster(TRAIN)
    assert made["HeadNode"]["LocalStorage"]["RootVolume"]["Encrypted"] is True
    assert made["Imds"] == {"ImdsSupport": "v2.0"}
    assert queue(TRAIN)["ComputeSettings"]["LocalStorage"]["RootVolume"]["Encrypted"] is True


def test_labels_become_tags() -> None:
    assert {"Key": "team", "Value": "language"} in cluster(TRAIN)["Tags"]
    hostile = replace(TRAIN, labels={"aws:x": "y", "a\nb": "c\nd", "empty": " "})
    assert [one["Key"] for one in cluster(hostile)["Tags"]] == ["workload", "a-b"]


@pytest.mark.parametrize(("what", "why"), [(BATCH, "on gcp"), (SERVE, "jobs that end")])
def test_what_it_cannot_run_is_refused(what: Deployment, why: str) -> None:
    with pytest.raises(CannotRender, match=why) as caught:
        render(what)
    assert caught.value.remedy
