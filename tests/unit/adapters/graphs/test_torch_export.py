"""Archives of torch.export. `exported.json` is the graph that torch 2.15 wrote for this module, less its traces and strides:

picture (2, 3, 16, 16): Conv2d(3, 8, 3), BatchNorm2d, relu, Conv2d(8, 8, 3, groups=8), ConvTranspose2d(8, 4, 2, stride=2)
words (2, 6): Embedding(1000, 32), Linear(32, 96), attention in 4 heads, bmm with a computed 32 x 32 matrix, Linear(32, 10)
"""

from __future__ import annotations

import json
import random
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.graphs import torch_export
from chipwise.adapters.graphs.sizes import Sizes
from chipwise.adapters.graphs.torch_export import read
from chipwise.errors import BadInput, ChipwiseError
from chipwise.workload.graph.summary import lines_of, missing, shape_of
from chipwise.workload.graph.values import OperatorKind
from effort import seeds

EXPORTED = (Path(__file__).parent / "exported.json").read_text(encoding="utf-8")
USUAL = Sizes()
PLACES, TOKENS, WIDTH, BATCH = 16 * 16, 6, 32, 2


def archive(path: Path, content: str | bytes = EXPORTED, member: str = "net/models/model.json") -> Path:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("net/data/weights/weight_0", b"")
        made.writestr(member, content)
    return path


def test_its_operators_count_what_is_computed_by_hand(tmp_path: Path) -> None:
    graph = read(archive(tmp_path / "net.pt2"), USUAL)
    assert (graph.batch, graph.image_size) == (BATCH, 16)
    assert {line.kind: line.macs // BATCH for line in lines_of(graph) if line.macs} == {
        OperatorKind.CONVOLUTION: PLACES * 8 * 27 + PLACES * 8 * 4 * 4,
        OperatorKind.DEPTHWISE: PLACES * 8 * 9,
        OperatorKind.DENSE: TOKENS * WIDTH * 96 + WIDTH * 10,
        OperatorKind.ATTENTION: 2 * TOKENS * TOKENS * WIDTH + TOKENS * WIDTH * WIDTH,
    }
    dense = (8 * 27 + 8) + 2 * 8 + (8 * 9 + 8) + (8 * 4 * 4 + 4) + (WIDTH * 96 + 96) + (WIDTH * 10 + 10)
    assert (graph.parameters, graph.tables) == (dense + 1000 * WIDTH, 1000 * WIDTH)
    assert shape_of(graph).macs * BATCH == sum(line.macs for line in lines_of(graph))
    assert missing(graph) == ()


def test_archives_of_older_versions_name_the_graph_otherwise(tmp_path: Path) -> None:
    older = read(archive(tmp_path / "old.pt2", member="serialized_exported_program.json"), USUAL)
    assert older == read(archive(tmp_path / "net.pt2"), USUAL)


def test_only_the_sizes_that_it_was_exported_with_can_be_asked(tmp_path: Path) -> None:
    path = archive(tmp_path / "net.pt2")
    assert read(path, Sizes(batch=2, image_size=16)).batch == 2
    with pytest.raises(BadInput, match="exported with the image size 16"):
        read(path, Sizes(image_size=224))


def test_operators_of_others_are_said(tmp_path: Path) -> None:
    changed = EXPORTED.replace("torch.ops.aten.relu.default", "torch.ops.own.sorcery.default").replace(
        "torch.ops.aten.batch_norm.default", "torch.ops.aten.witchcraft.default"
    )
    (sentence,) = missing(read(archive(tmp_path / "net.pt2", changed), USUAL))
    assert "sorcery" in sentence
    assert "witchcraft" in sentence


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a zip file", b"\x00" * 100])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "net.pt2").write_bytes(content)
    with pytest.raises(BadInput, match=r"net\.pt2"):
        read(tmp_path / "net.pt2", USUAL)


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 100_000, '{"graph_module": {"graph": 3, "signature": []}}'])
def test_an_archive_with_another_graph_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(BadInput, match=r"net\.pt2"):
        read(archive(tmp_path / "net.pt2", content), USUAL)


def test_a_graph_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_export, "GRAPH_BYTES", 10_000)
    with pytest.raises(BadInput, match="more than"):
        read(archive(tmp_path / "net.pt2"), USUAL)


@pytest.mark.chance
@pytest.mark.parametrize("seed", seeds(40))
def test_a_damaged_archive_gives_counts_or_a_sentence(tmp_path: Path, seed: int) -> None:
    chance, path = random.Random(seed), tmp_path / "net.pt2"
    for _ in range(15):
        program = json.loads(EXPORTED)
        for _ in range(chance.choice((1, 3))):
            _damage(program, chance)
        content = bytearray(archive(path, json.dumps(program)).read_bytes())
        if chance.random() < 0.4:
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content[: chance.randrange(len(content))] if chance.random() < 0.1 else content)
        with suppress(ChipwiseError):
            shape_of(read(path, USUAL))


def _damage(value: Any, chance: random.Random) -> None:
    """Something within it becomes another thing."""
    while isinstance(value, dict | list) and value:
        place = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if chance.random() < 0.2 or not isinstance(value[place], dict | list) or not value[place]:
            value[place] = chance.choice([None, -1, 2**70, "x", [], {}, {"as_int": -5}, 0.5, True])
            return
        value = value[place]
