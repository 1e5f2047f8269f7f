"""Rendered objects as those of an attempt. What the server says to them is in tests/e2e/test_engine_kubernetes.py."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from chipwise.adapters.engines.kubernetes.kinds import DEPLOYMENT, JOB
from chipwise.adapters.engines.kubernetes.objects import HANDLE, AttemptObjects, attempt_objects, key_of_job, name_of, slug
from chipwise.errors import BadInput
from chipwise.renderer.targets import kubernetes as target
from chipwise.runner.events import Placed, Submitted, after, first
from chipwise.runner.job import Job, MachinePlace, Spec
from deployments import on_few_offers as deployment
from engines.kubernetes import job_object

DNS_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def _job(*objects: Any, id: str = "train-k3x9q", attempts: int = 1, **asked: Any) -> Job:
    job = first(id, Submitted(Spec(("python", "train.py"), "train", "kubernetes", objects=objects, **asked)), 0.0)
    job = after(job, Placed(1, MachinePlace()), 0.0)
    for number in range(2, attempts + 1):
        from chipwise.runner.events import Again, Ended
        from chipwise.runner.job import Outcome

        job = after(after(job, Ended(number - 1, Outcome.LOST), 0.0), Again(0.0, ""), 0.0)
        job = after(job, Placed(number, MachinePlace()), 0.0)
    return job


def _made(job: Job, record: str = "r") -> AttemptObjects:
    return attempt_objects(job, "here", record)


def _env(made: AttemptObjects) -> dict[str, Any]:
    [container] = made.main[1]["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}


@given(st.text(max_size=200), st.integers(1, 999_999))
def test_any_id_gives_names_and_labels_that_the_server_takes(id: str, number: int) -> None:
    name = name_of((slug(id), number))
    assert DNS_LABEL.fullmatch(f"{name}-99999")  # with the index that a pod's host name gets
    found = HANDLE.fullmatch(name)
    assert found is not None
    assert (found[1], int(found[2])) == (slug(id), number)


@given(st.text(max_size=100), st.text(max_size=100), st.dictionaries(st.text(max_size=70), st.text(max_size=100), max_size=3))
def test_who_pays_fits_into_labels_whatever_it_is_called(owner: str, team: str, labels: dict[str, str]) -> None:
    made = _made(_job(job_object({}), owner=owner, team=team, labels=labels))
    found = made.main[1]["metadata"]["labels"]
    assert all(LABEL.fullmatch(value) for value in found.values())
    assert all(LABEL.fullmatch(name.rpartition("/")[2]) for name in found)
    assert found["chipwise.dev/job"] == "train-k3x9q"
    assert found["chipwise.dev/attempt"] == "1"


def test_labels_of_a_user_never_take_the_place_of_those_by_which_an_attempt_is_found() -> None:
    made = _made(_job(job_object({}), labels={"job": "another", "attempt": "7", "record": "theirs"}))
    found = made.main[1]["metadata"]["labels"]
    assert (found["chipwise.dev/job"], found["chipwise.dev/attempt"], found["chipwise.dev/record"]) == ("train-k3x9q", "1", "r")


def test_the_same_attempt_always_gives_the_same_objects_and_another_one_other_names() -> None:
    assert _made(_job(job_object({}))) == _made(_job(job_object({})))
    second = _job(job_object({}), attempts=2)
    assert key_of_job(second) == ("train-k3x9q", 2)
    assert _made(second).main[1]["metadata"]["name"] == "train-k3x9q-a2"


def test_what_was_rendered_is_not_changed() -> None:
    one = job_object({})
    before = yaml.safe_dump(one)
    _made(_job(one, env={"A": "1"}))
    assert yaml.safe_dump(one) == before


def test_the_program_is_told_who_it_is_and_where_to_save() -> None:
    one = job_object({})
    pod = one["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "c"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints/"}]
    pod["containers"][0]["env"] = [{"name": "LR", "value": "1"}, {"name": "HOME", "value": "/tmp"}]
    env = _env(_made(_job(one, env={"LR": "$(echo 3)"}, secrets={"TOKEN": "hub/token"}, interruptions_per_hour=0.5)))
    assert env == {
        "LR": "$$(echo 3)",  # stays text
        "HOME": "/tmp",
        "CHIPWISE_JOB": "train-k3x9q",
        "CHIPWISE_ATTEMPT": "1",
        "CHIPWISE_CHECKPOINTS": "/checkpoints/train-k3x9q",
        "CHIPWISE_INTERRUPTIONS_PER_HOUR": "0.5",
        "CHIPWISE_TERMINATION_MESSAGE": "/dev/termination-log",
        "TOKEN": {"secretKeyRef": {"name": "hub", "key": "token"}},
    }
    assert _env(_made(_job(one, checkpoints="s3://bucket/x")))["CHIPWISE_CHECKPOINTS"] == "s3://bucket/x"


def test_a_job_is_told_where_its_last_words_are_read_and_a_service_has_none() -> None:
    one = job_object({})
    one["spec"]["template"]["spec"]["containers"][0]["terminationMessagePath"] = "/tmp/last"
    env = _env(_made(_job(one, env={"CHIPWISE_TERMINATION_MESSAGE": "/etc/passwd"})))
    assert env["CHIPWISE_TERMINATION_MESSAGE"] == "/tmp/last"
    service = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    service["spec"] = {"template": one["spec"]["template"]}
    assert "CHIPWISE_TERMINATION_MESSAGE" not in _env(_made(_job(service)))


def test_a_scratch_volume_is_no_place_for_checkpoints() -> None:
    one = job_object({})
    pod = one["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "checkpoints", "emptyDir": {}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    assert "CHIPWISE_CHECKPOINTS" not in _env(_made(_job(one)))


def test_a_secret_that_only_the_submitter_has_is_refused_and_its_name_alone_is_told() -> None:
    with pytest.raises(BadInput, match=r"TOKEN is not stored where.*kubectl create secret"):
        _made(_job(job_object({}), secrets={"TOKEN": ""}))


def test_pods_have_the_grace_that_was_asked_for() -> None:
    for asked, wanted in ((10.0, 30), (90.5, 91)):
        made = _made(_job(job_object({}), grace_s=asked))
        assert made.main[1]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == wanted


def test_a_finished_job_stays_until_it_is_cleared_and_a_missing_command_is_not_tried_again() -> None:
    spec = _made(_job(job_object({}, ttlSecondsAfterFinished=5))).main[1]["spec"]
    assert "ttlSecondsAfterFinished" not in spec
    assert {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [126, 127]}} in spec["podFailurePolicy"]["rules"]


@pytest.mark.parametrize("example", ["train", "serve"])
def test_every_name_and_selector_of_a_rendered_workload_follows_the_attempt(example: str) -> None:
    planned = replace(deployment(example, "clouds=[aws]"), starts="", stops="")
    objects = [one for file in target.render(planned) for one in yaml.safe_load_all(file.text) if one]
    made = _made(_job(*objects))
    kind, main = made.main
    assert kind is (JOB if example == "train" else DEPLOYMENT)
    own = {"chipwise.dev/job": "train-k3x9q", "chipwise.dev/attempt": "1"}
    assert own.items() <= main["spec"]["template"]["metadata"]["labels"].items()
    for _, one in made.owned:
        assert one["metadata"]["name"].startswith("train-k3x9q-a1")
        assert one["metadata"]["namespace"] == "here"
        text = yaml.safe_dump(one)
        assert ("app.kubernetes.io/name" in yaml.safe_dump(one.get("spec"))) <= ("chipwise.dev/attempt: '1'" in text)
    if kind is DEPLOYMENT:
        assert own.items() <= main["spec"]["selector"]["matchLabels"].items()
    else:
        script = main["spec"]["template"]["spec"]["containers"][0]["command"][-1]
        assert "train-k3x9q-a1-0.train-k3x9q-a1.here.svc" in script
        assert f"{planned.name}-0.{planned.name}" not in script
    assert {one["kind"] for _, one in made.persistent} <= {"PersistentVolumeClaim", "ServiceAccount"}
    assert all(not one["metadata"]["name"].startswith("train-k3x9q") for _, one in made.persistent)  # they outlive it


def test_what_the_engine_cannot_apply_is_refused_with_a_way_out() -> None:
    with pytest.raises(BadInput, match="needs an image"):
        _made(_job())
    with pytest.raises(BadInput, match=r"2 Jobs and Deployments"):
        _made(_job(job_object({}), job_object({})))
    with pytest.raises(BadInput, match="schedule"):
        _made(_job({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x"}}))
    with pytest.raises(BadInput, match="'Widget'"):
        _made(_job(job_object({}), {"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "x"}}))
    with pytest.raises(BadInput, match="no container"):
        _made(_job({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": {}}))


def test_ids_that_differ_only_in_signs_or_case_are_of_different_jobs() -> None:
    """Whoever writes to a record by any client chooses ids: with another job's names one could end it, or read its logs."""
    ids = [
        "train-k3x9qab",
        "train.k3x9qab",
        "Train-k3x9qab",
        "train_k3x9qab",
        "train--k3x9qab",
        "-train-k3x9qab",
        "3d-k3x9qab",
        "job-3d-k3x9qab",
    ]
    assert slug(ids[0]) == ids[0]
    assert len(set(map(slug, ids))) == len(ids)


@given(st.lists(st.text(max_size=60) | st.from_regex(r"[a-z0-9-]{1,50}(-[0-9a-f]{10})?", fullmatch=True), max_size=6))
@example(["3d-pwvzqes"])
def test_no_id_gives_the_name_of_another_not_even_one_that_is_that_name(ids: list[str]) -> None:
    chosen = {*ids, *map(slug, ids), *(slug(slug(id)) for id in ids)}
    assert len(set(map(slug, chosen))) == len(chosen)


@pytest.mark.parametrize(("id", "number", "own"), [("train", 2, "-bcdef-a1"), ("train", 1, "1"), ("train", 1, "-x-a11")])
def test_what_belongs_to_an_attempt_never_has_the_name_of_what_belongs_to_another(id: str, number: int, own: str) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"w{own}"}, "spec": {"selector": {}}}
    work = job_object({})
    work["metadata"]["name"] = "w"
    [(_, body)] = _made(_job(work, service, id=id, attempts=number)).owned
    name = body["metadata"]["name"]
    assert name.startswith(f"{id}-a{number}-")
    assert re.findall(r"-a[0-9]+", name) == [f"-a{number}"]  # by which it is whose it is
    assert DNS_LABEL.fullmatch(name)


_WORK = job_object({})
_POD = _WORK["spec"]["template"]["spec"]


def _with_pod(**fields: Any) -> dict[str, Any]:
    return {**_WORK, "spec": {**_WORK["spec"], "template": {"spec": {**_POD, **fields}}}}


@pytest.mark.parametrize(
    "work",
    [
        {**_WORK, "metadata": None},
        {**_WORK, "metadata": "x"},
        {**_WORK, "metadata": {"name": "x", "labels": [1]}},
        {**_WORK, "metadata": {"name": "x", "annotations": 3}},
        {**_WORK, "spec": 7},
        {**_WORK, "spec": {"template": []}},
        {**_WORK, "spec": {**_WORK["spec"], "podFailurePolicy": 1}},
        _with_pod(containers=["main"]),
        _with_pod(containers={"name": "main"}),
        _with_pod(containers=[{"name": "main", "env": [{}]}]),
        _with_pod(containers=[{"name": "main", "env": 4}]),
        _with_pod(containers=[{"name": "main", "command": 4}]),
        _with_pod(containers=[{"name": "main", "volumeMounts": [3]}]),
        _with_pod(terminationGracePeriodSeconds="soon"),
        _with_pod(volumes=[{}]),
    ],
)
def test_objects_that_make_no_sense_are_refused_and_stop_nobody_else(work: Any) -> None:
    """They come from a record that others write to: what went wrong otherwise would end the controller, at every turn."""
    for rest in ((), ({"apiVersion": "v1", "kind": "Service", "metadata": None},)):
        with contextlib.suppress(BadInput):
            _made(_job(work, *rest))


def test_what_belongs_to_a_job_selects_and_scales_nothing_of_another() -> None:
    """A policy for all pods of the namespace would cut off those of others; an autoscaler could scale them away."""
    theirs = {"chipwise.dev/job": "victim", "app": "x"}
    spec: dict[str, dict[str, Any]] = {
        "Service": {"selector": theirs},
        "NetworkPolicy": {"podSelector": {}, "policyTypes": ["Ingress"]},
        "PodDisruptionBudget": {"selector": {"matchLabels": theirs}, "maxUnavailable": 1},
        "HorizontalPodAutoscaler": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "victim-a1"}},
    }
    owned = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "spec": body} for kind, body in spec.items()]
    made = {body["kind"]: body["spec"] for _, body in _made(_job(job_object({}), *owned)).owned}
    own = {"chipwise.dev/job": "train-k3x9q", "chipwise.dev/attempt": "1"}
    assert made["Service"]["selector"] == {"app": "x", **own}
    assert made["NetworkPolicy"]["podSelector"] == {"matchLabels": own}
    assert made["PodDisruptionBudget"]["selector"] == {"matchLabels": {"app": "x", **own}}
    assert made["HorizontalPodAutoscaler"]["scaleTargetRef"] == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "train-k3x9q-a1",
    }


def test_a_service_that_selects_nothing_and_a_deployment_without_our_name_stay_its_own() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"clusterIP": "None"}}
    work = job_object({})
    serving = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}
    serving["spec"] = {"selector": {"matchLabels": {"app": "x"}}, "template": work["spec"]["template"]}
    made = _made(_job(serving, service))
    assert made.owned[0][1]["spec"] == {"clusterIP": "None"}
    own = {"chipwise.dev/job": "train-k3x9q", "chipwise.dev/attempt": "1"}
    assert made.main[1]["spec"]["selector"]["matchLabels"] == {"app": "x", **own}
