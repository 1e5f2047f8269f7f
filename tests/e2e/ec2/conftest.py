"""One moto server for all of this folder, emptied before each test, with a proxy of our own before it that injects faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aws_stand_in import AMI, Aws, started
from chipwise.adapters.engines.ec2.engine import Ec2, connect
from ec2_account import config
from engines.ec2 import REGION, Rented, harness
from faulty_aws import Faulty, faulty


@pytest.fixture(scope="session")
def server() -> Iterator[tuple[Aws, Faulty]]:
    pytest.importorskip("moto", reason="moto: not installed")
    with started() as aws, faulty(aws.url) as between:
        aws.client("ec2", REGION).describe_images(ImageIds=[AMI])  # what it loads at the first question takes a while
        yield aws, between


@pytest.fixture
def aws(server: tuple[Aws, Faulty], monkeypatch: pytest.MonkeyPatch) -> Aws:
    for name, value in server[0].environment().items():
        if name.startswith("AWS_") and name != "AWS_ENDPOINT_URL":
            monkeypatch.setenv(name, value)
    server[0].reset()
    server[1].clear()
    server[0].client("s3", "us-east-1").create_bucket(Bucket="kept")
    server[0].client("sqs", REGION).create_queue(QueueName="events")
    return server[0]


@pytest.fixture
def between(server: tuple[Aws, Faulty]) -> Faulty:
    return server[1]


@pytest.fixture(scope="session")
def clients() -> dict[int, dict[str, Any]]:
    """Kept over tests, by the number of tries: making one takes a second."""
    return {1: {}, 3: {}}


@pytest.fixture(scope="session")
def clients_north() -> dict[str, Any]:
    """Of a second region."""
    return {}


@pytest.fixture
def engine(aws: Aws, between: Faulty, clients: dict[int, dict[str, Any]]) -> Ec2:
    made = connect(config(aws, between))
    made.regions.first._clients = clients[1]
    return made


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Rented]:
    """An account whose machines really execute their user data."""
    made = harness(tmp_path)
    try:
        yield made
    finally:
        made.close()
