"""Processors and slices of chips as candidates of the ordinary plan; what is left out unpredicted could not have won."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from brute_planner import NEARLY, Brute, Wanted
from chipwise.api.session.wiring import Session, open_session
from chipwise.api.verbs import plan
from chipwise.perf.transformer import layer_of
from chipwise.planner.generation import search as generation
from chipwise.planner.generation.job import ServingJob
from chipwise.planner.ground import ground_for
from effort import LONG, seeds, some

SMALL: dict[str, Any] = {
    "kind": "serve",
    "name": "small",
    "model": "llama-3.2-1b",
    "arrival": {"rate_per_s": 0.2},
    "input_tokens": {"mean": 500},
    "output_tokens": {"mean": 100},
    "goals": {"ttft_s": 4.0, "tpot_s": 0.15},
    "replicas": {"min": 1},
    "limits": {"precision": ["bf16", "int8"], "chip_count": {"max": 8}},
}


@pytest.fixture(scope="module")
def session() -> Session:
    return open_session()


def wanted(**change: Any) -> Wanted:
    return Wanted(SMALL | change | {"limits": SMALL["limits"] | change.get("limits", {})})


def processors(session: Session) -> list[str]:
    fleet = ground_for(session.known, wide=True).fleet
    return sorted({one.chip for at, one in enumerate(fleet.shapes) if fleet.part(at).kind == "cpu"})


@pytest.mark.parametrize("seed", seeds(6))
def test_no_processor_or_slice_is_cheaper_than_the_winner(session: Session, seed: int, tmp_path: Path) -> None:
    random = Random(f"small {seed}")
    chips = [*random.sample(processors(session), 3), random.choice(("L4", "A10", "RTX-PRO-6000-SE"))]
    asked = wanted(
        arrival={"rate_per_s": random.choice((0.05, 0.3, 2.0))},
        limits={"chips": chips},
        goals={"ttft_s": random.choice((1.0, 4.0)), "tpot_s": random.choice((0.05, 0.2))},
    )
    found, tried = plan(session, asked.write(tmp_path / "w.yaml")), Brute(session).generation(asked)
    assert found.counts.considered == tried.considered
    kept = [usd for usd, _ in tried.sensible(timed=False)]
    assert (found.winner is None) is not bool(kept)
    if found.winner is not None:
        assert min(kept) * (1 - 1e-9) <= found.winner.usd <= min(kept) * (1 + NEARLY)


def test_a_small_model_may_run_on_a_processor_and_on_a_slice(session: Session, tmp_path: Path) -> None:
    alone = wanted(limits={"chips": processors(session)})
    found = plan(session, alone.write(tmp_path / "cpu.yaml")).winner
    assert found is not None
    assert found.family == "CPU"
    assert "vCPU" in found.chip
    sliced = wanted(limits={"chips": ["L4"], "clouds": ["aws"]})
    found = plan(session, sliced.write(tmp_path / "slice.yaml")).winner
    assert found is not None
    assert "1/" in found.chip


SQUEEZED = pytest.mark.xfail(
    strict=True, reason="steps that are squeezed into a full replica's capacity fall below the time to read the weights"
)


@pytest.mark.chance
@pytest.mark.parametrize(
    ("model", "prompt", "answer"),
    [
        ("llama-3.1-8b", 100, 50),
        ("mixtral-8x7b", 3000, 500),
        *(
            [
                pytest.param("mixtral-8x7b", 100, 50, marks=SQUEEZED),
                ("llama-3.2-1b", 100, 50),
                ("llama-3.2-1b", 3000, 500),
                ("llama-3.1-8b", 3000, 500),
            ]
            if LONG
            else []
        ),
    ],
)
def test_rows_that_are_not_predicted_would_keep_no_goal(
    session: Session, model: str, prompt: int, answer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = ground_for(session.known, wide=True).fleet
    found = session.find_model(model, online=False)
    shape: Any = found.shape
    shapes = some([at for at in range(len(fleet.shapes)) if fleet.part(at).kind not in ("fpga", "edge")])
    for goals in (
        {("tpot", 0.5): 0.02},
        {("ttft", 0.5): 0.2},
        {("latency", 0.9): 6.0},
        {("tpot", 0.95): 0.1, ("ttft", 0.9): 2.0},
    ):
        job = ServingJob(
            model=found.name,
            layer=layer_of(shape),
            input_len=prompt,
            output_len=answer,
            prefix_len=0.0,
            precisions=("bf16", "fp8", "int8"),
            kv_precision=None,
            goals=goals,
            rate=1.0,
        )
        fast = generation.search(job, fleet, session.known.model, shapes, (1, 512))
        with monkeypatch.context() as patched:
            patched.setattr(generation, "_hopeless", lambda job, ask: np.zeros(len(ask), dtype=bool))
            slow = generation.search(job, fleet, session.known.model, shapes, (1, 512))
        assert (fast.predicted <= slow.predicted).all()
        np.testing.assert_allclose(fast.rate, slow.rate, rtol=1e-9)
