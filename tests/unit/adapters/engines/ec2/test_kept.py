"""What machines write of themselves: whoever is root on one writes what it likes, and a controller reads it for all jobs."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chipwise.adapters.engines.ec2.kept import AttemptStore


def store(text: bytes, *names: str) -> AttemptStore:
    def listed(Prefix: str, **_: object) -> list[dict[str, Any]]:  # noqa: N803 # as boto3 names it
        return [{"Contents": [{"Key": name, "ETag": "v1"} for name in names if name.startswith(Prefix)]}]

    pages = SimpleNamespace(paginate=listed)
    client = SimpleNamespace(get_object=lambda **_: {"Body": BytesIO(text)}, get_paginator=lambda _: pages)
    config = SimpleNamespace(bucket="b", prefix="p/")
    return AttemptStore(cast(Any, SimpleNamespace(client=lambda name: client, config=config)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"step": 3, "steady": 2.5}', {"step": 3, "steady": 2.5}),
        (b'{"by": 1' + b"0" * 400 + b"}", {"by": None}),
        (b'{"by": 1' + b"0" * 5000 + b"}", {"by": None}),
        (b'{"steady": 1e308, "step": 9007199254740993}', {"steady": None, "step": None}),
        (b'{"steady": Infinity, "by": NaN, "x": -1e999}', {"steady": None, "by": None, "x": None}),
        (b"[" * 60_000, {}),
        (b'{"a": ' * 10_000, {}),
        (b'{"more": [' + b"[]," * 30_000 + b"[]]}", {}),
        (b"\xff", {}),
        (b"7", {"value": 7}),
    ],
    ids=lambda one: str(one)[:24],
)
def test_what_a_record_could_not_take_says_nothing(text: bytes, said: dict[str, object]) -> None:
    assert store(text).read(("j", 1), "progress", "v1") == said


def test_what_the_controller_wrote_itself_is_read_whole() -> None:
    ids = [f"i-{n:017x}" for n in range(10_000)]
    text = ('{"ids": ["' + '", "'.join(ids) + '"]}').encode()
    assert store(text).read(("j", 1), "fleet", "v1") == {"ids": ids}


def test_an_attempt_that_only_a_machine_wrote_of_is_no_newer_one() -> None:
    """A machine may write of any job: one object with a high number would keep another job from ever starting again."""
    forged = [f"p/live/j/{number}/{mark}" for number in (999, "9" * 900) for mark in ("begun-0", "ended-0-0", "here-i-1")]
    assert store(b"", *forged, "p/live/j/2/order", "p/over/j/1").newest("j") == 2
    assert store(b"", *forged).newest("j") == 0
