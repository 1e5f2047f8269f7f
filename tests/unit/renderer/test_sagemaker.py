"""SageMaker: which kind of endpoint fits, what a training job is told, and what is refused."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chipwise.planner.values.split import Runs
from chipwise.renderer.aws.endpoint import mode_of
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.health import start_seconds
from chipwise.renderer.targets import sagemaker
from deployments import on_few_offers as deployment
from hostile import TEXTS, hostile
from scripts import accepted, constants, literals, loaded, same_files, texts
from small_runs import small

ON_AWS = "clouds=[aws]"


def serve() -> Deployment:
    return deployment("serve", ON_AWS)


def train() -> Deployment:
    return deployment("train", ON_AWS)


def finetune() -> Deployment:
    return deployment("finetune", ON_AWS)


@pytest.mark.parametrize("name", ["train", "finetune", "serve"])
def test_scripts_compile_are_formatted_and_do_not_change(name: str, tmp_path: Path) -> None:
    planned = deployment(name, ON_AWS)
    accepted(sagemaker.render(planned), tmp_path)
    assert same_files(sagemaker.render, planned)


def test_spot_comes_with_checkpoints_and_an_end_of_waiting() -> None:
    said = constants(texts(sagemaker.render(train()))["sagemaker_job.json"])
    assert (said["SPOT"], said["MACHINE"], said["MACHINES"]) == (True, f"ml.{train().node.machine}", train().machines)
    assert said["MOST_WAIT"] >= said["MOST_SECONDS"] >= train().predicted.seconds
    assert said["CHECKPOINTS"] is not None


def test_the_words_of_a_command_are_short_enough_for_sagemaker() -> None:
    said = constants(texts(sagemaker.render(train()))["sagemaker_job.json"])
    assert max(map(len, [*said["ENTRYPOINT"], *said["ARGUMENTS"]])) <= 256
    long = replace(finetune(), software=replace(finetune().software, command=("x", "y" * 300), is_custom=True))
    with pytest.raises(CannotRender, match="256 characters"):
        sagemaker.render(long)


def test_the_mode_follows_the_service() -> None:
    slow = replace(serve(), predicted=replace(serve().predicted, latency={"latency p99": 200.0}))
    fed = replace(serve(), trigger="s3://uploads/in/")
    modes = [mode_of(one)[0] for one in (serve(), slow, fed, small(serve()))]
    assert modes == ["real-time", "asynchronous", "asynchronous", "serverless"]


def test_an_engine_listens_where_sagemaker_asks() -> None:
    files = texts(sagemaker.render(serve()))
    assert "--port 8080" in files["serve.sh"]
    assert "8000" not in files["serve.sh"]
    said = constants(files["sagemaker_endpoint.json"])
    scaling = serve().scaling
    assert scaling is not None
    assert (said["LEAST"], said["MOST"]) == (scaling.minimum, scaling.maximum)
    assert said["SCHEDULE"]["open"][0] == "cron(0 7 ? * MON,TUE,WED,THU,FRI,SAT *)"


def test_the_program_may_write_where_it_keeps_its_weights() -> None:
    lines = texts(sagemaker.render(serve()))["Dockerfile"].splitlines()
    assert dict(serve().software.env)["HF_HOME"].startswith("/models/")
    made = lines.index("RUN install -d -o 10001 -g 10001 /models")
    assert lines.index("USER 0") < made < lines.index("USER 10001")


def test_an_asynchronous_endpoint_without_machines_wakes_when_anything_waits() -> None:
    fed = replace(serve(), trigger="s3://uploads/in/")
    inside = loaded(texts(sagemaker.render(fed)), "sagemaker_endpoint.py")
    clients = {name: SimpleNamespace() for name in ("application-autoscaling", "cloudwatch")}
    policies: dict[str, Any] = {}
    asked: dict[str, Any] = {}
    clients["application-autoscaling"].register_scalable_target = lambda **_: None
    clients["application-autoscaling"].put_scheduled_action = lambda **_: None
    clients["application-autoscaling"].put_scaling_policy = lambda **one: (
        policies.update({one["PolicyName"]: one}) or {"PolicyARN": f"arn:{one['PolicyName']}"}
    )
    clients["cloudwatch"].put_metric_alarm = asked.update
    inside["scale"](SimpleNamespace(client=clients.__getitem__))
    assert inside["MIN_MACHINES"] == 0
    steps = policies["wake"]["StepScalingPolicyConfiguration"]["StepAdjustments"]
    assert steps == [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}]
    assert (asked["MetricName"], asked["AlarmActions"]) == ("HasBacklogWithoutCapacity", ["arn:wake"])
    removed: list[str] = []
    clients["cloudwatch"].delete_alarms = lambda AlarmNames: removed.extend(AlarmNames)  # noqa: N803
    clients["application-autoscaling"].deregister_scalable_target = lambda **_: None
    clients["application-autoscaling"].exceptions = SimpleNamespace(ObjectNotFoundException=LookupError)
    inside["forget_scaling"](SimpleNamespace(client=clients.__getitem__))
    assert removed == [asked["AlarmName"]]


def test_data_is_found_even_where_the_image_has_a_directory_for_it(tmp_path: Path) -> None:
    said = constants(texts(sagemaker.render(finetune()))["sagemaker_job.json"])
    mounted, data = tmp_path / "mounted", tmp_path / "data"
    mounted.mkdir()
    data.mkdir()
    (mounted / "a.jsonl").write_text("x")
    line = said["ENTRYPOINT"][2].replace("/opt/ml/input/data/data", str(mounted)).replace(" /data", f" {data}")
    line = line.replace("torchrun", "true")
    subprocess.run(["/bin/sh", "-c", line], check=True)
    assert (data / "a.jsonl").read_text() == "x"


def test_waiting_for_the_first_answer_is_as_long_as_a_start_takes() -> None:
    said = constants(texts(sagemaker.render(serve()))["sagemaker_endpoint.json"])
    assert said["STARTUP_SECONDS"] == min(start_seconds(serve()), 3600)


def test_runs_and_mpi_over_machines_are_refused_for_what_they_are() -> None:
    runs = deployment("hpc", ON_AWS)
    with pytest.raises(CannotRender, match="6 runs of one program; a training job is one"):
        sagemaker.render(runs)
    with pytest.raises(CannotRender, match="one MPI program over 3 machines") as told:
        sagemaker.render(replace(runs, split=Runs(at_once=1, chips_each=24), runs=1))
    assert told.value.remedy == "Use --to slurm or parallelcluster."


def test_neuron_trains_with_a_process_for_each_core() -> None:
    node = replace(train().node, machine="trn1.32xlarge", chip="Trainium", kind="neuron", vendor="AWS", chips=16, cores=2)
    said = constants(texts(sagemaker.render(replace(train(), node=node, chips_each=16)))["sagemaker_job.json"])
    assert "--nproc-per-node=32" in said["ARGUMENTS"]


def test_machines_that_sagemaker_does_not_have_are_refused() -> None:
    with pytest.raises(CannotRender, match=r"no ml\.\w+\.[\w-]+ for training"):
        sagemaker.render(deployment("hybrid", ON_AWS, "chips=[graviton4]"))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("batch", "never speak to each other"),
        ("stream", "tools"),
        ("transcode", "streams"),
        ("interactive", "come and go"),
    ],
)
def test_what_it_cannot_express_is_refused_with_what_can(name: str, why: str) -> None:
    with pytest.raises(CannotRender, match=why) as refused:
        sagemaker.render(deployment(name, ON_AWS))
    assert "--to " in str(refused.value.remedy)


def test_secrets_are_refused_because_they_would_be_written_out() -> None:
    planned = replace(finetune(), software=replace(finetune().software, secrets=(("TOKEN", "hub", "token"),)))
    with pytest.raises(CannotRender, match="secrets"):
        sagemaker.render(planned)


@pytest.mark.parametrize("text", [one for one in TEXTS if len(one) < 200])
def test_hostile_text_is_a_literal(text: str) -> None:
    found = literals(texts(sagemaker.render(hostile(finetune(), text)))["sagemaker_job.json"])
    assert {text, f"--a={text}", f"x{text}"} <= found


@pytest.mark.parametrize("name", ["finetune", "serve"])
def test_what_comes_from_the_hub_goes_to_the_volume_and_not_to_the_disk_of_the_image(name: str) -> None:
    planned = deployment(name, ON_AWS)
    assert dict(planned.software.env)["HF_HOME"] == "/models/hub"
    written = next(file.text for file in sagemaker.render(planned) if "HF_HOME" in file.text)
    assert "/tmp/hub" in written
    assert "/models/hub" not in written
