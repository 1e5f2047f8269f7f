"""Services in a cluster on a real control plane: made, followed, scaled, replaced and taken back, stopped, and found again.

Real are the commands, the server, its scheduler and every controller. Played are machines (`kube.kubelet`), and where it says
so the pods are processes of this machine (`kube.process_kubelet`).
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.engines.kubernetes.engine import Config, connect
from chipwise.adapters.engines.kubernetes.services import Services
from chipwise.errors import BadInput, ChipwiseError, NoResult, NotAllowed, TryLater
from chipwise.renderer.served_in_cluster import in_cluster, version_of
from chipwise.serving.cluster import Ailment
from chipwise.serving.engine import ReplicaRequest
from chipwise.serving.service import ClusterVersion, ReplicaNeeds, ServiceVersion
from cutting_proxy import cutting
from fixed_deployments import CASES
from kube import kubelet
from kube.control_plane import Cluster
from kube.credentials import kubeconfig
from kube.led import service_objects
from kube.process import wait_for
from kube.process_kubelet import ProcessKubelet
from kube.programs import manifests as published
from kube.user import GOES, User

pytestmark = pytest.mark.e2e
ROLE = Path(__file__).parents[2] / "docs" / "serving" / "kubernetes-role.yaml"
MADE = (*GOES, ("v1", "ServiceAccount"), ("v1", "PersistentVolumeClaim"))
CHAT = """
kind: serve
name: chat
model: llama-3.1-8b
arrival: {rate: 1 req/s}
input_tokens: 500
output_tokens: 200
replicas: {min: 1, max: 1}
limits: {clouds: [aws], regions: [eu-west-1], chips: [a10g]}
"""
SERVER = """
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"version one")
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


class Said(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


@pytest.fixture
def services(cluster: Cluster, namespace: str) -> Iterator[Services]:
    engine = connect(Config(cluster.kubeconfig(), namespace=namespace, record="mine"))
    yield engine.services()
    engine.close()


def _version(number: int = 1, replicas: int = 1, starts_s: float = 30.0, **container: Any) -> ServiceVersion:
    objects = [json.loads(json.dumps(item)) for item in service_objects(replicas)]
    [holder] = [item for item in objects if item["kind"] == "Deployment"]
    holder["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    holder["spec"]["template"]["spec"]["containers"][0] |= container
    part = ClusterVersion("a", tuple(objects), starts_s)
    return ServiceVersion(number, "vllm", ReplicaRequest("m", "m"), 0.0, ReplicaNeeds(team="search"), part)


def _left(cluster: Cluster, namespace: str) -> list[str]:
    found = [(kind, item["metadata"]) for version, kind in MADE for item in cluster.api.list(version, kind, namespace)]
    return [f"{kind}/{meta['name']}" for kind, meta in found if meta["name"] != "default"]


def _must_leave_nothing(cluster: Cluster, namespace: str) -> None:
    def probe() -> bool:
        assert not _left(cluster, namespace)
        return True

    wait_for("its objects to go", probe, 30)


def _within(found: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    def probe() -> Any:
        result = found()
        assert result, what
        return result

    return wait_for(what, probe, seconds)


def test_a_service_is_made_scaled_replaced_and_removed_and_a_bad_version_is_taken_back(
    cluster: Cluster, namespace: str, services: Services
) -> None:
    cluster.fake_node(f"{namespace}-a", {})
    said, first = Said(), _version()
    services.check("web", first)
    assert _left(cluster, namespace) == [], "a look beforehand makes nothing"
    services.start("web", first, None, said)
    assert said[-1] == "1 of 1 replicas ready"
    sight = services.look("web")
    assert (sight.version, sight.available, sight.fewest_replicas, sight.most_replicas) == (1, 1, 1, 3)
    services.scale("web", first, 2, None, said)
    assert "its autoscaler keeps 2 to 3 replicas" in said
    assert services.look("web").available == 2
    bad = _version(2, image=f"a{kubelet.NOT_THERE}")
    services.check("web", bad)
    with pytest.raises(NoResult, match=r"Version 2 was taken back: .* cannot be pulled.*program.image"):
        services.replace("web", first, bad, 4.0, said)
    sight = services.look("web")
    assert (sight.version, sight.available, sight.is_complete) == (1, 2, True), "two replicas as before"
    services.replace("web", first, _version(3, image="a:3"), None, said)
    sight = services.look("web")
    assert (sight.version, sight.available, {replica.version for replica in sight.replicas if not replica.ending}) == (
        3,
        2,
        {3},
    )
    services.stop("web", said, now=False)
    assert said[-1] == "web ended, with 2 replicas"
    _must_leave_nothing(cluster, namespace)
    services.stop("web", said, now=False)
    assert said[-1] == "nothing of web was left there"


def test_why_replicas_do_not_come_is_told_with_what_helps(cluster: Cluster, namespace: str, services: Services) -> None:
    said, version = Said(), _version(starts_s=2.0)
    with pytest.raises(ChipwiseError, match=r"nothing came for [\d.]+ s: no node fits.*render --to karpenter"):
        services.start("web", version, None, said)
    assert any("no node fits" in line for line in said)
    cluster.fake_node(f"{namespace}-a", {})
    _within(lambda: services.look("web").is_complete, "it to serve after all")
    [pod] = cluster.pods(namespace)
    last = {"exitCode": 2, "reason": "Error", "startedAt": "2026-11-15T00:00:00Z", "finishedAt": "2026-11-15T00:00:05Z"}
    container = {
        "name": "main",
        "image": "x",
        "imageID": "",
        "ready": False,
        "restartCount": 3,
        "lastState": {"terminated": last},
    }
    status = {"containerStatuses": [container], "conditions": [{"type": "Ready", "status": "False"}]}
    cluster.api.merge("v1", "Pod", pod["metadata"]["name"], {"status": status}, namespace, status=True).must()
    trouble = _within(lambda: services.look("web").trouble, "its crashes to be seen")
    assert (trouble.ailment, trouble.crashes) == (Ailment.CRASHES, 3)
    cluster.api.delete("apps/v1", "Deployment", "web", namespace)
    assert _within(lambda: not services.look("web").kind, "it to be gone")
    services.stop("web", said, now=True)
    _must_leave_nothing(cluster, namespace)


def test_what_somebody_else_made_is_never_touched(cluster: Cluster, namespace: str, services: Services) -> None:
    spec = {"selector": {"a": "b"}, "ports": [{"port": 1}]}
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": namespace}, "spec": spec}
    [before] = cluster.must_apply([other], namespace)
    refusal = f"Namespace {namespace} has a Service web that this `chipwise serve` did not make"
    with pytest.raises(BadInput, match=refusal):
        services.check("web", _version())
    with pytest.raises(BadInput, match=refusal):  # as where it was made just after the look
        services.start("web", _version(), None, Said())
    elsewhere = replace(services, record="other")
    with pytest.raises(BadInput, match=f"Namespace {namespace} has a"):
        elsewhere.check("web", _version())
    elsewhere.stop("web", Said(), now=True)
    services.stop("web", Said(), now=True)
    after = cluster.api.get("v1", "Service", "web", namespace)
    assert after is not None
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_server_that_goes_away_in_the_middle_is_asked_again_and_what_was_applied_stays(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    with cutting(int(cluster.server.rpartition(":")[2]), b"never said") as wire:
        text = cluster.kubeconfig().read_text().replace(cluster.server, f"https://127.0.0.1:{wire.port}")
        (tmp_path / "config").write_text(text)
        engine = connect(Config(tmp_path / "config", namespace=namespace, record="mine"))
        services, said, version = engine.services(), Said(), _version()
        starting = threading.Thread(target=services.start, args=("web", version, None, said))
        starting.start()
        _within(lambda: any("no node fits" in line for line in said), "it to wait for a machine")
        wire.refuses = True
        wire.cut_all()
        _within(lambda: any("does not answer, and is asked again" in line for line in said), "it to be told")
        with pytest.raises(TryLater, match="cannot be reached"):
            services.look("web")
        cluster.fake_node(f"{namespace}-a", {})
        wire.refuses = False
        starting.join(30)
        assert "the cluster answers again" in said
        assert said[-1] == "1 of 1 replicas ready"
        services.stop("web", said, now=True)
        engine.close()
    _must_leave_nothing(cluster, namespace)


def test_the_written_role_alone_is_enough_and_without_it_its_file_is_named(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "server", "namespace": namespace}}
    cluster.must_apply([account])
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/server/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    token = cluster.api.call("POST", path, asked).must()["status"]["token"]
    config = kubeconfig(tmp_path / "server", cluster.server, cluster.folder / "authority.crt", token)
    engine = connect(Config(config, namespace=namespace, record="mine"))
    services, first = engine.services(), _version()
    with pytest.raises(NotAllowed, match=rf"You may not list .* in namespace {namespace}.*docs/serving/kubernetes-role.yaml"):
        services.check("web", first)
    somebody = f"system:serviceaccount:{namespace}:server"
    cluster.must_apply(ROLE.read_text().replace("NAMESPACE", namespace).replace("SOMEBODY", somebody))
    cluster.fake_node(f"{namespace}-a", {})
    wait_for("the rights to hold", lambda: _may(services, first), 20)
    services.start("web", first, None, Said())
    services.scale("web", first, 1, 2, Said())
    services.replace("web", first, _version(2, image="a:2"), None, Said())
    services.stop("web", Said(), now=True)
    engine.close()


def _may(services: Services, version: ServiceVersion) -> bool:
    try:
        services.check("web", version)
        services.queue_for("", "")
    except NotAllowed:
        return False
    return True


def test_a_group_of_machines_is_made_and_removed_as_a_whole(cluster: Cluster, namespace: str, services: Services) -> None:
    cluster.install("lws", published("lws", "definitions"))
    _within(lambda: cluster.api.call("GET", "/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets").accepted, "groups to be kept")
    version = version_of(in_cluster(CASES["wide"], "wide", None), 1, 0.0, "", ReplicaNeeds(), "")
    services.check("wide", version)
    with pytest.raises(ChipwiseError, match=r"nothing came for .*its pods are being created"):
        services.start("wide", version, 2.0, Said())
    assert services.look("wide").kind == "LeaderWorkerSet"
    services.stop("wide", Said(), now=True)
    assert cluster.api.list("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", namespace) == []
    assert [name for name in _left(cluster, namespace) if "PersistentVolumeClaim" not in name] == []


def test_a_replica_is_a_real_program_that_answers_until_its_service_is_stopped(
    cluster: Cluster, namespace: str, services: Services, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    kubelet.node(f"{namespace}-a")
    (tmp_path / "server.py").write_text(SERVER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    services.start("web", _version(command=[sys.executable, str(tmp_path / "server.py"), str(port)]), None, Said())
    url = f"http://127.0.0.1:{port}/"
    assert _within(lambda: _answer(url), "an answer") == b"version one"
    services.stop("web", Said(), now=False)
    assert _answer(url) == b""


def _answer(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            answer: bytes = reply.read()
            return answer
    except OSError:
        return b""


def _machine(cluster: Cluster, namespace: str, gpus: int) -> None:
    """Like the one of its plan, and a volume for its claim where it has one."""
    [holder] = _within(lambda: cluster.api.list("apps/v1", "Deployment", namespace), "its Deployment", 60)
    terms = holder["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = {rule["key"]: rule["values"][0] for rule in terms["nodeSelectorTerms"][0]["matchExpressions"]}
    cluster.fake_node(f"{namespace}-planned", {"nvidia.com/gpu": str(gpus)}, labels)
    for claim in cluster.api.list("v1", "PersistentVolumeClaim", namespace):
        name = claim["metadata"]["name"]
        spec = {
            "capacity": claim["spec"]["resources"]["requests"],
            "accessModes": claim["spec"]["accessModes"],
            "hostPath": {"path": "/nowhere"},
            "claimRef": {"namespace": namespace, "name": name},
            "persistentVolumeReclaimPolicy": "Retain",
        }
        meta = {"name": f"{namespace}-{name}"}
        cluster.must_apply([{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": meta, "spec": spec}])


def _status(user: User) -> Mapping[str, Any]:
    shown: list[dict[str, Any]] = user.shown("serve", "status", "--json").json
    return shown[0] if shown else {}


def test_a_planned_workload_is_served_by_the_command_line_alone(
    cluster: Cluster, namespace: str, user: User, tmp_path: Path
) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT)
    with user.shell("serve", str(path), "--engine", "cluster") as killed:
        _within(lambda: _status(user).get("trouble"), "its status to say why it waits: for a machine, or a volume", 60)
        killed.send_signal(signal.SIGKILL)
    assert _status(user)["place"].endswith(f"/{namespace}"), "whoever was killed, it is found again"
    assert user.shown("serve", "stop", "chat", "--now").code == 0
    _must_leave_nothing(cluster, namespace)
    with user.shell("serve", str(path), "--engine", "cluster") as serving:
        _machine(cluster, namespace, gpus=2)
        out = serving.communicate(timeout=90)[0].decode()
    assert serving.returncode == 0, out
    assert f"chat serves at http://chat.{namespace}.svc:80" in out
    assert f"From here: kubectl -n {namespace} port-forward svc/chat 8080:80" in out
    again = user.shown("serve", str(path), "--engine", "cluster")
    assert (again.code, "chat is running already" in again.err) == (2, True)
    path.write_text(CHAT + "program: {engine: vllm, image: 'example.com/vllm:is-not-there'}\n")
    bad = user.shown("serve", "rollout", "chat", "--ready-within", "4s")
    assert bad.code == 1, bad.err
    assert "Version 2 was taken back" in " ".join(bad.err.split())
    status = _status(user)
    assert (status["available"], [version["version"] for version in status["versions"]]) == (1, [1])
    scaled = user.shown("serve", "scale", "chat", "2")
    assert (scaled.code, _status(user)["available"]) == (0, 2), scaled.err
    shown = user.shown("serve", "status").out
    assert "2 of 2 replicas ready" in shown
    assert f"{namespace}-planned" in shown
    assert user.shown("serve", "stop", "chat", "--now").code == 0
    _must_leave_nothing(cluster, namespace)
    twice = user.shown("serve", "stop", "chat")
    assert (twice.code, "No service is called 'chat'" in twice.err) == (2, True)


def test_where_it_cannot_be_served_one_sentence_says_why_and_nothing_is_recorded(
    cluster: Cluster, namespace: str, user: User, tmp_path: Path
) -> None:
    path = tmp_path / "chat.yaml"
    path.write_text(CHAT)
    nowhere = user.shown("serve", str(path), "--engine", "cluster", "--namespace", "nowhere")
    assert (nowhere.code != 0, "There is no namespace nowhere" in " ".join(nowhere.err.split())) == (True, True), nowhere.err
    fields = {"kind": "kubernetes", "kubeconfig": str(cluster.kubeconfig("stranger")), "namespace": namespace}
    missing = {"kind": "kubernetes", "kubeconfig": str(tmp_path / "missing")}
    (user.chipwise.config_dir / "engines.yaml").write_text(json.dumps({"strange": fields, "missing": missing}))
    strange = user.shown("serve", str(path), "--engine", "strange")
    assert (strange.code != 0, "docs/serving/kubernetes-role.yaml" in strange.err.replace("\n", "")) == (True, True), (
        strange.err
    )
    lacking = user.shown("serve", str(path), "--engine", "missing")
    assert (lacking.code != 0, "There is no kubeconfig" in lacking.err) == (True, True), lacking.err
    assert user.shown("serve", "status", "--json").json == []
