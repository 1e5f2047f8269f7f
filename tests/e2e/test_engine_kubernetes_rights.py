"""Who may do what: the written Role and nothing else, a right that is missing, and input that the cluster refuses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import kubernetes_rights as rights
from chipwise.adapters.engines.kubernetes.engine import Config, Kubernetes, connect
from chipwise.adapters.engines.kubernetes.kinds import CLUSTER_QUEUE, JOB, NODE
from chipwise.errors import BadInput, NotAllowed, NotFound
from chipwise.runner.engine import Clear, End, Leave, Start, State
from chipwise.runner.job import Job, Phase
from engines.kubernetes import job_object
from kube import kubelet
from kube.control_plane import Cluster
from kube.credentials import kubeconfig
from kube.led import placed, service_objects, until
from kube.process import wait_for

pytestmark = pytest.mark.e2e
ROLE = Path(__file__).parents[2] / "docs" / "running" / "kubernetes-role.yaml"
Grant = Callable[..., None]


@pytest.fixture
def engine(cluster: Cluster, namespace: str) -> Iterator[Kubernetes]:
    made = connect(Config(cluster.kubeconfig(), namespace=namespace, record="mine", stray_after_s=0.0))
    yield made
    made.close()


@pytest.fixture
def nobody(cluster: Cluster, namespace: str, tmp_path: Path) -> Config:
    """A ServiceAccount that was given nothing, as its own token shows it to the server."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner", "namespace": namespace}}
    cluster.must_apply([account])
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/runner/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = cluster.api.call("POST", path, asked).must()["status"]["token"]
    made = kubeconfig(tmp_path / "runner", cluster.server, cluster.folder / "authority.crt", token)
    return Config(made, namespace=namespace, record="mine", stray_after_s=0.0)


@pytest.fixture
def grant(cluster: Cluster, namespace: str) -> Iterator[Grant]:
    """Applies what the page says to apply: the file, with the two names put in; these kinds of it."""

    def given(*kinds: str, without: tuple[str, str] = ("", "")) -> None:
        text = ROLE.read_text().replace("NAMESPACE", namespace).replace("SOMEBODY", f"system:serviceaccount:{namespace}:runner")
        for one in yaml.safe_load_all(text):
            for rule in one.get("rules", ()):
                if without[0] in rule["resources"]:
                    rule["verbs"] = [verb for verb in rule["verbs"] if verb != without[1]]
            if one["kind"] in kinds:
                cluster.must_apply([one])

    yield given
    cluster.api.delete("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", f"{rights.NAME}-{namespace}")
    cluster.api.delete("rbac.authorization.k8s.io/v1", "ClusterRole", rights.NAME)


def _may(engine: Kubernetes) -> bool:
    try:
        engine.look([], time.time())
    except NotAllowed:
        return False
    return True


def test_the_written_role_alone_is_enough_for_a_service_account(
    cluster: Cluster, namespace: str, nobody: Config, grant: Grant
) -> None:
    cluster.fake_node(f"{namespace}-a", {}, {"node.kubernetes.io/instance-type": "m7i.large"})
    grant("Role", "RoleBinding")
    engine = connect(nobody)
    try:
        wait_for("the rights to hold", lambda: _may(engine), 20)
        assert engine.queue_for("vision") == ""
        job, service = placed("one", job_object({kubelet.ON_TERM: "75"})), placed("web", *service_objects(), service=True)
        ended = placed("ended", job_object({}))
        for one in (job, service, ended):
            engine.check(one)
            engine.do(Start(one))
            sight = until(engine, one, lambda sight: sight.state is State.RUNNING)
            assert sight.place is None  # nodes are not for this role to read
        for one in (job, service):
            engine.do(Leave(one, time.time() + 20, "a test"))
            handle = until(engine, one, lambda sight: sight.state is State.EXITED).handle
            engine.do(Clear(handle))
        engine.do(End(ended))
        gone = replace(ended, phase=Phase.RUNNING)  # so that the server itself is asked
        until(engine, gone, lambda sight: sight.state is State.LOST)
        engine.do(Clear("ended-gate"))
        refused = {one.watched.kind for one in engine.watches if isinstance(one.trouble, NotAllowed)}
        assert refused <= {NODE, CLUSTER_QUEUE}
    finally:
        engine.close()


def test_with_the_cluster_role_a_job_tells_which_machine_it_got(
    cluster: Cluster, namespace: str, nobody: Config, grant: Grant
) -> None:
    cluster.fake_node(f"{namespace}-a", {}, {"node.kubernetes.io/instance-type": "m7i.large"})
    grant("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
    engine = connect(nobody)
    try:
        wait_for("the rights to hold", lambda: _may(engine), 20)
        job = placed("one", job_object({}))
        engine.do(Start(job))
        sight = until(engine, job, lambda sight: sight.state is State.RUNNING)
        assert sight.place is not None
        assert sight.place.machine == "m7i.large"
        assert not [one.trouble for one in engine.watches if isinstance(one.trouble, NotAllowed)]
    finally:
        engine.close()


def test_without_rights_the_first_that_is_missing_is_named_with_the_file_that_has_them(namespace: str, nobody: Config) -> None:
    engine = connect(nobody)
    job = placed("one", job_object({}))
    try:
        with pytest.raises(NotAllowed, match=rf"You may not list .* in namespace {namespace}.*kubernetes-role.yaml"):
            engine.look([job], time.time())
        with pytest.raises(NotAllowed, match="You may not create configmaps"):
            engine.do(Start(job))
        with pytest.raises(NotAllowed, match=r"You may not patch jobs\.batch"):
            engine.check(job)
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("right", "told"),
    [
        (("pods", "watch"), "You may not watch pods in namespace"),
        (("configmaps", "create"), "You may not create configmaps in namespace"),
        (("jobs", "create"), "You may not create jobs.batch in namespace"),
        (("services", "patch"), "You may not patch services in namespace"),
    ],
)
def test_one_right_that_is_missing_is_told_by_name(
    namespace: str, nobody: Config, grant: Grant, right: tuple[str, str], told: str
) -> None:
    grant("Role", "RoleBinding", without=right)
    engine = connect(nobody)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "work"}, "spec": {"ports": [{"port": 80}]}}
    job = placed("one", service, job_object({}))
    try:
        wait_for("the other rights to hold", lambda: _lists(engine), 20)
        with pytest.raises(NotAllowed, match=told):
            wait_for("a refusal", lambda: _turned(engine, job), 20)
    finally:
        engine.close()


def _lists(engine: Kubernetes) -> bool:
    try:
        engine.connection.list(JOB)
    except NotAllowed:
        return False
    return True


def _turned(engine: Kubernetes, job: Job) -> None:
    engine.look([job], time.time())
    engine.do(Start(job))


def test_bad_input_gets_one_sentence_and_leaves_nothing_behind(cluster: Cluster, namespace: str, engine: Kubernetes) -> None:
    with pytest.raises(BadInput, match=r"needs an image.*--image"):
        engine.do(Start(placed("plain")))
    wrong = job_object({})
    wrong["spec"]["backofLimit"] = 1
    with pytest.raises(BadInput, match="backofLimit"):
        engine.do(Start(placed("wrong", wrong)))
    assert not cluster.api.list("batch/v1", "Job", namespace)
    nowhere = connect(Config(cluster.kubeconfig(), namespace="no-such-namespace"))
    try:
        with pytest.raises(NotFound, match="no namespace no-such-namespace"):
            nowhere.do(Start(placed("one", job_object({}))))
    finally:
        nowhere.close()


def test_what_the_cluster_would_refuse_is_told_before_anything_is_made(
    cluster: Cluster, namespace: str, engine: Kubernetes
) -> None:
    engine.check(placed("fine", *service_objects()))
    wrong = job_object({})
    wrong["spec"]["backofLimit"] = 1
    with pytest.raises(BadInput, match="backofLimit"):
        engine.check(placed("wrong", wrong))
    nowhere = connect(Config(cluster.kubeconfig(), namespace="no-such-namespace"))
    try:
        with pytest.raises(NotFound, match="no namespace no-such-namespace"):
            nowhere.check(placed("one", job_object({})))
    finally:
        nowhere.close()
    for version, kind in (("batch/v1", "Job"), ("apps/v1", "Deployment"), ("v1", "PersistentVolumeClaim")):
        assert not cluster.api.list(version, kind, namespace)
