"""What machines write of themselves: whoever is root on one writes what it likes, and a controller reads it for all jobs."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chipwise.adapters.engines.ec2.kept import AttemptStore


def store(text: bytes) -> AttemptStore:
    client = SimpleNamespace(get_object=lambda **_: {"Body": BytesIO(text)})
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
