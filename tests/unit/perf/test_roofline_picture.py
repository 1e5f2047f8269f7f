"""The picture is well-formed, names every kind, and stays on its page whatever the profile holds."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from chipwise.perf.profile import KINDS, Profile, ProfileSample
from chipwise.perf.roofline_picture import draw

SVG = "{http://www.w3.org/2000/svg}"


def sample(kind: str, seconds: float = 1e-3, flop: float = 1e12, moved: float = 1e9, precision: str = "bf16") -> ProfileSample:
    return ProfileSample(kind, (("m", 16), ("compiled", 1)), precision, seconds, flop, moved, 0.01)


WITHOUT_FLOP = {"copy", "copy-to-device", "copy-from-device", "embedding", "all-reduce", "all-gather", "reduce-scatter"}
PROFILE = Profile(
    "NVIDIA H200",
    "cuda",
    "H200-SXM-141GB",
    "2026-01-31",
    "torch 2.11.0",
    tuple(
        sample(
            kind,
            flop=0.0 if kind in WITHOUT_FLOP or "launch" in kind else 1e12,
            moved=0.0 if "launch" in kind else 1e9,
        )
        for kind in KINDS
    ),
)


def drawn(profile: Profile, peak: float | None = 989e12, bandwidth: float | None = 4.8e12) -> ElementTree.Element:
    return ElementTree.fromstring(draw(profile, peak, bandwidth))


def texts(picture: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in picture.iter(f"{SVG}text")]


def test_every_kind_is_named_with_its_best() -> None:
    said = texts(drawn(PROFILE))
    assert set(KINDS) <= set(said)
    assert "1 PFLOP/s in bf16 (1)" in said
    assert "1 TB/s (1)" in said
    assert "1 ms each (1)" in said


def test_a_reader_of_the_page_aloud_hears_what_it_shows() -> None:
    picture = drawn(PROFILE)
    assert picture.get("role") == "img"
    title, description = picture.find(f"{SVG}title"), picture.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text == "Roofline of NVIDIA H200"
    assert "The highest bandwidth is 1 TB/s (copy)" in (description.text or "")


def test_nothing_is_fetched_from_elsewhere() -> None:
    text = draw(PROFILE, 989e12, 4.8e12).replace("http://www.w3.org/2000/svg", "")
    assert not any(word in text for word in ("http", "url(", "@import", "<script", "<style", "href"))


def test_the_data_sheet_is_drawn_only_where_it_is_known() -> None:
    assert "data sheet 989 TFLOP/s, 4.8 TB/s" in texts(drawn(PROFILE))
    assert "data sheet 4.8 TB/s" in texts(drawn(PROFILE, None, 4.8e12))
    assert "data sheet 989 TFLOP/s" in texts(drawn(PROFILE, 989e12, None))
    assert not any("data sheet" in text for text in texts(drawn(PROFILE, None, None)))


def test_each_precision_has_its_own_level() -> None:
    both = replace(PROFILE, samples=(sample("gemm"), sample("gemm", seconds=1.01e-3, precision="fp16")))
    said = texts(drawn(both))
    assert "bf16 1 PFLOP/s" in said
    assert "fp16 990 TFLOP/s" in said


def test_a_profile_without_samples_is_a_page_that_says_so() -> None:
    assert "No sample with arithmetic" in texts(drawn(replace(PROFILE, samples=())))


def test_names_are_escaped() -> None:
    strange = replace(PROFILE, device='<b>&"\x00', chip=None)
    assert any("<b>&" in text for text in texts(drawn(strange)))


amounts = st.just(0.0) | st.floats(1e-300, 1e300)


@given(
    st.lists(st.builds(sample, st.sampled_from(sorted(KINDS)), st.floats(1e-12, 1e9), amounts, amounts), max_size=6),
    st.none() | st.floats(),
    st.none() | st.floats(),
)
def test_what_was_measured_stays_on_the_page(found: list[ProfileSample], peak: float | None, bandwidth: float | None) -> None:
    picture = drawn(replace(PROFILE, samples=tuple(found)), peak, bandwidth)
    width, height = float(picture.get("width", 0)), float(picture.get("height", 0))
    for dot in picture.iter(f"{SVG}circle"):
        assert 0 <= float(dot.get("cx", -1)) <= width
        assert 0 <= float(dot.get("cy", -1)) <= height
    for line in picture.iter(f"{SVG}polyline"):
        places = [tuple(map(float, pair.split(","))) for pair in line.get("points", "").split()]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in places)
