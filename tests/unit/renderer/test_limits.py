"""What a service would refuse is refused here, with the number and a way out; what it takes is rendered."""

from __future__ import annotations

import json
import random
import re
import string
from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.api import render as rendering
from chipwise.planner.values.split import Runs
from chipwise.renderer import limits
from chipwise.renderer.cluster.pod import labels
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.functions.cloud_run import _labels as cloud_run_labels
from chipwise.renderer.quoting import dns_name
from chipwise.renderer.targets import (
    batch,
    ecs,
    eksctl,
    karpenter,
    kubernetes,
    parallelcluster,
    ray,
    sagemaker,
    serverless,
    skypilot,
    slurm,
    terraform,
    vllm,
)
from chipwise.renderer.yaml_text import Noted
from deployments import on_few_offers as deployment
from fixed_deployments import CASES, HPC, SERVE

AWS = "clouds=[aws]"
SIGNS = string.ascii_letters + string.digits


def told(planned: Deployment, *command: str, **env: str) -> Deployment:
    software = planned.software
    words = (*software.command, *command)
    return replace(planned, software=replace(software, command=words, env=(*software.env, *env.items()), is_custom=True))


def many(planned: Deployment, settings: int, length: int) -> Deployment:
    """Settings that do not compress, as keys and addresses do not."""
    chance = random.Random(1)
    return told(planned, **{f"SETTING_{at}": "".join(chance.choices(SIGNS, k=length)) for at in range(settings)})


def labelled(planned: Deployment, count: int = 60) -> Deployment:
    return replace(planned, labels={f"label-{at}-{'k' * 150}": "v" * 300 for at in range(count)})


# target, workload, settings that still fit, settings that do not, what the refusal names
SIZES: list[tuple[Any, tuple[str, ...], tuple[int, int], tuple[int, int], str]] = [
    (sagemaker, ("train", AWS), (60, 512), (1, 513), "512 characters"),
    (sagemaker, ("train", AWS), (60, 10), (120, 10), "100 settings"),
    (sagemaker, ("serve", AWS), (10, 1000), (1, 1025), "1,024 characters"),
    (sagemaker, ("serve", AWS), (20, 1000), (40, 1000), "32,768 bytes"),
    (batch, ("batch", AWS), (18, 1000), (24, 1000), "22,000 bytes"),
    (ecs, ("serve", AWS), (55, 1000), (64, 1000), "62,000 bytes"),
    (kubernetes, ("serve", AWS), (300, 1000), (420, 1000), "400,000 bytes"),
    (kubernetes, ("train", AWS), (300, 1000), (420, 1000), "400,000 bytes"),
    (terraform, ("train", AWS), (8, 1000), (60, 1000), "15,000 bytes, packed"),
    (terraform, ("serve", "clouds=[azure]"), (40, 1000), (70, 1000), "62,000 bytes"),
    (terraform, ("finetune", "clouds=[gcp]"), (100, 1000), (250, 1000), "250,000 bytes"),
]


NAMES = [f"{one[0].__name__.rpartition('.')[2]} {one[4]}" for one in SIZES]


@pytest.mark.parametrize(("target", "case", "fits", "not_fits", "named"), SIZES, ids=NAMES)
def test_settings_up_to_the_limit_are_rendered_and_those_beyond_are_refused(
    target: Any, case: tuple[str, ...], fits: tuple[int, int], not_fits: tuple[int, int], named: str
) -> None:
    planned = deployment(*case)
    assert target.render(many(planned, *fits))
    with pytest.raises(CannotRender, match=re.escape(named)) as refused:
        target.render(many(planned, *not_fits))
    assert "--to " in str(refused.value.remedy)
    assert "this workload has" in str(refused.value) or "that of SETTING_0 has" in str(refused.value)


def test_a_long_command_is_refused_where_it_does_not_fit() -> None:
    """10 kB: user data and job definitions take it, SageMaker has words of 256 and no more than 100 of them."""
    words = [f"--word-{at}={'y' * 190}" for at in range(50)]
    for target, case in ((batch, "batch"), (kubernetes, "train"), (ecs, "serve"), (slurm, "train"), (terraform, "train")):
        assert target.render(told(deployment(case, AWS), *words))
    with pytest.raises(CannotRender, match="words of 256"):
        sagemaker.render(told(deployment("train", AWS), "y" * 300))
    with pytest.raises(CannotRender, match="22,000 bytes"):
        batch.render(told(deployment("batch", AWS), *words, *words, *words))


def test_a_launcher_of_ray_fits_into_a_config_map() -> None:
    """It holds the command, so what is too long for a container is too long for it."""
    with pytest.raises(CannotRender, match="400,000 bytes"):
        ray.render(told(deployment("train", AWS), *["y" * 10_000] * 60))


def test_lambda_has_four_kilobytes_and_names_that_begin_with_a_letter() -> None:
    small = CASES["small"]
    assert serverless.render(many(small, 3, 1000))
    with pytest.raises(CannotRender, match="4,096 bytes"):
        serverless.render(many(small, 5, 1000))
    with pytest.raises(CannotRender, match="no setting of the name _HIDDEN"):
        serverless.render(told(small, _HIDDEN="x"))


def test_sixty_labels_are_cut_to_what_a_resource_may_have() -> None:
    """50 tags on AWS and Azure, 64 labels on Google Cloud, some of them the tools' own; keys of 128 and values of 256."""
    train, serve = labelled(deployment("train", AWS)), labelled(deployment("serve", AWS))
    found: dict[str, dict[str, str]] = {}
    found["eksctl"] = yaml.safe_load(eksctl.render(serve)[0].text)["metadata"]["tags"]
    nodes = list(yaml.safe_load_all(next(file for file in karpenter.render(serve) if "nodes" in file.path).text))
    found["karpenter"] = next(one["spec"]["tags"] for one in nodes if one["kind"] == "EC2NodeClass")
    cluster = yaml.safe_load(next(one for one in parallelcluster.render(train) if one.path.endswith("cluster.yaml")).text)
    found["parallelcluster"] = {one["Key"]: one["Value"] for one in cluster["Tags"]}
    task = yaml.safe_load(next(one for one in skypilot.render(train) if one.path.endswith(".yaml")).text)
    found["skypilot"] = task["resources"]["labels"]
    found["cloud run"] = {key: str(value) for key, value in cloud_run_labels(serve).items()}
    for name, tags in found.items():
        assert 0 < len(tags) <= 41, name
        assert all(len(key) <= 128 and len(value) <= 256 for key, value in tags.items()), name


def test_labels_of_kubernetes_have_63_characters_at_most() -> None:
    for key, value in labels(labelled(deployment("serve", AWS))).items():
        name = key.rpartition("/")[2]
        assert len(name) <= 63
        assert len(str(value.value if isinstance(value, Noted) else value)) <= 63


def test_names_leave_room_for_what_is_added_to_them() -> None:
    """SageMaker adds a date and takes 63 in all, apps on Azure have 32, and the end of a cut name tells it from others."""
    name = dns_name("A very long name of a workload, " * 20)
    assert len(f"{name}-20260101-000000") <= 63
    assert re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", name)
    assert name != dns_name("A very long name of a workload, " * 21)
    assert len(dns_name(name, 32)) <= 32


def test_comments_do_not_count_and_what_is_measured_is_given_back() -> None:
    made = {"command": Noted(["x" * 100], "because " * 10_000)}
    assert replace(limits.BATCH, total_bytes=200).document(made) is made
    with pytest.raises(CannotRender, match=r"50 bytes of command and settings; this workload has 1\d\d"):
        replace(limits.BATCH, total_bytes=50).document(made)


def test_signs_of_other_languages_are_counted_as_they_are_sent() -> None:
    assert limits.LAMBDA.settings({"NAME": "é" * 2_042})
    with pytest.raises(CannotRender, match="this workload has 4,097"):
        limits.LAMBDA.settings({"NAME": "é" * 2_043})


def test_every_example_fits_everywhere_as_it_is() -> None:
    for planned in CASES.values():
        limits.KUBERNETES.document(dict(planned.software.env))
        limits.SAGEMAKER_JOB.settings(dict(planned.software.env))
        assert len(json.dumps(dict(planned.software.env))) < 4_000


def test_a_document_that_no_cluster_stores_is_refused_with_what_to_do() -> None:
    small = File("workload.yaml", "a: 1\n---\n" + "b" * (limits.MOST_DOCUMENT_BYTES - 10))
    limits.bounded("kubernetes", [small, small])
    with pytest.raises(CannotRender, match=r"workload\.yaml of kubernetes would have 1,048,577 bytes") as refused:
        limits.bounded("kubernetes", [File("workload.yaml", "b" * (limits.MOST_DOCUMENT_BYTES + 1))])
    assert "--stage" in str(refused.value.remedy)


def test_more_files_than_anybody_reads_are_refused() -> None:
    stages = [File(f"stage-{at}.yaml", "ü" * 500_000) for at in range(17)]
    with pytest.raises(CannotRender, match="The files of argo would have 17,000,000 bytes"):
        limits.bounded("argo", stages)


def test_an_entry_that_grows_is_refused_by_the_door_of_all_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_DOCUMENT_BYTES", 100)
    with pytest.raises(CannotRender, match=r"the limit is 100\."):
        rendering.files("vllm", vllm, SERVE)


def cases(runs: int, at_once: int) -> Deployment:
    """A simulation that is run often, one machine for each run."""
    node = replace(HPC.node, chips=0)
    split = Runs(chips_each=1, at_once=at_once)
    software = replace(HPC.software, framework="none")
    return replace(HPC, node=node, machines=at_once, split=split, runs=runs, software=software)


def test_a_job_of_many_runs_keeps_to_what_the_api_takes() -> None:
    [job] = [
        one
        for file in rendering.files("kubernetes", kubernetes, cases(1_000_000, 50))
        for one in yaml.safe_load_all(file.text)
        if one["kind"] == "Job"
    ]
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (1_000_000, 50)
    assert job["spec"]["maxFailedIndexes"] == 10_000
    with pytest.raises(CannotRender, match="at most 10,000 pods at once; the plan has 20,000"):
        rendering.files("kubernetes", kubernetes, cases(1_000_000, 20_000))
    with pytest.raises(CannotRender, match="2,147,483,647 pods"):
        rendering.files("kubernetes", kubernetes, cases(10**10, 50))


def test_an_array_of_slurm_ends_where_slurm_does() -> None:
    assert any("--array=0-3999999" in file.text for file in rendering.files("slurm", slurm, cases(4_000_000, 50)))
    with pytest.raises(CannotRender, match="at most 4,000,001 tasks"):
        rendering.files("slurm", slurm, cases(10**9, 50))
