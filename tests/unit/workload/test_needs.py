"""`limits.requires`: names and versions as people write them, and what is refused before anybody looks a name up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chipwise.workload.limits import Limits, Need, need_of


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("fp8", Need("fp8", "", "")),
        ("flash-attention>=2", Need("flash-attention", ">=", "2")),
        ("flash-attention 2", Need("flash-attention", "==", "2")),
        ("cuda = 12.4", Need("cuda", "==", "12.4")),
        ("cuda==12.4.1", Need("cuda", "==", "12.4.1")),
        (" vllm <= v0.20 ", Need("vllm", "<=", "0.20")),
        ("cuda<13", Need("cuda", "<", "13")),
        ("driver>=R535", Need("driver", ">=", "535")),
        ("tensorrt-llm", Need("tensorrt-llm", "", "")),
        ("cuda>>1", None),
        ("cuda>=", None),
        (">=2", None),
        ("", None),
        ("cuda>=1.2.3.4.5", None),
        ("cuda>=" + "9" * 400, None),
        ("$(rm -rf /)", None),
        ("a;b", None),
    ],
)
def test_a_need_is_taken_apart(text: str, need: Need | None) -> None:
    assert need_of(text) == need


@given(st.text(max_size=200))
def test_any_text_is_a_need_or_is_not(text: str) -> None:
    found = need_of(text)
    assert found is None or found.name


@pytest.mark.parametrize("value", [{"a": "b"}, [12], [None], [["cuda"]], "x" * 5000, "", [""], 5, ["cuda>>1"], True])
def test_what_is_no_need_is_refused(value: Any) -> None:
    with pytest.raises(ValidationError):
        Limits(requires=value)


@pytest.mark.parametrize("value", ["maybe", [], {"a": 1}])
def test_default_quotas_are_a_limit_or_are_not(value: Any) -> None:
    with pytest.raises(ValidationError):
        Limits(default_quotas=value)


def test_one_need_stands_for_a_list_of_one_and_blanks_do_not_count() -> None:
    assert Limits(requires="  flash-attention   2 ").requires == ("flash-attention 2",)
    assert Limits().requires == ()
