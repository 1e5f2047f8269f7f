"""A profile survives its file, and a file that is not one says all that is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.errors import InvalidFile
from chipwise.perf.profile import DEVICE_KINDS, Profile, ProfileSample, dump, parse

SAMPLE = ProfileSample("gemm", (("m", 16), ("k", 4096), ("n", 14336)), "bf16", 3.055e-05, 1.879e9, 1.18e8, 0.003)
PROFILE = Profile("NVIDIA H200", "cuda", "H200-SXM-141GB", "2026-01-31", "torch 2.11.0, CUDA 13.0", (SAMPLE,))

names = st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,20}", fullmatch=True)
lines = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=40)
amounts = st.floats(0, 1e300)
samples = st.builds(
    ProfileSample,
    kind=names,
    shape=st.lists(st.tuples(names, st.integers(0, 2**63 - 1)), max_size=5, unique_by=lambda pair: pair[0]).map(tuple),
    precision=names,
    seconds=st.floats(1e-12, 1e6),
    flop=amounts,
    bytes=amounts,
    spread=amounts,
)
profiles = st.builds(
    Profile,
    device=lines,
    device_kind=st.sampled_from(DEVICE_KINDS),
    chip=st.none() | lines,
    date=st.dates().map(str),
    software=lines,
    samples=st.lists(samples, max_size=4).map(tuple),
    notes=st.lists(lines, max_size=3).map(tuple),
)


def changed(**fields: Any) -> str:
    return json.dumps(json.loads(dump(PROFILE)) | fields)


def changed_sample(**fields: Any) -> str:
    whole = json.loads(dump(PROFILE))
    return json.dumps(whole | {"samples": [whole["samples"][0] | fields]})


def problems(text: str) -> str:
    with pytest.raises(InvalidFile) as caught:
        parse(text, "p.json")
    assert all(line.startswith("p.json") for line in caught.value.message.splitlines())
    assert "chipwise profile" in str(caught.value)
    return caught.value.message


def refusal(text: str) -> str | None:
    try:
        parse(text, "p.json")
    except InvalidFile as error:
        return error.message
    return None


@given(profiles)
def test_a_profile_is_read_back_as_it_was_written(profile: Profile) -> None:
    assert parse(dump(profile), "p.json") == profile


def test_each_sample_has_a_line_of_its_own() -> None:
    twice = Profile("d", "cpu", None, "2026-01-31", "s", (SAMPLE, SAMPLE))
    assert len([line for line in dump(twice).splitlines() if '"gemm"' in line]) == 2


def test_rates_and_intensity_follow_from_the_sample() -> None:
    assert SAMPLE.flop_per_s == pytest.approx(61.5e12, rel=0.01)
    assert SAMPLE.bytes_per_s == pytest.approx(3.86e12, rel=0.01)
    assert SAMPLE.intensity == pytest.approx(15.9, rel=0.01)
    assert (SAMPLE.size("m"), SAMPLE.size("compiled")) == (16, None)


def test_a_copy_has_no_intensity() -> None:
    assert ProfileSample("copy", (), "any", 1.0, 0.0, 10.0, 0.0).intensity is None


def test_a_profile_without_a_chip_or_notes_is_read() -> None:
    whole = json.loads(dump(PROFILE))
    del whole["chip"], whole["notes"]
    assert parse(json.dumps(whole), "p.json").chip is None


@given(st.data())
def test_a_file_that_was_cut_off_is_refused(data: st.DataObject) -> None:
    text = dump(PROFILE).rstrip()
    assert "p.json" in problems(text[: data.draw(st.integers(0, len(text) - 1))])


@given(st.text(max_size=200))
def test_any_other_text_is_refused_with_our_own_error(text: str) -> None:
    problems(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(["device", "device_kind", "date", "software", "samples", "notes", "format", "chip"]), json_values)
def test_any_value_in_any_field_is_read_or_refused(field: str, value: object) -> None:
    said = refusal(changed(**{field: value}))
    assert said is None or field in said


@given(st.sampled_from(["kind", "shape", "precision", "seconds", "flop", "bytes", "spread"]), json_values)
def test_any_value_in_any_field_of_a_sample_is_read_or_refused(field: str, value: object) -> None:
    said = refusal(changed_sample(**{field: value}))
    assert said is None or f"samples[0].{field}" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("[]", "JSON list, not an object"),
        ("null", "JSON null, not an object"),
        ("{", "ends too early"),
        ("{'a': 1}", "is not JSON"),
        ("[" * 100_000, "too deep"),
        ('{"format": ' + "9" * 10_000 + "}", "too long"),
        ("{}", "samples: is missing"),
        (changed(format=2), "format: is 2; this version of chipwise reads 1"),
        (changed(device_kind="tpu"), "Allowed: cuda, rocm, cpu"),
        (changed(date="yesterday"), "not a date"),
        (changed(device=""), "device: "),
        (changed(device="a\nb"), "device: "),
        (changed(chips=1), "chips: is not a field here"),
        (changed(samples={}), "samples: is a JSON object, not a list"),
        (changed(samples=[1]), "samples[0]: is a JSON number, not an object"),
        (changed(samples=[{}]), "samples[0].seconds: is missing"),
        (changed(samples=[None] * 100_001), "samples: has 100,001 entries"),
        (changed_sample(seconds=0), "samples[0].seconds: is 0; it must be above zero"),
        (changed_sample(seconds=True), "not a finite number"),
        (changed_sample(seconds="1"), "not a finite number"),
        (changed_sample(flop=-1.5), "samples[0].flop: is -1.5; it must be zero or more"),
        (changed_sample(bytes=float("nan")), "samples[0].bytes: is NaN, not a finite number"),
        (changed_sample(bytes=10**400), "samples[0].bytes: is 1000"),
        (changed_sample(spread=float("inf")), "samples[0].spread: is Infinity"),
        (changed_sample(shape={"m": 1.5}), "samples[0].shape.m: is 1.5, not a whole number"),
        (changed_sample(shape={"m": -1}), "samples[0].shape.m: is -1"),
        (changed_sample(shape=[16]), "samples[0].shape: is a JSON list"),
        (changed_sample(kind="Big Gemm"), "samples[0].kind: "),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    assert said in problems(text)


def test_all_problems_are_told_at_once() -> None:
    said = problems(changed(device=1, date="x", samples=[{}, json.loads(dump(PROFILE))["samples"][0] | {"flop": -1}]))
    assert all(field in said for field in ("device", "date", "samples[0].kind", "samples[1].flop"))


def test_a_huge_file_is_refused_before_it_is_read() -> None:
    assert "characters" in problems(" " * (33 * 1024 * 1024))


def test_a_number_that_is_none_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        dump(Profile("d", "cpu", None, "2026-01-31", "s", (ProfileSample("add", (), "fp32", float("nan"), 1.0, 1.0, 0.0),)))
