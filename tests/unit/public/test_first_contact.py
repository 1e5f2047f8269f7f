"""What people try first in a notebook: lists, printing, help, and calls that Python would refuse in its own words."""

from __future__ import annotations

import pydoc
from collections.abc import Callable
from typing import Any

import pytest

import chipwise as cw

API: Any = cw  # calls that a type checker would not let pass
SERVE: dict[str, Any] = {"serve": True, "rps": 5, "input": 1000, "output": 300, "cloud": "aws", "chip": "l40s"}


@pytest.fixture(scope="module")
def plan(session: cw.Session) -> cw.Plan:
    planned = session.plan("llama-3.1-8b", **SERVE)
    assert isinstance(planned, cw.Plan)
    return planned


def test_software_that_is_refused_is_false_and_is_printed(session: cw.Session) -> None:
    meanings = session.explain("H100-SXM", components={"cuda": "11.6"})
    assert not meanings
    assert "refused: cuda 11.6 on H100-SXM" in repr(meanings)
    assert "refused" in meanings._repr_html_()
    assert len(repr(meanings).splitlines()) <= 20
    assert session.explain("H100-SXM", components={"cuda": "12.6"})
    assert session.explain("h100")


def test_several_names_are_given_as_a_list(session: cw.Session, plan: cw.Plan, tmp_path: Any) -> None:
    both = plan.why(["h100", "l4"])
    assert plan.why("h100,l4") == both
    assert [tuple(one.text) for one in both.whys] == [tuple(plan.why(name).text) for name in ("h100", "l4")]
    assert API.chips(["h100", "l4"]) == cw.chips("h100", "l4")
    files: Any = plan.render
    assert files(["dockerfile"]) == plan.render("dockerfile") == plan.render(to="dockerfile")
    for name in ("one", "two"):
        plan.render("kubernetes").write(tmp_path / name)
    audited = session.audit([tmp_path / "one", tmp_path / "two"])
    assert len(audited.files) == 2 * len(session.audit(tmp_path / "one").files)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: API.explain(None), "name=None is not a string."),
        (lambda: API.Serve("llama-3.1-8b", 5), "Serve takes its fields by name. For example: Serve("),
        (lambda: API.Pipeline("x"), "Pipeline takes its fields by name."),
        (lambda: API.offers(limit=-1), "limit=-1 is below zero."),
        (lambda: API.open(directory=1), "open takes config_dir"),
        (lambda: API.tco("h100", utilisation=60), "help(cw.tco) says what it takes."),
        (lambda: API.predict("llama-3.1-8b", train=True, on="h100", tp=3), "help(cw.predict) says what it takes."),
        (lambda: API.run(["true"], gpus=-1), 'gpus="2-4"'),
        (lambda: API.run(cw.Train(model="llama-3.1-8b", tokens="1B")), 'cw.Train(..., program={"command": ['),
    ],
)
def test_what_does_not_go_is_our_own_error(home: Any, call: Callable[[], object], message: str) -> None:
    with pytest.raises(cw.BadInput) as caught:
        call()
    assert message in str(caught.value)


def test_a_reason_needs_a_name(plan: cw.Plan) -> None:
    asked: Any = plan.why
    with pytest.raises(cw.BadInput, match="name=None is not a string"):
        asked(None)
    with pytest.raises(cw.BadInput, match="No name is given"):
        asked([])


def test_a_workload_prints_what_was_stated_and_does_not_change() -> None:
    work = API.Serve("llama-3.1-8b", arrival={"rate": 5}, input_tokens=1000, output_tokens=300)
    assert work == cw.Serve(model="llama-3.1-8b", arrival={"rate": 5}, input_tokens=1000, output_tokens=300)
    printed = "Serve(model='llama-3.1-8b', arrival={'rate': 5.0}, input_tokens={'mean': 1000.0}, output_tokens={'mean': 300.0})"
    assert (repr(work), str(work)) == (printed, printed)
    with pytest.raises(cw.BadInput, match="model cannot be set"):
        work.model = "x"


def test_help_begins_with_fields_and_lists_keywords() -> None:
    assert "Serve(model, *, arrival, **fields)" in pydoc.plain(pydoc.render_doc(cw.Serve))
    assert "Keywords: name: str, engine: str" in pydoc.plain(pydoc.render_doc(cw.run))


def test_a_dictionary_is_called_as_its_kind(session: cw.Session) -> None:
    fields = {"kind": "batch", "model": "llama-3.1-8b", "items": 1000, "input_tokens": 10, "output_tokens": 10}
    assert session.check(fields).workload.name == API.Batch(**fields).name == "llama-3-1-8b-batch"


def test_a_comparison_has_the_cheapest_first(session: cw.Session, plan: cw.Plan) -> None:
    rows = session.compare("llama-3.1-8b", **{**SERVE, "cloud": None})
    costs = [row.usd for row in rows if row.fits]
    assert costs == sorted(costs)
    assert all("doubt" in row for row in rows)


def test_a_stage_of_a_pipeline_is_rendered_as_its_error_says(session: cw.Session) -> None:
    plan = session.plan("examples/pipeline/workload.yaml")
    with pytest.raises(cw.CannotRender, match='to="argo", or one stage with stage'):
        plan.render("kubernetes")
    assert isinstance(plan, cw.Plan)
    assert plan.render("kubernetes", stage="train")
