"""SageMaker: which kind of endpoint fits, what a training job is told, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chipwise.render.aws.endpoint import mode_of
from chipwise.render.file import CannotRender
from chipwise.render.targets import sagemaker
from deployments import deployment
from hostile import TEXTS, hostile
from scripts import accepted, constants, literals, same_files, texts
from small_runs import small

ON_AWS = "clouds=[aws]"
SERVE, TRAIN, FINETUNE = (deployment(name, ON_AWS) for name in ("serve", "train", "finetune"))


@pytest.mark.parametrize("name", ["train", "finetune", "serve"])
def test_scripts_compile_are_formatted_and_do_not_change(name: str, tmp_path: Path) -> None:
    planned = deployment(name, ON_AWS)
    accepted(sagemaker.render(planned), tmp_path)
    assert same_files(sagemaker.render, planned)


def test_spot_comes_with_checkpoints_and_an_end_of_waiting() -> None:
    said = constants(texts(sagemaker.render(TRAIN))["sagemaker_job.py"])
    assert (said["SPOT"], said["MACHINE"], said["MACHINES"]) == (True, f"ml.{TRAIN.node.machine}", TRAIN.machines)
    assert said["MOST_WAIT"] >= said["MOST_SECONDS"] >= TRAIN.predicted.seconds
    assert said["CHECKPOINTS"] is not None


def test_the_words_of_a_command_are_short_enough_for_sagemaker() -> None:
    said = constants(texts(sagemaker.render(TRAIN))["sagemaker_job.py"])
    assert max(map(len, [*said["ENTRYPOINT"], *said["ARGUMENTS"]])) <= 256
    long = replace(FINETUNE, software=replace(FINETUNE.software, command=("x", "y" * 300), given=True))
    with pytest.raises(CannotRender, match="256 characters"):
        sagemaker.render(long)


def test_the_mode_follows_the_service() -> None:
    slow = replace(SERVE, predicted=replace(SERVE.predicted, latency={"latency p99": 200.0}))
    fed = replace(SERVE, trigger="s3://uploads/in/")
    modes = [mode_of(one)[0] for one in (SERVE, slow, fed, small(SERVE))]
    assert modes == ["real-time", "asynchronous", "asynchronous", "serverless"]


def test_an_engine_listens_where_sagemaker_asks() -> None:
    files = texts(sagemaker.render(SERVE))
    assert "--port 8080" in files["serve.sh"]
    assert "8000" not in files["serve.sh"]
    said = constants(files["sagemaker_endpoint.py"])
    assert SERVE.scaling is not None
    assert (said["LEAST"], said["MOST"]) == (SERVE.scaling.least, SERVE.scaling.most)
    assert said["SCHEDULE"]["open"][0] == "cron(0 7 ? * MON,TUE,WED,THU,FRI,SAT *)"


def test_machines_that_sagemaker_does_not_have_are_refused() -> None:
    with pytest.raises(CannotRender, match=r"no ml\.r8g\.medium for training"):
        sagemaker.render(deployment("hybrid", ON_AWS))


@pytest.mark.parametrize(("name", "why"), [
    ("batch", "never speak to each other"), ("stream", "tools"), ("transcode", "streams"), ("interactive", "come and go"),
])  # fmt: skip
def test_what_it_cannot_express_is_refused_with_what_can(name: str, why: str) -> None:
    with pytest.raises(CannotRender, match=why) as refused:
        sagemaker.render(deployment(name, ON_AWS))
    assert "--to " in str(refused.value.remedy)


def test_secrets_are_refused_because_they_would_be_written_out() -> None:
    planned = replace(FINETUNE, software=replace(FINETUNE.software, secrets=(("TOKEN", "hub", "token"),)))
    with pytest.raises(CannotRender, match="secrets"):
        sagemaker.render(planned)


@pytest.mark.parametrize("text", [one for one in TEXTS if len(one) < 200])
def test_hostile_text_is_a_literal(text: str) -> None:
    found = literals(texts(sagemaker.render(hostile(FINETUNE, text)))["sagemaker_job.py"])
    assert {text, f"--a={text}", f"x{text}"} <= found
