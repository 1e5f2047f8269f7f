"""Many ways lead back through a pipeline whose stages each take from all of the layer before; each job is read once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chipwise.adapters.stores.record import connect
from chipwise.api.running import jobs
from chipwise.errors import BadInput
from chipwise.runner.events import Over
from chipwise.runner.job import Job, Phase, Spec
from chipwise.runner.record import Change, Record

LAYERS = 12  # by each way on its own the last one would lead to 4,096 readings of each of the first


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Record]:
    opened = connect(str(tmp_path / "jobs.db"))
    yield opened
    opened.close()


def test_a_pipeline_of_layers_is_started_again_in_its_order_with_one_reading_of_each(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    layers = [(f"a{n:02}", f"b{n:02}") for n in range(LAYERS)]
    before = [(), *layers]
    made = record.submit([(id, Spec(("true",), id, after=before[at])) for at, layer in enumerate(layers) for id in layer], 0.0)
    record.write([Change(job, (Over(Phase.FAILED, "for some reason"),)) for job in made], 1.0)
    reads: list[str] = []
    read = record.job

    def counted(id: str) -> Job | None:
        reads.append(id)
        return read(id)

    monkeypatch.setattr(record, "job", counted)
    last = read(layers[-1][0])
    assert last is not None
    with pytest.raises(BadInput, match="a11 comes after b10") as refused:
        jobs.in_order(record, [last])
    assert "retry a00 b00 a01 b01 " in str(refused.value)
    assert len(reads) <= 4 * LAYERS


def test_a_chain_longer_than_a_stack_is_followed_to_its_beginning(record: Record) -> None:
    names = [f"j{n}" for n in range(1500)]
    made = record.submit(
        [(id, Spec(("true",), id, after=tuple(names[max(at - 1, 0) : at]))) for at, id in enumerate(names)], 0.0
    )
    record.write([Change(job, (Over(Phase.FAILED, "x"),)) for job in made], 1.0)
    again = [job for id in reversed(names) if (job := record.job(id)) is not None]
    assert [job.id for job in jobs.in_order(record, again[-2:])] == names[:2]
    with pytest.raises(BadInput, match="j1499 comes after j1498"):
        jobs.in_order(record, again[:1])
