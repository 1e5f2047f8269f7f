"""What the owner of a job may do at a place, and what nobody may."""

from __future__ import annotations

import pytest

from chipwise.runner.job import Job, Spec
from chipwise.runner.permits import NOTHING, Permit, is_file_name, refusal

ALL = Permit(may_submit=True, secrets=None)


def _job(id: str = "j-1", **secrets: str) -> Job:
    return Job(id, Spec(("true",), "j", place="p", owner="mia", secrets=secrets), 0.0)


def test_a_job_starts_where_its_owner_may_run_it_with_the_secrets_that_it_was_given() -> None:
    assert refusal(_job(), ALL) == ""
    assert refusal(_job(KEY="aws/key"), Permit(True, frozenset({"aws/key"}))) == ""
    assert "may not run jobs at p" in refusal(_job(), NOTHING)
    assert "may not use the secret aws/key" in refusal(_job(KEY="aws/key"), Permit(True))


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\0b", "x" * 201, "é" * 101])
def test_a_job_whose_names_lead_out_of_its_folder_never_starts(name: str) -> None:
    """They come from a record that others write to by any client, and become names of folders of the controller's user."""
    assert not is_file_name(name)
    assert "would lead elsewhere" in refusal(_job(name), ALL)
    assert "would lead elsewhere" in refusal(Job("j-1", Spec(("true",), "j", secrets={name: ""}), 0.0), ALL)


@pytest.mark.parametrize("name", ["going.json", "Going.json", ".going.json.x1", "..."])
def test_a_job_never_takes_the_name_of_a_file_of_the_engine(name: str) -> None:
    assert "is a reserved name" in refusal(_job(name), ALL)


@pytest.mark.parametrize("name", ["train-abc1234", "a b", "...", "é", "\ud800", "x" * 200])
def test_other_names_do(name: str) -> None:
    assert is_file_name(name)


def _pods(**fields: object) -> Job:
    work = {"kind": "Job", "spec": {"template": {"spec": {"containers": [{"name": "main"}], **fields}}}}
    return Job("j-1", Spec(("true",), "j", "kubernetes", place="p", owner="mia", objects=(work,)), 0.0)


@pytest.mark.parametrize(
    "fields",
    [
        {"containers": [{"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "aws", "key": "key"}}}]}]},
        {"initContainers": [{"envFrom": [{"secretRef": {"name": "aws"}}]}]},
        {"volumes": [{"name": "v", "secret": {"secretName": "aws"}}]},
        {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "aws"}}]}}]},
        {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "aws"}}}]},
        {"imagePullSecrets": [{"name": "aws"}]},
    ],
)
def test_objects_of_a_job_read_no_secret_that_its_owner_was_not_given(fields: dict[str, object]) -> None:
    """They may say more than the settings of the job, and its controller applies them with its own rights."""
    job = _pods(**fields)
    assert "may not use the secret aws" in refusal(job, Permit(True, frozenset({"hub/token", "aws/other"})))
    assert refusal(job, Permit(True, frozenset({"aws"}))) == ""
    assert refusal(job, ALL) == ""


def test_a_single_key_of_a_secret_may_be_given() -> None:
    job = _pods(containers=[{"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "aws", "key": "key"}}}]}])
    assert refusal(job, Permit(True, frozenset({"aws/key"}))) == ""


@pytest.mark.parametrize("odd", [{"secretKeyRef": 3}, {"secretName": None}, {"secretRef": {}}, {"secret": {"name": []}}])
def test_references_that_make_no_sense_are_for_the_cluster_to_refuse(odd: dict[str, object]) -> None:
    assert refusal(_pods(volumes=[odd]), Permit(True)) == ""
