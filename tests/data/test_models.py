"""Every row of the model registry: its count against the published one, its names, its provenance."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable

import pytest

from chipwise.workload.model.registry import DATA, Model, find, load
from chipwise.workload.model.rows import read_csv
from chipwise.workload.model.shape import DecoderShape, DiffusionShape
from chipwise.workload.model.spelled import key

NAMES = load().names
TOLERANCE = 0.01


def failing(law: Callable[[Model], bool]) -> list[str]:
    """All rows that break it, in one go."""
    return [model.name for model in load() if not law(model)]


def test_the_computed_count_is_within_one_percent_of_the_published_one() -> None:
    def holds(model: Model) -> bool:
        published = model.published_parameters
        return published is not None and abs(model.shape.parameters - published) <= TOLERANCE * published

    assert failing(holds) == []


def test_a_row_says_what_it_is_and_where_it_comes_from() -> None:
    sources = ("https://", "torchvision", "MLPerf")
    assert failing(lambda model: bool(model.family)) == []
    assert failing(lambda model: model.source.startswith(sources) or "arXiv" in model.source) == []
    assert failing(lambda model: re.fullmatch(r"\d{4}-\d{2}-\d{2}", model.as_of) is not None) == []
    assert failing(lambda model: model.year is not None and 2015 <= model.year <= 2026) == []
    assert failing(lambda model: model.context is None or model.context >= 77) == []


def test_every_name_and_alias_finds_its_own_row() -> None:
    assert failing(lambda model: {find(alias).name for alias in (model.name, *model.aliases)} == {model.name}) == []


def test_active_parameters_are_never_more_than_all() -> None:
    def dense(model: Model) -> bool:
        return isinstance(model.shape, DecoderShape) and model.shape.experts is None

    assert failing(lambda model: 0 < model.shape.active_parameters <= model.shape.parameters) == []
    assert failing(lambda model: not dense(model) or model.shape.active_parameters == model.shape.parameters) == []


@pytest.mark.parametrize("name", [name for name in NAMES if isinstance(load().model(name).shape, DiffusionShape)])
def test_a_pipeline_is_published_as_the_sum_of_its_parts(name: str) -> None:
    fields = next(row.fields for row in read_csv(DATA / "diffusion.csv") if row.name == name)
    encoders = fields["text_encoders"]
    assert isinstance(encoders, list)
    parts = [fields["denoiser"], fields["vae"], *encoders]

    assert load().model(name).published_parameters == sum(find(str(part)).published_parameters or 0 for part in parts)


def test_the_registry_holds_at_least_seventy_five_models() -> None:
    assert len(NAMES) >= 75
    assert len(set(NAMES)) == len(NAMES)


def test_no_two_rows_claim_the_same_name_with_or_without_its_owner() -> None:
    claimed: dict[str, set[str]] = defaultdict(set)
    for model in load():
        for name in (model.name, *model.aliases):
            claimed[key(name)].add(model.name)
            claimed[key(_last_part(name))].add(model.name)

    assert {name: rows for name, rows in claimed.items() if len(rows) > 1} == {}


def _last_part(name: str) -> str:
    last = name.rpartition("/")[2]
    return last if last[:1].isalpha() else name


@pytest.mark.parametrize(
    ("name", "billions"),
    [  # as the model cards and reports print them
        ("mixtral-8x7b", 12.9),
        ("mixtral-8x22b", 39),
        ("deepseek-v3", 37),
        ("deepseek-v2", 21),
        ("deepseek-v2-lite", 2.4),
        ("qwen3-30b-a3b", 3.3),
        ("qwen3-235b-a22b", 22),
        ("kimi-k2", 32),
        ("llama-4-maverick", 17),
        ("qwen2-57b-a14b", 14),
    ],
)
def test_active_parameters_are_those_the_reports_state(name: str, billions: float) -> None:
    assert load().model(name).shape.active_parameters / 1e9 == pytest.approx(billions, rel=0.12)


@pytest.mark.parametrize(("name", "billions"), [("gpt-oss-20b", 3.61), ("gpt-oss-120b", 5.13)])
def test_gpt_oss_states_its_active_parameters_without_the_token_table(name: str, billions: float) -> None:
    shape = load().model(name).shape
    assert isinstance(shape, DecoderShape)

    assert (shape.active_parameters - shape.vocab * shape.hidden) / 1e9 == pytest.approx(billions, rel=0.005)
