"""MLflow: what is predicted stands in the file under the names that measured figures get."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import scripts
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.targets import mlflow
from fixed_deployments import CASES, PIPELINE, SERVE, TRAIN


def constants(planned: Deployment) -> dict[str, Any]:
    return scripts.constants(scripts.texts(mlflow.render(planned))["track.json"])


def test_a_job_has_time_with_its_range_and_cost() -> None:
    told = constants(TRAIN)["STAGES"]["llama-8b-legal"]["predicted"]
    assert (told["seconds"], told["seconds low"], told["seconds high"]) == (144000, 126000, 187200)
    assert told["usd"] == 2481.5


def test_a_service_has_latencies_and_rate_by_the_month() -> None:
    told = constants(SERVE)["STAGES"]["chat-api"]["predicted"]
    assert told["latency p99"] == 8.9
    assert told["usd_per_month"] == 1534
    assert told["requests_per_second"] == 13.8
    assert "seconds" not in told


def test_every_stage_of_a_pipeline_is_there() -> None:
    assert set(constants(PIPELINE)["STAGES"]) == {"train", "serve"}


def test_everything_that_is_planned_can_be_tracked() -> None:
    for planned in CASES.values():
        assert constants(planned)["STAGES"]


def test_the_command_that_is_measured_uses_the_chips_that_were_planned() -> None:
    [stage] = constants(replace(TRAIN, machines=1))["STAGES"].values()
    assert stage["command"][:3] == ["torchrun", "--standalone", f"--nproc-per-node={TRAIN.node.chips}"]
    [file, *_] = mlflow.render(replace(TRAIN, machines=2))
    assert "2 machines: start it on each of them as another target does" in file.text


def test_text_of_a_user_is_data_in_the_file() -> None:
    text = '"""\n) or __import__("os").system("id") #'
    hostile = replace(TRAIN, title=text, labels={text: text}, software=replace(TRAIN.software, command=("a", text)))
    [stage] = constants(hostile)["STAGES"].values()
    assert stage["command"] == ["a", text]
