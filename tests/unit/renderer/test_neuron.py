"""On Neuron chips a rank is a core: ranks are as many as the ways of the plan say, times the cores of a chip."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from chipwise.api.render import RenderRequest, deployment_of
from chipwise.renderer.launch.starting import processes
from chipwise.renderer.layout import run_machines
from deployments import EXAMPLES
from deployments import few_session as session
from fixed_deployments import CASES
from once_in_run import once_in_run

TEXT = """\
kind: train
name: neuron-train
model: llama-3.1-8b
tokens: 20B
sequence_length: 4096
goals: {objective: cost}
limits: {chips: [Trainium1], clouds: [aws]}
"""

WAYS = ("TENSOR", "PIPELINE", "CONTEXT", "DATA")


@pytest.mark.parametrize(("chip", "cores", "ways"), [("Trainium1", 2, 2), ("Trainium2", 8, 4), ("Inferentia2", 2, 2)])
def test_two_cores_of_the_newer_chips_work_as_one(chip: str, cores: int, ways: int) -> None:
    node = replace(CASES["neuron"].node, chip=chip, cores=cores)
    assert node.ways == ways
    assert processes(replace(CASES["neuron"], node=node)) == 16 * ways


def test_ranks_are_the_product_of_the_ways_that_the_program_reads() -> None:
    path = str(EXAMPLES / "train" / "workload.yaml")
    planned = once_in_run(("neuron",), lambda: deployment_of(session(), path, RenderRequest(text=TEXT)))
    env = dict(planned.software.env)
    ranks = processes(planned) * run_machines(planned)
    assert planned.node.kind == "neuron"
    assert prod(int(env.get(f"PLAN_{way}_PARALLEL", "1")) for way in WAYS) == ranks
    assert ranks == planned.machines * planned.node.chips * planned.node.ways
