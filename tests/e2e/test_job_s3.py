"""Checkpoints in S3, through s3fs and a moto server."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import chipwise.job as job
from chipwise.errors import ChipwiseError
from chipwise.job.checkpoints import Checkpoints
from chipwise.job.errors import Fenced

s3fs = pytest.importorskip("s3fs", reason="s3fs: not installed")
pytest.importorskip("moto.server", reason="moto: not installed")
# aiohttp closes its connections when the interpreter does, and aiobotocore still names things that Python will rename.
pytestmark = [pytest.mark.e2e, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    import boto3

    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    name = f"b-{uuid.uuid4().hex}"
    boto3.client("s3").create_bucket(Bucket=name)
    return name


def keys(bucket: str) -> list[str]:
    import boto3

    return [one["Key"] for one in boto3.client("s3").list_objects_v2(Bucket=bucket).get("Contents", [])]


def test_a_run_goes_on_from_s3_and_keeps_two(bucket: str) -> None:
    url = f"s3://{bucket}/team/run-1"
    for stop in (11, 100):
        state: dict[str, Any] = {"w": np.zeros(1000), "n": 0}
        for step in job.steps(state, total=20, every=5, directory=url):
            state["w"] += step
            if step == stop:
                break
    assert state["w"][0] == sum(range(20))
    assert len([key for key in keys(bucket) if key.endswith("manifest.json")]) == 2
    assert len([key for key in keys(bucket) if key.endswith("state")]) == 2


def test_a_damaged_object_leads_to_the_checkpoint_before(bucket: str) -> None:
    import boto3

    url = f"s3://{bucket}/run"
    with Checkpoints(url) as kept:
        for step in (1, 2):
            kept.save(step, {"w": np.full(100, float(step))}, wait=True)
    key = next(key for key in keys(bucket) if "step-000000000002" in key and key.endswith("state"))
    content = bytearray(boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())
    content[-1] ^= 1
    boto3.client("s3").put_object(Bucket=bucket, Key=key, Body=bytes(content))
    found = Checkpoints(url).load()
    assert found is not None
    assert found.step == 1


def test_shards_fences_and_large_objects_work_without_renames(bucket: str) -> None:
    url = f"s3://{bucket}/run"
    places = [Checkpoints(url, rank=rank, world=2, attempt=1, patience_s=30) for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        big = [{"w": np.full(1_500_000, float(rank))} for rank in range(2)]  # 12 MB: several parts
        list(pool.map(lambda pair: pair[0].save(3, pair[1], wait=True), zip(places, big, strict=True)))
    newer = Checkpoints(url, rank=1, world=2, attempt=2)
    found = newer.load()
    assert found is not None
    assert found.state["w"][-1] == 1.0
    with pytest.raises(Fenced):
        places[0].save(4, big[0], wait=True)
    for place in [*places, newer]:
        place.close()


def test_a_bucket_that_does_not_exist_is_told_and_not_made(bucket: str) -> None:
    with pytest.raises(ChipwiseError, match="no-such-bucket-of-ours"):
        Checkpoints("s3://no-such-bucket-of-ours/run").save(1, {"n": 1}, wait=True)
