"""How operators are put into classes, and which bytes they are said to move."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import pytest

from operator_profile import bytes_of, class_of


@dataclass(frozen=True)
class Tensor:
    shape: tuple[int, ...]
    is_cuda: bool = True

    def numel(self) -> int:
        return prod(self.shape)

    def element_size(self) -> int:
        return 2

    def dim(self) -> int:
        return len(self.shape)


def tensor(*sizes: int) -> Tensor:
    return Tensor(sizes)


@pytest.mark.parametrize(
    ("weight", "groups", "kind"),
    [
        (tensor(64, 3, 7, 7), 1, "convolution"),
        (tensor(256, 64, 1, 1), 1, "pointwise convolution"),
        (tensor(96, 1, 7, 7), 96, "depthwise"),
        (tensor(128, 4, 3, 3), 32, "grouped convolution"),
    ],
)
def test_convolutions_are_told_apart_by_kernel_and_groups(weight: Tensor, groups: int, kind: str) -> None:
    assert class_of("convolution", {"weight": weight, "groups": groups}, 1.0, []) == kind
    assert class_of("convolution_backward", {"weight": weight, "groups": groups}, 1.0, []) == kind


def test_a_product_of_few_rows_is_a_class_of_its_own() -> None:
    assert class_of("mm", {}, 1.0, [tensor(4096, 1024)]) == "dense"
    assert class_of("mm", {}, 1.0, [tensor(1, 1024)]) == "dense, few rows"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_fused_adamw_", "optimizer"),
        ("_fused_rms_norm", "normalisation"),
        ("max_pool2d_with_indices", "pooling"),
        ("_softmax", "softmax"),
        ("index_put_", "gather"),
        ("_to_copy", "copy"),
        ("_native_multi_head_attention", "native attention"),
        ("gelu", "elementwise"),
    ],
)
def test_other_operators_are_classed_by_name(name: str, kind: str) -> None:
    assert class_of(name, {}, 0.0, []) == kind


def test_writing_into_a_cache_moves_what_is_written_and_not_the_cache() -> None:
    cache, token = tensor(1, 8, 131072, 128), tensor(1, 8, 1, 128)
    assert bytes_of("index_put_", {"values": token}, [cache, token], [cache]) == 2 * 8 * 128 * 2


def test_experts_without_rows_are_not_read() -> None:
    rows, experts, result = tensor(2, 64), tensor(8, 64, 32), tensor(2, 32)
    read = 2 * (2 * 64 + 2 * 32) + 2 * 64 * 32 * 2
    assert bytes_of("_grouped_mm", {}, [rows, experts], [result]) == read
