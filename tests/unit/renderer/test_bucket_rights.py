"""What rendered roles may do with buckets, and what buckets refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from chipwise.renderer.bucket_rights import refused_without_tls
from chipwise.renderer.cluster import buckets
from chipwise.renderer.file import CannotRender
from chipwise.renderer.named_targets import files, target, target_names
from chipwise.renderer.targets.terraform import render
from fixed_deployments import CASES
from hcl_reading import modules, text_of, values


def test_a_bucket_for_the_work_refuses_requests_without_tls_like_those_of_the_engine() -> None:
    found = modules(render(CASES["train"]))[""]
    (policy,) = values(found, "resource", "aws_s3_bucket_policy")
    (document,) = values(found, "data", "aws_iam_policy_document", "work")
    (statement,) = document["statement"]
    own = refused_without_tls(())
    assert policy["policy"] == "${data.aws_iam_policy_document.work.json}"
    assert [text_of(statement[key]) for key in ("sid", "effect")] == [own["Sid"], own["Effect"]]
    assert [text_of(one) for one in statement["actions"]] == own["Action"]
    assert len(statement["resources"]) == 2
    (condition,) = statement["condition"]
    assert {text_of(condition["test"]): {text_of(condition["variable"]): text_of(condition["values"][0])}} == own["Condition"]


@pytest.mark.parametrize(
    ("prefix", "allowed"),
    [("data", "data/*"), ("a*b", "a${*}b/*"), ("runs/one?", "runs/one${?}/*")],
    ids=["plain", "star", "mark"],
)
def test_rights_to_a_folder_of_a_bucket_reach_no_other_that_begins_alike(prefix: str, allowed: str) -> None:
    what = CASES["train"]
    volumes = tuple(replace(one, url=f"s3://mine/{prefix}") for one in what.volumes)
    (policy,) = values(modules(render(replace(what, volumes=volumes)))[""], "data", "aws_iam_policy_document", "machines")
    conditions = [one["condition"][0] for one in policy["statement"] if "s3:ListBucket" in map(text_of, one["actions"])]
    assert {text_of(value).replace("$${", "${") for one in conditions for value in one["values"]} == {allowed}
    rights: Any = buckets.policy(replace(what, volumes=volumes))["Statement"]
    listings = [one for one in rights if one["Action"] == ["s3:ListBucket"]]
    assert {value for one in listings for value in one["Condition"]["StringLike"]["s3:prefix"]} == {allowed}
    assert {one["Resource"][0] for one in rights if one not in listings} == {f"arn:aws:s3:::mine/{allowed}"}


def fenced(name: str, case: str) -> list[dict[str, Any]]:
    """The policies of the pods that work, in the files of a target."""
    try:
        made = files(name, target(name), CASES[case])
    except CannotRender:
        return []
    objects = [one for file in made if file.path.endswith(".yaml") for one in yaml.safe_load_all(file.text)]
    labels = {"app.kubernetes.io/name": CASES[case].name}
    policies = [one for one in objects if isinstance(one, dict) and one.get("kind") == "NetworkPolicy"]
    return [
        one["spec"] for one in policies if one["spec"]["podSelector"].get("matchLabels") == labels and "egress" in one["spec"]
    ]


@pytest.mark.parametrize(("case", "where"), [("train", "169.254.170.23/32"), ("tpu", "169.254.169.252/32")])
def test_pods_reach_the_address_that_hands_out_their_credentials_in_every_target(case: str, where: str) -> None:
    found = {name: fenced(name, case) for name in target_names() if getattr(target(name), "MANIFESTS", False)}
    allowed = {
        name: {
            to["ipBlock"]["cidr"] for spec in specs for rule in spec["egress"] for to in rule.get("to", []) if "ipBlock" in to
        }
        for name, specs in found.items()
        if specs
    }
    assert {"kubernetes", "ray"} <= set(allowed)
    assert {name for name, addresses in allowed.items() if where not in addresses} == set()
