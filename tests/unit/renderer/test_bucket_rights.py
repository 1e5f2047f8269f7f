"""What rendered roles may do with buckets, and what buckets refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chipwise.renderer.bucket_rights import refused_without_tls
from chipwise.renderer.cluster import buckets
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
