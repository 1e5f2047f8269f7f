"""The door of a service: TLS alone, the right pods behind it, no path that should be closed, and honest about sign-in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import gateway, kubernetes
from fixed_deployments import CASES

SERVE, WIDE = CASES["serve"], CASES["wide"]


def made(planned: Deployment, kind: str, target: Any = gateway) -> dict[str, Any]:
    every = [one for file in target.render(planned) for one in yaml.safe_load_all(file.text)]
    return next(one for one in every if one["kind"] == kind)


def picker(planned: Deployment) -> dict[str, Any]:
    return dict(made(planned, "Deployment")["spec"]["template"]["spec"])


def test_nothing_listens_without_tls() -> None:
    [listener] = made(SERVE, "Gateway")["spec"]["listeners"]
    assert (listener["protocol"], listener["port"], listener["tls"]["mode"]) == ("HTTPS", 443, "Terminate")
    assert listener["tls"]["certificateRefs"] == [{"kind": "Secret", "name": "chat-api-tls"}]
    assert listener["allowedRoutes"]["namespaces"]["from"] == "Same"
    assert listener["hostname"] in made(SERVE, "HTTPRoute")["spec"]["hostnames"]


@pytest.mark.parametrize(
    ("provider", "inside"), [("aws", "aws-load-balancer-scheme"), ("azure", "azure-load-balancer-internal")]
)
def test_the_balancer_is_inside_the_network(provider: str, inside: str) -> None:
    planned = replace(SERVE, node=replace(SERVE.node, provider=provider))
    notes = made(planned, "Gateway")["spec"]["infrastructure"]["annotations"]
    assert any(inside in key for key in notes)


def test_google_has_a_class_of_its_own_and_no_time_limit() -> None:
    planned = replace(SERVE, node=replace(SERVE.node, provider="gcp"))
    assert made(planned, "Gateway")["spec"]["gatewayClassName"] == "gke-l7-rilb"
    assert "timeouts" not in made(planned, "HTTPRoute")["spec"]["rules"][0]
    assert "istio.yaml" not in {file.path for file in gateway.render(planned)}


def test_only_what_users_ask_is_let_through() -> None:
    [rule] = made(SERVE, "HTTPRoute")["spec"]["rules"]
    paths = [one["path"] for one in rule["matches"]]
    assert all(one["type"] == "Exact" for one in paths)
    assert "/v1/chat/completions" in {one["value"] for one in paths}
    assert not {"/metrics", "/health", "/"} & {one["value"] for one in paths}


def test_the_longest_answer_is_not_cut_off() -> None:
    [rule] = made(SERVE, "HTTPRoute")["spec"]["rules"]
    assert SERVE.predicted.longest_s is not None
    assert int(rule["timeouts"]["request"].removesuffix("s")) > SERVE.predicted.longest_s


def test_the_route_leads_to_the_pool_and_the_pool_to_its_picker() -> None:
    pool = made(SERVE, "InferencePool")
    [rule] = made(SERVE, "HTTPRoute")["spec"]["rules"]
    assert rule["backendRefs"] == [
        {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": pool["metadata"]["name"]}
    ]
    reference, service = pool["spec"]["endpointPickerRef"], made(SERVE, "Service")
    assert reference["name"] == service["metadata"]["name"]
    assert reference["port"]["number"] in {one["port"] for one in service["spec"]["ports"]}
    [container] = picker(SERVE)["containers"]
    words = container["args"]
    assert words[words.index("--pool-name") + 1] == pool["metadata"]["name"]
    assert words[words.index("--pool-namespace") + 1] == pool["metadata"]["namespace"]


@pytest.mark.parametrize(("planned", "kind"), [(SERVE, "Deployment"), (WIDE, "LeaderWorkerSet")], ids=["serve", "wide"])
def test_the_pool_has_the_pods_that_answer_and_not_the_picker(planned: Deployment, kind: str) -> None:
    wanted = made(planned, "InferencePool")["spec"]["selector"]["matchLabels"]
    spec = made(planned, kind, kubernetes)["spec"]
    pod = spec["template"] if kind == "Deployment" else spec["leaderWorkerTemplate"]["leaderTemplate"]
    given = pod["metadata"]["labels"] | {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
    assert wanted.items() <= given.items()
    assert ("leaderworkerset.sigs.k8s.io/worker-index" in wanted) == (kind == "LeaderWorkerSet")
    own = made(planned, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert own["app.kubernetes.io/name"] != wanted["app.kubernetes.io/name"]
    [main] = pod["spec"]["containers"]
    ports = {one["containerPort"] for one in main["ports"]}
    assert {one["number"] for one in made(planned, "InferencePool")["spec"]["targetPorts"]} <= ports


def test_prompts_with_the_same_beginning_meet_again() -> None:
    config = yaml.safe_load(made(SERVE, "ConfigMap")["data"]["plugins.yaml"])
    known = {one["type"] for one in config["plugins"]}
    [profile] = config["schedulingProfiles"]
    weights = {one["pluginRef"]: one["weight"] for one in profile["plugins"]}
    assert weights["prefix-cache-scorer"] == max(weights.values())
    assert set(weights) <= known
    sglang = replace(SERVE, software=replace(SERVE.software, engine="sglang"))
    other = yaml.safe_load(made(sglang, "ConfigMap")["data"]["plugins.yaml"])
    assert {"type": "core-metrics-extractor", "parameters": {"defaultEngine": "sglang"}} in other["plugins"]


def test_the_picker_passes_a_restricted_namespace_and_may_only_read() -> None:
    spec = picker(SERVE)
    assert spec["securityContext"]["runAsNonRoot"] is True
    [container] = spec["containers"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    verbs = {verb for rule in made(SERVE, "Role")["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}


def test_one_picker_at_a_time_and_answers_without_it() -> None:
    spec = made(SERVE, "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    assert made(SERVE, "InferencePool")["spec"]["endpointPickerRef"]["failureMode"] == "FailOpen"


def test_the_file_says_that_it_asks_nobody_who_they_are() -> None:
    text = next(file.text for file in gateway.render(SERVE) if file.path == "gateway.yaml")
    assert "IT ASKS NOBODY WHO THEY ARE" in text


@pytest.mark.parametrize("case", ["train", "batch", "notebooks", "device", "pipeline", "small"])
def test_what_has_no_prompts_is_refused_with_a_remedy(case: str) -> None:
    with pytest.raises(CannotRender) as refused:
        gateway.render(CASES[case])
    assert refused.value.remedy


def test_an_engine_that_the_picker_cannot_read_is_refused() -> None:
    with pytest.raises(CannotRender, match="tgi"):
        gateway.render(replace(SERVE, software=replace(SERVE.software, engine="tgi")))
