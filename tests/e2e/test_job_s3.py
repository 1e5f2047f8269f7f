"""Checkpoints in S3, through s3fs and a real moto server. s3fs holds an older botocore than ours: its programs run in an
environment of their own (`make tools`), which has no more of us than the source."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from held_s3 import HeldS3, serving
from render_checks import python_of

pytestmark = pytest.mark.e2e
SOURCE = Path(__file__).resolve().parents[2] / "src"
BEGIN = """
import json, os, sys, time
import numpy as np
import chipwise.job as job
from chipwise.errors import ChipwiseError
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import Fenced
url = sys.argv[1]
"""
TRAIN = """
state = {"w": np.zeros(8), "rng": np.random.default_rng(1)}
for step in job.steps(state, total=30, every=3, directory=url):
    print(step, flush=True)
    state["w"] += state["rng"].normal(size=8)
    time.sleep(0.03)
print(state["w"].tobytes().hex())
"""
SAVE_TWO = """
with Checkpoints(url, keep=3) as kept:
    for step in (1, 2):
        kept.save(step, {"w": np.full(2_500_000, float(step))}, wait=True)  # 20 MB: several parts
"""
LOAD = """
found = Checkpoints(url).load()
print(json.dumps(None if found is None else [found.step, float(found.state["w"].min()), float(found.state["w"].max())]))
"""


class S3:
    def __init__(self, server: HeldS3) -> None:
        self.server = server
        self.settings = {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "PYTHONPATH": str(SOURCE),
            "FSSPEC_S3": '{"default_block_size": 5242880}',  # the least that S3 takes as a part; 50 MB where nobody says
        }
        self.client: Any = boto3.client(
            "s3", endpoint_url=server.url, aws_access_key_id="testing", aws_secret_access_key="testing", region_name="us-east-1"
        )
        self.bucket = f"b-{uuid.uuid4().hex}"
        self.client.create_bucket(Bucket=self.bucket)
        self.url = f"s3://{self.bucket}/team/run-1"
        self.started: list[subprocess.Popen[str]] = []

    def start(self, code: str, **env: str) -> subprocess.Popen[str]:
        words = [python_of("s3fs"), "-W", "ignore", "-c", BEGIN + code, self.url]
        held = subprocess.Popen(
            words, env={**os.environ, **self.settings, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.started.append(held)
        return held

    def run(self, code: str, **env: str) -> str:
        process = self.start(code, **env)
        said, complained = process.communicate(timeout=120)
        assert process.returncode == 0, complained
        return said

    def load(self) -> Any:
        return json.loads(self.run(LOAD))

    def keys(self, ending: str = "") -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return sorted(one["Key"] for one in found if one["Key"].endswith(ending))


@pytest.fixture(scope="module")
def server() -> Iterator[HeldS3]:
    with serving() as held:
        yield held


@pytest.fixture
def s3(server: HeldS3) -> Iterator[S3]:
    made = S3(server)
    yield made
    server.let_go()
    for one in made.started:
        if one.poll() is None:
            one.kill()
        one.communicate()


def test_a_run_that_is_killed_again_and_again_ends_as_if_it_never_was_and_keeps_two(s3: S3) -> None:
    whole = s3.url
    s3.url = f"{whole}-undisturbed"
    wanted = s3.run(TRAIN).split()
    s3.url = whole
    kills, again = 0, s3.start(TRAIN)
    while kills < 6:
        assert again.stdout is not None
        again.stdout.readline()
        time.sleep(0.1 + 0.05 * kills)
        if again.poll() is not None:
            break
        again.kill()
        again.communicate()
        kills += 1
        again = s3.start(TRAIN)
    said = again.communicate(timeout=120)[0].split()
    assert kills >= 3
    assert said[-1] == wanted[-1]
    assert len([key for key in s3.keys("manifest.json") if "/run-1/" in key]) == 2
    assert len([key for key in s3.keys("state") if "/run-1/" in key]) == 2


@pytest.mark.parametrize("moment", ["a part", "the last part joined", "the manifest"])
def test_a_kill_in_the_middle_of_an_upload_leaves_the_checkpoint_before(s3: S3, moment: str) -> None:
    def upload(method: str, path: str, query: dict[str, str]) -> bool:
        if "step-000000000002" not in path:
            return False
        if moment == "a part":
            return method == "PUT" and query.get("partNumber") == "2"
        if moment == "the last part joined":
            return method == "POST" and "uploadId" in query
        return method == "PUT" and path.endswith("manifest.json")

    s3.server.hold(upload)
    saving = s3.start(SAVE_TWO)
    assert s3.server.reached.wait(300), "the upload never came so far"
    saving.kill()
    assert saving.wait(10) == -9
    assert not [key for key in s3.keys("manifest.json") if "step-000000000002" in key]
    assert s3.load() == [1, 1.0, 1.0]
    s3.server.let_go()  # what was under way comes late, as it may with a real store
    time.sleep(0.5)
    step, low, high = s3.load()
    assert low == high == step
    assert step in ((1, 2) if moment == "the manifest" else (1,)), "only a manifest that arrives late makes a checkpoint"


def test_after_a_killed_upload_the_same_step_is_saved_anew(s3: S3) -> None:
    s3.server.hold(lambda method, path, query: "step-000000000002" in path and query.get("partNumber") == "1")
    saving = s3.start(SAVE_TWO)
    assert s3.server.reached.wait(300)
    saving.kill()
    saving.wait(10)
    s3.server.let_go()
    s3.run(SAVE_TWO, CHIPWISE_ATTEMPT="2")
    assert s3.load() == [2, 2.0, 2.0]


def test_a_damaged_object_leads_to_the_checkpoint_before(s3: S3) -> None:
    s3.run(SAVE_TWO)
    [key] = [key for key in s3.keys("state") if "step-000000000002" in key]
    content = bytearray(s3.client.get_object(Bucket=s3.bucket, Key=key)["Body"].read())
    content[-1] ^= 1
    s3.client.put_object(Bucket=s3.bucket, Key=key, Body=bytes(content))
    assert s3.load() == [1, 1.0, 1.0]


SHARD = """
rank = int(os.environ["RANK"])
with Checkpoints(url, rank=rank, world=2, attempt=1, patience_s=60) as kept:
    for step in (3, 6):
        kept.save(step, {"w": np.full(1_500_000, float(10 * step + rank))}, wait=True)  # 12 MB
"""
LOAD_SHARD = """
with Checkpoints(url, rank=int(os.environ["RANK"]), world=2, attempt=2) as kept:
    found = kept.load()
    print(json.dumps([found.step, float(found.state["w"].min()), float(found.state["w"].max())]))
"""
LATE = """
try:
    with Checkpoints(url, rank=0, world=2, attempt=1, patience_s=5) as kept:
        kept.save(9, {"w": np.zeros(3)}, wait=True)
except Fenced as error:
    print("fenced")
"""


def test_shards_of_two_processes_are_one_checkpoint_and_an_older_attempt_is_fenced(s3: S3) -> None:
    both = [s3.start(SHARD, RANK=str(rank)) for rank in range(2)]
    for one in both:
        assert one.wait(120) == 0, one.communicate()[1]
    for rank in range(2):
        assert json.loads(s3.run(LOAD_SHARD, RANK=str(rank))) == [6, 60.0 + rank, 60.0 + rank]
    assert s3.run(LATE) == "fenced\n"


def test_a_shard_that_never_came_makes_no_checkpoint(s3: S3) -> None:
    """One of two is killed while it writes: the other has nothing to go on from but the step before."""
    s3.server.hold(lambda method, path, query: method == "PUT" and "step-000000000006" in path and ".rank-1-of-2." in path)
    both = [s3.start(SHARD, RANK=str(rank)) for rank in range(2)]
    assert s3.server.reached.wait(300), "the second shard was never written"
    for one in both:
        one.kill()
        one.wait(10)
    assert json.loads(s3.run(LOAD_SHARD, RANK="0")) == [3, 30.0, 30.0]


def test_a_bucket_that_does_not_exist_is_told_and_not_made(s3: S3) -> None:
    s3.url = "s3://no-such-bucket-of-ours/run"
    code = """
try:
    Checkpoints(url).save(1, {"n": 1}, wait=True)
except ChipwiseError as error:
    print(error)
"""
    assert "no-such-bucket-of-ours" in s3.run(code)
    assert "no-such-bucket-of-ours" not in [one["Name"] for one in s3.client.list_buckets()["Buckets"]]


def test_what_a_stage_leaves_in_s3_is_told_from_what_is_missing_empty_or_forbidden(s3: S3) -> None:
    s3.client.put_object(Bucket=s3.bucket, Key="made/model.bin", Body=b"weights")
    s3.client.put_object(Bucket=s3.bucket, Key="made/none.bin", Body=b"")
    look = """
from chipwise.adapters.hand_offs import lacks
root = url.rpartition("/team")[0]
names = ("made/model.bin", "made", "made/", "made/none.bin", "made/mod", "other")
print(json.dumps([lacks(f"{root}/{name}") for name in names] + [lacks("s3://no-such-bucket/a")]))
"""
    there = f"s3://{s3.bucket}/"
    assert json.loads(s3.run(look)) == [
        "",
        "",
        "",
        f"{there}made/none.bin is empty",
        f"{there}made/mod is not there",
        f"{there}other is not there",
        "s3://no-such-bucket/a is not there",
    ]
    cut = """
from chipwise.adapters.hand_offs import lacks
from chipwise.errors import OutsideFailed
try:
    print(lacks(url))
except OutsideFailed as error:
    print(type(error).__name__)
"""
    assert s3.run(cut, AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_MAX_ATTEMPTS="1").strip() == "TryLater"
