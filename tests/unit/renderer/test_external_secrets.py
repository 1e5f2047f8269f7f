"""Secrets that a workload names come from the store of its cloud; their values are nowhere in the files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import yaml

from chipwise.errors import InvalidFile
from chipwise.files.source import read_text
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.layouts.laying import LAYOUTS, lay_out
from chipwise.renderer.named_targets import files, target
from chipwise.renderer.targets import external_secrets
from chipwise.workload.parse import parse
from deployments import EXAMPLES
from fixed_deployments import CASES

SERVE = CASES["serve"]
PULLS = replace(SERVE, software=replace(SERVE.software, pull_secret="registry-login"))


def made(what: Deployment) -> list[dict[str, Any]]:
    return [one for file in external_secrets.render(what) for one in yaml.safe_load_all(file.text)]


def test_each_secret_is_what_the_pods_refer_to() -> None:
    store, secret = made(SERVE)
    assert store["spec"]["provider"]["aws"] == {"service": "SecretsManager", "region": SERVE.node.region}
    assert secret["spec"]["secretStoreRef"]["name"] == store["metadata"]["name"]
    assert secret["spec"]["target"]["name"] == "hub-token"
    assert secret["spec"]["data"] == [{"secretKey": "token", "remoteRef": {"key": "hub-token", "property": "token"}}]
    [deployment] = [one for one in _kubernetes(SERVE) if one["kind"] == "Deployment"]
    env = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"secretKeyRef": {"name": "hub-token", "key": "token"}} in [one.get("valueFrom") for one in env]


def _kubernetes(what: Deployment) -> list[dict[str, Any]]:
    return [
        one
        for file in files("kubernetes", target("kubernetes"), what)
        for one in yaml.safe_load_all(file.text)
        if one is not None
    ]


def test_two_keys_of_one_secret_are_one_object() -> None:
    both = (("A", "hub-token", "token"), ("B", "hub-token", "other.txt"), ("C", "hub-token", ".hidden"))
    _, secret = made(replace(SERVE, software=replace(SERVE.software, secrets=both)))
    properties = [one["remoteRef"]["property"] for one in secret["spec"]["data"]]
    assert properties == ["token", "other.txt", "\\.hidden"], "a dot at the start is taken for a path"


def test_stages_of_one_namespace_have_a_secret_once() -> None:
    pipeline = CASES["pipeline"]
    stages = tuple(replace(one, software=replace(one.software, secrets=SERVE.software.secrets)) for one in pipeline.stages)
    same = tuple(replace(one, node=stages[0].node) for one in stages)
    kinds = [one["kind"] for one in made(replace(pipeline, stages=same))]
    assert kinds == ["SecretStore", "ExternalSecret"]


def test_the_login_of_a_registry_is_the_whole_secret_and_the_account_pulls_by_it() -> None:
    login = made(PULLS)[-1]
    assert login["spec"]["target"]["template"]["type"] == "kubernetes.io/dockerconfigjson"
    assert login["spec"]["data"] == [{"secretKey": ".dockerconfigjson", "remoteRef": {"key": "registry-login"}}]
    [account] = [one for one in _kubernetes(PULLS) if one["kind"] == "ServiceAccount" and one["metadata"]["name"] == PULLS.name]
    assert account["imagePullSecrets"] == [{"name": "registry-login"}]


def test_who_pulls_without_a_cluster_is_reminded_of_the_registry() -> None:
    assert "registry-login" in files("compose", target("compose"), PULLS)[0].text
    for name in ("kubernetes", "argo-rollouts", "kserve"):
        text = "".join(file.text for file in files(name, target(name), PULLS))
        assert "imagePullSecrets" in text
        assert "signed in" not in text, name


def test_stores_of_google_and_azure_are_read_as_the_workload_itself() -> None:
    google = made(replace(SERVE, node=replace(SERVE.node, provider="gcp", region="europe-west4")))[0]["spec"]["provider"]
    assert google["gcpsm"]["auth"]["workloadIdentity"]["serviceAccountRef"] == {"name": SERVE.name}
    azure = made(replace(SERVE, node=replace(SERVE.node, provider="azure", region="westeurope")))[0]["spec"]["provider"]
    assert azure["azurekv"]["authType"] == "WorkloadIdentity"


def test_what_has_no_secret_or_no_store_is_refused() -> None:
    with pytest.raises(CannotRender, match="names no secret"):
        external_secrets.render(replace(SERVE, software=replace(SERVE.software, secrets=())))
    with pytest.raises(CannotRender, match="we know nothing"):
        external_secrets.render(replace(SERVE, node=replace(SERVE.node, provider="lambda")))
    dotted = replace(SERVE.software, secrets=(("A", "hub.token", "token"),))
    with pytest.raises(CannotRender, match="Key Vault"):
        external_secrets.render(replace(SERVE, node=replace(SERVE.node, provider="azure"), software=dotted))


def test_a_workload_names_the_secret_that_pulls() -> None:
    text = read_text(str(EXAMPLES / "transcode" / "workload.yaml"))
    assert "\nprogram:" not in text
    work = parse(text + "\nprogram: {image: ghcr.io/team/x:1, pull_secret: registry-login}\n")
    assert work.program is not None
    assert work.program.pull_secret == "registry-login"
    for wrong in ("pull_secret: Registry/Login", "pull_secret: a, secrets: {X: a/b}"):
        with pytest.raises(InvalidFile, match="pull_secret"):
            parse(text + f"\nprogram: {{{wrong}}}\n")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_page_of_a_layout_says_that_environments_read_the_same_names(layout: str) -> None:
    render = partial(files, "external-secrets", target("external-secrets"))
    tree = lay_out(layout, render, SERVE, {"dev": SERVE, "prod": SERVE}, "external-secrets")
    page = next(file.text for file in tree if file.path == "README.md")
    assert "`hub-token`" in page
    assert "the same stored secrets" in page
    assert "set image" not in page, "there is none"
