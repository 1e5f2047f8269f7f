"""Workload files: what is accepted, how everything wrong is reported at once, overlays, pipelines, and the names they use."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from chipwise.errors import InvalidFile, Problem, UnknownName
from chipwise.files.source import Document
from chipwise.workload.choices import Method
from chipwise.workload.demand import Arrival, Length
from chipwise.workload.goals import Objective, Period, Precision
from chipwise.workload.kinds import Batch, Finetune, Serve, Train
from chipwise.workload.overlay import layer
from chipwise.workload.parse import EnvironmentData, load, parse, parse_with_lines
from chipwise.workload.pipeline import KINDS, MOST_STAGES, Pipeline, Workload
from chipwise.workload.problems import MAX_PROBLEMS
from chipwise.workload.references import Reference, ReferenceKind, references
from effort import cases
from patience import slowness

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*/workload.yaml"))
SERVE = "kind: serve\nname: chat\nmodel: llama-3.1-8b\narrival: 12 req/s\n"
TRAIN = "kind: train\nname: t\nmodel: m\n"


def problems(text: str, environment: str | None = None) -> dict[str, Problem]:
    with pytest.raises(InvalidFile) as caught:
        parse(text, "w.yaml", environment)
    return {problem.field: problem for problem in caught.value.problems}


def dumped(workload: Workload) -> str:
    return json.dumps(workload.model_dump(mode="json", by_alias=True, exclude_none=True))


def test_a_file_and_a_python_object_are_the_same() -> None:
    assert parse(SERVE) == Serve(name="chat", model="llama-3.1-8b", arrival=Arrival(rate=12))


def test_a_short_form_means_the_long_one() -> None:
    long = "kind: serve\nname: chat\nmodel: llama-3.1-8b\narrival: {rate: 12 req/s, burstiness: 1}\nschedule: {kind: always}\n"
    assert parse(SERVE + "schedule: always\n") == parse(long)
    workload = parse(SERVE + "input_tokens: 1200\nlimits: {precision: bf16}\ngoals: {budget: $2k/month}\nreplicas: 3\n")
    assert isinstance(workload, Serve)
    assert workload.input_tokens == Length(mean=1200)
    assert workload.limits.precision == (Precision.BF16,)
    assert (workload.goals.budget.usd, workload.goals.budget.per) == (2000, Period.MONTH)  # type: ignore[union-attr]
    assert (workload.replicas.min, workload.replicas.max) == (3, 3)


def test_a_field_without_a_value_counts_as_not_given() -> None:
    assert parse(SERVE + "goals:\nlimits: {clouds: }\n") == parse(SERVE)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_parsing_a_dumped_example_gives_the_same_workload(path: Path) -> None:
    workload = load(path)
    assert parse(dumped(workload)) == workload


lengths = st.floats(min_value=1, max_value=1e5).map(lambda mean: {"mean": mean})
names = st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z0-9]", fullmatch=True)
serves = st.fixed_dictionaries(
    {"kind": st.just("serve"), "name": names, "model": names, "input_tokens": lengths, "output_tokens": lengths}
    | {
        "arrival": st.one_of(
            st.fixed_dictionaries({"rate": st.floats(1e-3, 1e6)}), st.fixed_dictionaries({"concurrency": st.integers(1, 10**6)})
        )
    },
    optional={
        "goals": st.fixed_dictionaries(
            {}, optional={"objective": st.sampled_from(list(Objective)), "deadline": st.floats(1, 1e9)}
        ),
        "limits": st.fixed_dictionaries(
            {}, optional={"interruptible": st.booleans(), "countries": st.lists(st.sampled_from(["DE", "NO", "EU"]))}
        ),
        "labels": st.dictionaries(names, names, max_size=3),
        "traffic": st.just({"DE": "60%", "FR": 0.4}),
    },
)


@settings(deadline=None)
@given(serves)
def test_parsing_a_dumped_workload_gives_the_same_workload(data: dict[str, Any]) -> None:
    workload = parse(json.dumps(data, default=str))
    assert parse(dumped(workload)) == workload
    assert parse(yaml.safe_dump(json.loads(dumped(workload)))) == workload


@settings(deadline=None)
@given(serves)
def test_an_overlay_of_nothing_is_identity(data: dict[str, Any]) -> None:
    plain = parse(json.dumps(data, default=str))
    nothings: tuple[object, ...] = ({}, None)
    for nothing in nothings:
        assert parse(json.dumps(data | {"environments": {"prod": nothing}}, default=str), environment="prod") == plain


json_maps = st.recursive(
    st.dictionaries(names, st.integers() | names, max_size=3),
    lambda inner: st.dictionaries(names, inner | st.lists(st.integers()), max_size=3),
)


@given(json_maps, json_maps)
def test_what_an_overlay_says_holds_and_the_rest_stays(base: dict[str, Any], over: dict[str, Any]) -> None:
    merged = layer(Document(base | {"environments": {"e": over}}, {}), "e").data

    def holds(merged: Any, over: Any) -> bool:
        return all(holds(merged[key], over[key]) for key in over) if isinstance(over, dict) else bool(merged == over)

    assert holds(merged, over)
    assert all(merged[key] == base[key] for key in base if key not in over)


def test_all_problems_are_reported_at_once_with_line_field_choice_and_nearest_name() -> None:
    found = problems(
        "kind: serve\nname: chat\nmodell: llama\narrival: {rate: lots}\nprecision: bf61\n"
        "goals:\n  objective: cots\n  latency: {p95: -50ms, p101: 1s}\n"
        "limits:\n  residency: [Germny]\n  chip_count: {min: 8, max: 2}\n"
    )
    assert {field: problem.line for field, problem in found.items()} == {
        "modell": 3,
        "model": 1,
        "arrival.rate": 4,
        "precision": 5,
        "goals.objective": 7,
        "goals.latency.p95": 8,
        "goals.latency.p101": 8,
        "limits.residency[0]": 10,
        "limits.chip_count.min": 11,
    }
    assert found["modell"].nearest[0] == "model"
    assert found["precision"].nearest[0] == "bf16"
    assert found["goals.objective"].nearest[0] == "cost"
    assert found["limits.residency[0]"].nearest[0] == "DEU"
    assert "balanced" in str(found["goals.objective"].allowed)
    assert "12 req/s" in str(found["arrival.rate"].allowed)
    assert "environments" in str(found["modell"].allowed)


def test_a_bad_field_does_not_hide_what_does_not_fit_together() -> None:
    found = problems(TRAIN + "epochs: many\n")
    assert set(found) == {"epochs", ""}
    assert "exactly one of tokens or samples" in found[""].message


def test_a_bad_field_is_not_reported_a_second_time_as_missing() -> None:
    assert set(problems("kind: serve\nname: x\nmodel: m\narrival: {rate: lots}\n")) == {"arrival.rate"}
    assert set(problems(TRAIN + "tokens: lots\n")) == {"tokens"}


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        (TRAIN, "", "exactly one of tokens or samples"),
        (TRAIN + "tokens: 5\nsamples: 5\n", "samples", "cannot be combined"),
        (TRAIN + "tokens: 5\nbatch_tokens: 6\n", "batch_tokens", "larger than the whole job"),
        (TRAIN + "tokens: 5\nbatch_tokens: 1\nbatch_samples: 1\n", "batch_samples", "cannot be combined"),
        ("kind: finetune\nname: f\nmodel: m\nsamples: 5\nmethod: full\nrank: 8\n", "rank", "no adapters"),
        ("kind: finetune\nname: f\nmodel: m\nsamples: 5\nmethod: qlor\n", "method", "not a method"),
        ("kind: serve\nname: x\nmodel: m\narrival: {}\n", "arrival", "exactly one of rate, trace, concurrency or peak"),
        ("kind: serve\nname: x\nmodel: m\n", "arrival", "required"),
        ("kind: serve\nname: x\nmodel: m\narrival: {rate: 1/s, concurrency: 2}\n", "arrival.concurrency", "cannot be combined"),
        (SERVE + "output_tokens: 5\n", "input_tokens", "needed"),
        (SERVE + "input_tokens: {mean: 10, p50: 9, p95: 5, max: 8}\n", "input_tokens.p50", "above p95"),
        (SERVE + "input_tokens: 10\nshared_prefix_tokens: 20\n", "shared_prefix_tokens", "longer"),
        (SERVE + "input_tokens: 10\ncontext: 5\n", "context", "shorter"),
        (SERVE + "goals: {tpot: {p95: 40ms}}\n", "goals.tpot", "output token"),
        (SERVE + "goals: {latency: {p50: 2s, p99: 1s}}\n", "goals.latency", "higher percentile"),
        (SERVE + "goals: {latency: soon}\n", "goals.latency", "soon"),
        (SERVE + "goals: {latency: {}}\n", "goals.latency", "no percentile"),
        (SERVE + "limits: {purchase: spott}\n", "limits.purchase", "not a purchase option"),
        (SERVE + "limits: {purchase: spot, interruptible: false}\n", "limits.purchase", "interruptible is false"),
        (SERVE + "goals: {latency: {p0: 50ms}}\n", "goals.latency.p0", "not a percentile"),
        (SERVE + "goals: {latency: {p95: 1s}, ttft: {p95: 2s}}\n", "goals.ttft", "whole answer"),
        (SERVE + "goals: {deadline: 2027-01-01}\n", "goals.deadline", "is a date"),
        (SERVE + "goals: {finish_by: 2027-01-01T10:00}\n", "goals.finish_by", "no offset"),
        (SERVE + "goals: {finish_by: tomorrow}\n", "goals.finish_by", "not a date"),
        (SERVE + "goals: {deadline: 5h, finish_by: 2027-01-01T10:00Z}\n", "goals.finish_by", "cannot be combined"),
        (SERVE + "goals: {budget: $0}\n", "goals.budget", "above zero"),
        (SERVE + "goals: {budget: $5/fortnight}\n", "goals.budget", "not a period"),
        (SERVE + "limits: {interruptible: perhaps}\n", "limits.interruptible", "neither true nor false"),
        (SERVE + "limits: {quotas: [h100]}\n", "limits.quotas", "mapping"),
        (SERVE + "limits: {quotas: {'aws:': 5}}\n", "limits.quotas.aws:", "quota"),
        (SERVE + "limits: {quotas: {h100: -1}}\n", "limits.quotas.h100", "zero"),
        (SERVE + "limits: {compliance: hippa}\n", "limits.compliance", "not a compliance programme"),
        (SERVE + "limits: {clouds: aws, avoid: {clouds: aws}}\n", "limits.avoid.clouds", "asked for"),
        (SERVE + "limits: {countries: DE, residency: FR}\n", "limits.residency", "nothing can fit"),
        (SERVE + "limits: []\n", "limits", "mapping of fields"),
        (SERVE + "limits: {chips: {a: b}}\n", "limits.chips", "list"),
        (SERVE + "traffic: {DE: 60%, FR: 30%}\n", "traffic", "90.0%"),
        (SERVE + "traffic: {DE: 60%, Mars: 40%}\n", "traffic.Mars", "not a place"),
        (SERVE + "schedule: sometimes\n", "schedule.kind", "not a kind"),
        (SERVE + "schedule: {kind: business-hours}\n", "schedule.time_zone", "required"),
        (SERVE + "schedule: {kind: cron, expression: 0 25 * * *}\n", "schedule.expression", "hour field"),
        (SERVE + "labels: {team: 5}\n", "labels.team", "not a text"),
        (SERVE + "labels: {colour: 5}\n", "labels.colour", "not a text"),
        (SERVE + "data: {place: x}\n", "data.size", "required"),
        (SERVE.replace("chat", "my chat"), "name", "not a name"),
        (SERVE.replace("llama-3.1-8b", "[]"), "model", "not a model"),
        ("kind: hpc\nname: x\n", "", "flop_per_step"),
        ("kind: hpc\nname: x\nflop_per_step: 1\ncommunication: {pattern: halo}\n", "communication.bytes_per_step", "needed"),
        ("kind: transcode\nname: x\nstreams: 5\nsource: {codec: h264, fps: 60}\noutputs: []\n", "outputs", "empty list"),
        (SERVE + "x: 1\nlimits: {where: moon}\n", "limits.where", "not a place"),
        ("kind: stream\nname: x\noperations: [a]\nmessages: 5/s\n", "message_size", "needed"),
        ("kind: interactive\nname: x\npeople: 5\nat_once: 6\nmemory: 1GB\n", "at_once", "above people"),
        ("kind: srve\nname: x\n", "kind", "'srve' is not a kind"),
        ("name: x\n", "kind", "required"),
    ],
)
def test_what_does_not_fit_is_reported_at_its_field(text: str, field: str, words: str) -> None:
    found = problems(text)
    assert field in found, found
    assert words in found[field].message
    assert found[field].line is not None


def test_adapters_have_rank_16_unless_given() -> None:
    text = "kind: finetune\nname: f\nmodel: m\nsamples: 5\nmethod: lora\n"
    workload = parse(text)
    assert isinstance(workload, Finetune)
    assert (workload.method, workload.rank) == (Method.LORA, 16)


def test_a_file_full_of_mistakes_shows_the_first_and_counts_the_rest() -> None:
    with pytest.raises(InvalidFile) as caught:
        parse(SERVE + "".join(f"field{n}: 1\n" for n in range(2000)))
    assert len(caught.value.problems) == MAX_PROBLEMS + 1
    assert "more problems" in caught.value.problems[-1].message


def test_a_mistake_in_another_environment_is_found_too() -> None:
    text = SERVE + "environments:\n  dev:\n    replicas: {min: 3, max: 2}\n  prod: {}\n"
    found = problems(text, "prod")
    assert found["environments.dev.replicas.min"].line == 7


def test_a_mistake_that_only_one_environment_makes_names_it() -> None:
    text = SERVE + "goals: {latency: {p95: 5s}}\nenvironments: {dev: {goals: {ttft: {p95: 6s}}}, prod: {}}\n"
    assert "environments.dev.goals.ttft" in problems(text)
    text = "kind: train\nname: t\nmodel: m\nenvironments: {dev: {tokens: 1B}, prod: {}}\n"
    assert "(in environment prod)" in problems(text, "dev")[""].message


def test_a_file_may_be_complete_only_with_an_environment() -> None:
    text = "kind: train\nname: t\nmodel: m\nenvironments: {dev: {tokens: 1B}, prod: {tokens: 20B}}\n"
    assert parse(text, environment="prod") == Train(name="t", model="m", tokens="20B")
    assert set(problems(text)) == {""}


def test_an_unknown_environment_offers_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        parse(SERVE + "environments: {dev: {}, prod: {}}\n", environment="prd")
    assert caught.value.nearest[0] == "prod"
    assert "dev, prod" in str(caught.value)
    with pytest.raises(UnknownName, match="no environments"):
        parse(SERVE, environment="prod")


def test_an_overlay_merges_mappings_replaces_lists_and_removes_by_null() -> None:
    text = (
        SERVE + "limits: {clouds: [aws, gcp], chips: [h100]}\ngoals: {deadline: 5h, throughput: 5/s}\n"
        "schedule: {kind: business-hours, time_zone: Europe/Berlin}\n"
        "environments: {dev: {limits: {clouds: [azure]}, goals: {deadline: null}, "
        "schedule: {kind: market-hours, market: xetra}}}\n"
    )
    dev = parse(text, environment="dev")
    assert (dev.limits.clouds, dev.limits.chips) == (("azure",), ("h100",))
    assert (dev.goals.deadline, dev.goals.throughput) == (None, 5)
    assert dev.schedule.kind == "market-hours"


def test_more_environments_than_anyone_has_are_refused() -> None:
    text = SERVE + "environments: {" + ", ".join(f"e{n}: {{}}" for n in range(1000)) + "}\n"
    assert "too many" in problems(text)["environments"].message


@pytest.mark.parametrize(
    "text",
    [
        SERVE + "limits: {countries: [" + "Germny, " * 4000 + "]}\n",
        SERVE + "traffic: {" + ", ".join(f"Germny{n}: 1%" for n in range(2000)) + "}\n",
        SERVE + "".join(f"field{n}: 1\n" for n in range(2000)) + "environments: {a: {}, b: {}, c: {}}\n",
        "kind: pipeline\nname: p\nstages: [{kind: train, name: a, model: m, tokens: 5}]\nhand_offs:\n"
        + "".join(f"- {{from: q{n}, to: r{n}}}\n" for n in range(800)),
    ],
    ids=["countries", "traffic", "fields", "hand-offs"],
)
def test_thousands_of_mistakes_are_reported_within_a_second(text: str) -> None:
    began = time.process_time()
    problems(text)
    assert time.process_time() - began < slowness()


@pytest.mark.parametrize("value", ["5", "[dev]", "{dev: 5}", "{dev: {environments: {}}}"])
def test_environments_are_mappings_of_fields(value: str) -> None:
    assert any(field.startswith("environments") for field in problems(SERVE + f"environments: {value}\n"))


STAGES = "kind: pipeline\nname: p\nstages:\n" + "".join(f"- {{kind: train, name: {n}, model: m, tokens: 1B}}\n" for n in "abc")


def test_stages_without_hand_offs_follow_each_other() -> None:
    workload = parse(STAGES)
    assert isinstance(workload, Pipeline)
    assert workload.order == ("a", "b", "c")


def test_stages_are_ordered_by_their_hand_offs() -> None:
    workload = parse(STAGES + "hand_offs: [{from: c, to: a, size: 1GB}, {from: a, to: b, size_per_item: 4kB, format: arrow}]\n")
    assert isinstance(workload, Pipeline)
    assert workload.order == ("c", "a", "b")


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("hand_offs: [{from: a, to: b}, {from: b, to: c}, {from: c, to: a}]", "hand_offs", "circle: a -> b -> c -> a"),
        ("hand_offs: [{from: a, to: d}]", "hand_offs[0].to", "no stage is called 'd'"),
        ("hand_offs: [{from: a, to: a}]", "hand_offs[0].to", "itself"),
        ("hand_offs: [{from: a, to: b, size: 1GB, size_per_item: 1kB}]", "hand_offs[0].size_per_item", "cannot be combined"),
        ("hand_offs: [{form: a, to: b}]", "hand_offs[0].form", "not a field"),
        ("- {kind: train, name: a, model: m, tokens: 1B}", "stages[3].name", "also the name of stages[0]"),
        ("- {kind: trane, name: d}", "stages[3].kind", "'trane' is not a kind"),
        ("- {kind: pipeline, name: d, stages: []}", "stages[3].kind", "'pipeline' is not a kind"),
        (
            "- {kind: serve, name: d, model: m, arrival: 1/s, goals: {latency: {p95: fast}}}",
            "stages[3].goals.latency.p95",
            "duration",
        ),
        ("- 5", "stages[3]", "mapping"),
    ],
)
def test_a_pipeline_is_told_what_is_wrong_with_its_stages_and_hand_offs(text: str, field: str, words: str) -> None:
    found = problems(STAGES + text + "\n")
    assert field in found, found
    assert words in found[field].message


def test_names_to_resolve_lead_back_to_their_lines() -> None:
    parsed = parse_with_lines(
        STAGES + "- kind: serve\n  name: d\n  model: llama-9b\n  arrival: 1/s\n  limits:\n    chips: h100\n"
        "    regions: ['aws:us-east-1', us-west-2]\n    quotas: {'gcp:h100': 8}\ndata: {size: 1TB, place: 'aws:eu-west-1'}\n",
        "w.yaml",
    )
    found = references(parsed.source.data)
    model = next(reference for reference in found if reference.text == "llama-9b")
    assert model == Reference(ReferenceKind.MODEL, "llama-9b", ("stages", 3, "model"))
    assert parsed.source.problem(model.field_path, "no such model", near=("llama-3.1-8b",)) == Problem(
        "stages[3].model", "no such model", 9, None, ("llama-3.1-8b",)
    )
    chip = next(reference for reference in found if reference.text == "h100")
    assert (
        chip.field,
        parsed.source.problem(chip.field_path, "x").field,
        parsed.source.problem(chip.field_path, "x").line,
    ) == (
        "stages[3].limits.chips",
        "stages[3].limits.chips",
        12,
    )
    regions = {(r.provider, r.text) for r in found if r.kind is ReferenceKind.REGION}
    assert regions == {("aws", "us-east-1"), (None, "us-west-2"), ("aws", "eu-west-1")}
    assert {r.text for r in found if r.kind is ReferenceKind.PROVIDER} == {"aws", "gcp"}


def test_a_model_given_by_its_shape_is_kept_as_it_is() -> None:
    parsed = parse_with_lines("kind: batch\nname: b\nitems: 5\nmodel: {kind: decoder, layers: 2, hidden: 64}\n")
    assert isinstance(parsed.workload, Batch)
    assert parsed.workload.model == {"kind": "decoder", "layers": 2, "hidden": 64}
    assert [(r.kind, r.shape) for r in references(parsed.source.data)] == [(ReferenceKind.SHAPE, parsed.workload.model)]


def test_names_are_looked_up_in_a_file_that_has_other_mistakes_too() -> None:
    def look(laid: EnvironmentData) -> list[Problem]:
        return [laid.problem(r.field_path, f"no {r.kind} is called {r.text}") for r in references(laid.data)]

    text = "kind: serve\nname: x\nmodel: lama\narrival: {rate: 3 elephants}\nlimits: {chips: [h10, 7], clouds: awz}\n"
    with pytest.raises(InvalidFile) as error:
        parse_with_lines(text, "w.yaml", look=look)
    fields = [problem.field for problem in error.value.problems]
    assert {"model", "arrival.rate", "limits.chips[0]", "limits.chips[1]", "limits.clouds"} <= set(fields)
    assert len(fields) == len(set(fields))


def test_looking_up_names_passes_over_what_has_the_wrong_type() -> None:
    assert references({"model": 3, "limits": [], "stages": [1, {"model": []}], "data": {"place": 7}, "arrival": "x"}) == []


def test_a_trace_lies_beside_its_workload() -> None:
    workload = parse("kind: serve\nname: x\nmodel: m\narrival: {trace: traces/monday.csv}\n")
    assert isinstance(workload, Serve)
    assert workload.arrival.trace is not None
    assert workload.arrival.trace.path_from("/jobs/chat/workload.yaml") == Path("/jobs/chat/traces/monday.csv")


def test_a_workload_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        parse(SERVE).name = "other"  # type: ignore[misc]


def test_no_tag_of_a_union_is_also_a_field_beside_it() -> None:
    # Places are found by skipping the tags that pydantic puts into paths, which works as long as this holds.
    assert not {model.model_fields["kind"].default for model in KINDS} & {
        name for model in KINDS for name in model.model_fields
    }


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
keys = st.sampled_from(["rate", "p95", "kind", "min", "name", "x"])
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


@settings(deadline=None, max_examples=cases(200))
@given(anything, st.sampled_from(KINDS), st.data())
def test_nothing_in_a_field_leads_to_another_error(value: object, model: Any, data: st.DataObject) -> None:
    field = data.draw(st.sampled_from([info.alias or name for name, info in model.model_fields.items() if name != "kind"]))
    text = json.dumps({"kind": model.model_fields["kind"].default, "name": "x", field: value})
    with contextlib.suppress(InvalidFile):
        parse(text)


def test_a_list_whose_rows_are_wrong_is_not_called_empty_as_well() -> None:
    text = "kind: transcode\nname: x\nstreams: 3\nsource: {codec: h264, resolution: 1080p, fps: 60}\n"
    found = problems(text + "outputs:\n  - {codec: av1, resolution: 720p}\n")
    assert set(found) == {"outputs[0].fps"}
    assert "empty" in problems(text + "outputs: []\n")["outputs"].message


def test_a_pipeline_has_as_many_stages_as_can_be_planned_together() -> None:
    def pipeline(count: int) -> str:
        stage = "kind: hpc, steps: 1, flop_per_step: 1e9, bytes_per_step: 1MB"
        return "kind: pipeline\nname: many\nstages:\n" + "".join(f"- {{name: s{n}, {stage}}}\n" for n in range(count))

    assert parse(pipeline(MOST_STAGES))
    with pytest.raises(InvalidFile, match=rf"stages: {MOST_STAGES + 1} stages are too many .* at most {MOST_STAGES}"):
        parse(pipeline(MOST_STAGES + 1))
