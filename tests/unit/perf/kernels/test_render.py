"""Laws of rendering."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.errors import BadInput
from chipwise.perf.arrays import Coded, column
from chipwise.perf.kernels import render
from chipwise.perf.part import Parts
from chipwise.workload.kinds import Render
from chipwise.workload.parse import load

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
SPEEDS = st.floats(1e11, 1e15)


def renderers(catalog: Catalog, parts: Parts, *names: str) -> render.Renderers:
    return render.Renderers.of([catalog.chips[name] for name in names], [parts[name] for name in names])


def made(speed: float, memory: float = 24e9, pcie: float = 24e9) -> render.Renderers:
    return render.Renderers(column(speed), Coded.of("made up"), column(memory), column(pcie))


@given(SPEEDS, st.floats(1, 100), st.floats(1e9, 1e11), st.floats(1, 4), st.floats(1, 4))
def test_more_compute_memory_or_pcie_is_never_slower(
    speed: float, faster: float, scene: float, larger: float, wider: float
) -> None:
    slow = render.frame(made(speed), 8e6, 512, scene)
    fast = render.frame(made(speed * faster, 24e9 * larger, 24e9 * wider), 8e6, 512, scene)
    assert fast.total[0] <= slow.total[0] * (1 + 1e-12)


@given(st.integers(1, 100_000), st.integers(1, 1000))
def test_halving_the_chips_never_raises_throughput(frames: int, chips: int) -> None:
    each = render.frame(made(8e13), 2e6, 100)
    assert render.film(each, frames, 2 * chips).total[0] <= render.film(each, frames, chips).total[0]


@given(st.lists(st.tuples(SPEEDS, st.floats(1e4, 1e8), st.floats(1, 1e4), st.floats(0, 1e11)), min_size=1, max_size=5))
def test_the_array_call_equals_the_calls_one_by_one(rows: list[tuple[float, float, float, float]]) -> None:
    speed, pixels, samples, scene = (np.array(values) for values in zip(*rows, strict=True))
    on = render.Renderers(speed, Coded.of(["x"] * len(rows)), np.full(len(rows), 24e9), np.full(len(rows), 24e9))
    together = render.frame(on, pixels, samples, scene, "redshift")
    for i, (s, p, n, b) in enumerate(rows):
        alone = render.frame(made(s), p, n, b, "redshift")
        assert together.total[i] == pytest.approx(alone.total[0])
        assert together.total[i] == pytest.approx(sum(term[i] for term in together.seconds))


def test_the_measured_frame_comes_back_on_the_chip_it_was_measured_on(catalog: Catalog, parts: Parts) -> None:
    known = renderers(catalog, parts, "RTX-4090")
    on = renderers(catalog, parts, "RTX-4090", "L40S", "T4")
    terms = render.frame(on, 8294400, 512, 0.0, "cycles", render.Timed(known, column(95.0)))
    assert terms["tracing"][0] == pytest.approx(95.0)
    assert terms["tracing"][2] > 5 * terms["tracing"][1]
    assert max(terms.relative[:2]) < terms.relative[2]  # one architecture compares better than two


def test_a_measured_frame_is_surer_than_a_usual_cost(catalog: Catalog, parts: Parts) -> None:
    on = renderers(catalog, parts, "RTX-4090")
    usual = render.frame(on, 8294400, 512, 0.0, "cycles")
    measured = render.frame(on, 8294400, 512, 0.0, "cycles", render.Timed(on, column(95.0)))
    assert usual.relative[0] > 2 * measured.relative[0]
    assert usual.low[0] < 95.0 < usual.high[0]


def test_a_scene_that_does_not_fit_pages_or_is_refused() -> None:
    on = made(8e13, memory=16e9)
    assert render.frame(on, 2e6, 64, 10e9)["paging"][0] == 0
    assert render.frame(on, 2e6, 64, 30e9)["paging"][0] > 0
    assert render.fits(on, [10e9, 30e9], "cycles").tolist() == [True, False]
    assert render.fits(on, [10e9, 30e9], "redshift").tolist() == [True, True]


def test_the_example_workload_runs_with_its_measured_frame(catalog: Catalog, parts: Parts) -> None:
    work = load(EXAMPLES / "render" / "workload.yaml")
    assert isinstance(work, Render)
    assert work.measured is not None
    timed = render.Timed(renderers(catalog, parts, "RTX-4090"), column(work.measured[0].seconds))
    terms = render.job(work, renderers(catalog, parts, "RTX-4090", "L4"), [1, 16], timed)
    assert terms.total[0] / 5760 == pytest.approx(95, rel=0.1)
    assert render.engine_of(work) == "cycles"


def test_an_engine_we_have_no_cost_for_is_taken_as_any_other() -> None:
    work = load(EXAMPLES / "render" / "workload.yaml")
    assert isinstance(work, Render)
    assert render.engine_of(work.model_copy(update={"engine": "in-house"})) == "other"


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("engine", lambda: render.frame(made(1e13), 1, 1, engine="cyclops")),
        ("pixels", lambda: render.frame(made(1e13), 0, 1)),
        ("samples", lambda: render.frame(made(1e13), 1, -4)),
        ("chips", lambda: render.film(render.frame(made(1e13), 1, 1), 10, 0)),
        ("frames", lambda: render.film(render.frame(made(1e13), 1, 1), 0, 1)),
        ("measured.takes", lambda: render.frame(made(1e13), 1, 1, timed=render.Timed(made(1e13), column(0.0)))),
    ],
)
def test_bad_input_names_the_field(field: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(BadInput, match=f"^{field}: .*Allowed: "):
        call()
