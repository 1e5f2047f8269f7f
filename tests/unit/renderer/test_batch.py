"""AWS Batch: single, array and multi-node jobs, and what is refused."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chipwise.planner.values.split import Runs
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import batch
from deployments import on_few_offers as deployment
from hostile import TEXTS, hostile
from scripts import accepted, constants, literals, loaded, same_files, texts

ON_AWS = "clouds=[aws]"


def train() -> Deployment:
    return deployment("train", ON_AWS)


@pytest.mark.parametrize("name", ["finetune", "batch", "hpc", "render", "hybrid"])
def test_scripts_compile_are_formatted_and_do_not_change(name: str, tmp_path: Path) -> None:
    planned = deployment(name, ON_AWS)
    accepted(batch.render(planned), tmp_path)
    assert same_files(batch.render, planned)


def test_programs_apart_are_an_array_of_which_each_gets_its_chips() -> None:
    planned = deployment("batch", ON_AWS)
    said = constants(texts(batch.render(planned))["batch_job.json"])
    assert (said["NODES"], said["PARTS"]) == (1, planned.machines * planned.node.chips)
    needs = {one["type"]: one["value"] for one in said["CONTAINER"]["resourceRequirements"]}
    assert needs["GPU"] == "1"
    assert planned.node.vcpus is not None
    assert int(needs["VCPU"]) * 8 <= planned.node.vcpus
    assert said["STRATEGY"] == "SPOT_PRICE_CAPACITY_OPTIMIZED"


def test_one_program_over_several_machines_is_a_multinode_job() -> None:
    said = constants(texts(batch.render(replace(train(), purchase="on-demand")))["batch_job.json"])
    assert (said["NODES"], said["PARTS"], said["EFA_INTERFACES"]) == (train().machines, 1, train().node.interfaces)
    assert '--node-rank="$AWS_BATCH_JOB_NODE_INDEX"' in said["CONTAINER"]["command"][2]
    assert len(said["CONTAINER"]["linuxParameters"]["devices"]) == train().node.interfaces


def test_a_multinode_job_on_spot_is_refused_because_batch_has_none() -> None:
    with pytest.raises(CannotRender, match="full price only") as refused:
        batch.render(train())
    assert "interruptible=false" in str(refused.value.remedy)


def test_an_image_of_others_is_wrapped_because_batch_cannot_put_its_entry_point_aside() -> None:
    files = texts(batch.render(deployment("batch", ON_AWS)))
    assert files["Dockerfile"].endswith("ENTRYPOINT []\n")
    assert constants(files["batch_job.json"])["IMAGE"] is None


def test_runs_of_a_simulation_are_an_array_that_counts_them() -> None:
    said = constants(texts(batch.render(replace(deployment("hpc", ON_AWS), runs=13)))["batch_job.json"])
    assert (said["NODES"], said["PARTS"]) == (1, 13)
    assert said["CONTAINER"]["command"][2] == 'export RUN="$AWS_BATCH_JOB_ARRAY_INDEX"; exec mpirun -n 8 python main.py'
    assert {one["type"]: one["value"] for one in said["CONTAINER"]["resourceRequirements"]}["GPU"] == "8"


def test_one_mpi_run_over_several_machines_is_for_schedulers() -> None:
    planned = replace(deployment("hpc", ON_AWS), split=Runs(at_once=1, chips_each=24), runs=1)
    for refused in (planned, replace(planned, runs=2, software=replace(planned.software, framework="none"))):
        with pytest.raises(CannotRender, match="over 3 machines") as told:
            batch.render(refused)
        assert told.value.remedy == "Use --to slurm or parallelcluster."


def test_parts_find_their_number_and_their_shards() -> None:
    planned = deployment("batch", ON_AWS)
    text = texts(batch.render(planned))["batch_job.json"]
    command = constants(text)["CONTAINER"]["command"]
    words = [*command[:2], command[2].replace("exec sh", "exec printf '%s\\n' \"$PART $SHARD\"", 1)]
    told = subprocess.run(words, env={"AWS_BATCH_JOB_ARRAY_INDEX": "12"}, capture_output=True, text=True, check=True).stdout
    assert told.startswith("12 00012\n")
    assert "/data/requests" in told.splitlines()
    assert planned.replicas > 1
    assert f"{planned.replicas * planned.per_machine:,} replicas answer" in text


class Slow:
    """Batch, which takes a while for every change and refuses to remove what is being changed or still enabled."""

    def __init__(self, status: str) -> None:
        self.said: list[str] = []
        self.status = {key: [status] for key in ("jobQueues", "computeEnvironments")}
        self.enabled = dict.fromkeys(self.status, True)

    def _describe(self, key: str) -> dict[str, Any]:
        waiting = self.status[key]
        now = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return {key: [] if now == "" else [{"status": now, "statusReason": "its role is gone"}]}

    def _disable(self, key: str) -> None:
        self.enabled[key], self.status[key] = False, ["UPDATING", "UPDATING", self.status[key][-1]]
        self.said.append(f"disable {key}")

    def _delete(self, key: str) -> None:
        assert not self.enabled[key]
        assert len(self.status[key]) == 1, "it is being changed"
        self.status[key] = ["DELETING", "DELETING", "DELETED", ""]
        self.said.append(f"delete {key}")

    def __getattr__(self, name: str) -> Any:
        what, _, rest = name.partition("_")
        key = {"job_queue": "jobQueues", "compute_environment": "computeEnvironments"}.get(rest.removesuffix("s"))
        if key is not None and what in ("describe", "update", "delete"):
            done = {"describe": self._describe, "update": self._disable, "delete": self._delete}[what]
            return lambda **_: done(key)
        if name == "get_paginator":
            return lambda _: SimpleNamespace(paginate=lambda **_: [{"jobSummaryList": []}])
        return lambda **_: {"jobDefinitions": [], "SecurityGroups": []}


@pytest.mark.parametrize("status", ["VALID", "INVALID"])
def test_down_waits_for_each_change_before_the_next(status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    inside, aws = loaded(texts(batch.render(deployment("render", ON_AWS))), "batch_job.py"), Slow(status)
    inside["down"](SimpleNamespace(client=lambda _: aws))
    assert aws.said == [
        "disable jobQueues",
        "delete jobQueues",
        "disable computeEnvironments",
        "delete computeEnvironments",
    ]


def test_an_invalid_queue_stops_a_start_with_the_reason() -> None:
    inside = loaded(texts(batch.render(deployment("render", ON_AWS))), "batch_job.py")
    with pytest.raises(inside["JobFailed"], match=r"its role is gone\. Remove it with --down"):
        inside["valid"](Slow("INVALID"), *inside["QUEUES"])


def test_services_and_other_clouds_are_refused_with_what_can() -> None:
    for planned, what in ((deployment("serve", ON_AWS), "ecs"), (deployment("serve", "clouds=[gcp]"), "--cloud aws")):
        with pytest.raises(CannotRender) as refused:
            batch.render(planned)
        assert what in str(refused.value.remedy)


def test_more_parts_than_an_array_holds_are_refused_with_the_number() -> None:
    with pytest.raises(CannotRender, match="10,000 parts; the plan has 80,000"):
        batch.render(replace(deployment("batch", ON_AWS), machines=10_000))


def test_secrets_are_handed_over_by_reference() -> None:
    planned = deployment("finetune", ON_AWS)
    named = replace(planned, software=replace(planned.software, secrets=(("TOKEN", "hub", "token"),)))
    said = constants(texts(batch.render(named))["batch_job.json"])
    assert said["SECRETS"] == [["TOKEN", "hub", "token"]]


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_is_a_literal(text: str) -> None:
    found = literals(texts(batch.render(hostile(deployment("finetune", ON_AWS), text)))["batch_job.json"])
    assert {text, f"--a={text}", f"x{text}"} <= found
