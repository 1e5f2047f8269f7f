"""Laws of video, and what data sheets promise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise.catalog.catalog import Catalog
from chipwise.errors import BadInput
from chipwise.perf.arrays import Coded, column
from chipwise.perf.kernels import transcode
from chipwise.perf.kernels.transcode import Media, Rendition
from chipwise.perf.part import Parts
from chipwise.workload.kinds import Transcode
from chipwise.workload.parse import load

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
FULL_HD = 1920 * 1080


def media(catalog: Catalog, parts: Parts, *names: str, cores: float = 1.0) -> Media:
    return Media.of([catalog.chips[name] for name in names], [parts[name] for name in names], cores)


def ada(encoders: float, decoders: float = 4.0, bandwidth: float = 3e11) -> Media:
    return Media(
        Coded.of("nvenc-ada"),
        Coded.of("nvdec-ada"),
        column(encoders),
        column(decoders),
        column(bandwidth),
        column(0.0),
        column(0.0),
        column(0.0),
    )


SOURCE = Rendition.of("h264", FULL_HD, 60)
LADDER = (Rendition.of("av1", FULL_HD, 60), Rendition.of("av1", 1280 * 720, 60), Rendition.of("av1", 854 * 480, 30))


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_more_streams_never_need_fewer_encoders_or_chips(streams: int, more: int) -> None:
    each = transcode.busy(ada(2), SOURCE, LADDER)
    assert transcode.chips_needed(each, streams + more)[0] >= transcode.chips_needed(each, streams)[0]
    needed = transcode.encoders_needed(ada(2), LADDER, [streams, streams + more])
    assert needed[1] >= needed[0]


@given(st.integers(1, 8), st.integers(1, 8), st.floats(1e10, 1e13), st.floats(1, 8))
def test_more_engines_or_bandwidth_are_never_slower(encoders: int, decoders: int, bandwidth: float, factor: float) -> None:
    slow = transcode.busy(ada(encoders, decoders, bandwidth), SOURCE, LADDER)
    fast = transcode.busy(ada(encoders * factor, decoders * factor, bandwidth * factor), SOURCE, LADDER)
    assert fast.total[0] <= slow.total[0] * (1 + 1e-12)


@given(st.floats(60, 1e9), st.integers(1, 500))
def test_halving_the_chips_never_raises_throughput(duration: float, chips: int) -> None:
    each = transcode.busy(ada(2), SOURCE, LADDER)
    assert transcode.archive(each, duration, 2 * chips).total[0] <= transcode.archive(each, duration, chips).total[0]


@given(st.lists(st.tuples(st.floats(1e4, 4e7), st.floats(1, 120)), min_size=1, max_size=5))
def test_the_array_call_equals_the_calls_one_by_one(rows: list[tuple[float, float]]) -> None:
    pixels, fps = (np.array(values) for values in zip(*rows, strict=True))
    together = transcode.busy(ada(2), Rendition.of("hevc", pixels, fps), (Rendition.of("av1", pixels / 4, fps),))
    assert together.total == pytest.approx(sum(together.seconds))
    for i, (p, f) in enumerate(rows):
        alone = transcode.busy(ada(2), Rendition.of("hevc", p, f), (Rendition.of("av1", p / 4, f),))
        assert together.total[i] == pytest.approx(alone.total[0])


def test_a_better_preset_is_never_faster() -> None:
    speeds = [transcode.busy(ada(2), SOURCE, LADDER, preset).total[0] for preset in transcode.PRESETS]
    assert speeds == sorted(speeds)


def test_more_outputs_and_deeper_pixels_cost_more() -> None:
    one, two = (transcode.busy(ada(2), SOURCE, LADDER[:n]).total[0] for n in (1, 2))
    deep = transcode.busy(ada(2), SOURCE, [Rendition.of("av1", FULL_HD, 60, bit_depth=10)]).total[0]
    assert one < two
    assert one < deep


def test_an_l4_reaches_what_its_vendor_promises_at_the_fast_preset(catalog: Catalog, parts: Parts) -> None:
    """1,040 streams of 720p30 in AV1 on eight."""
    small = Rendition.of("av1", 1280 * 720, 30)
    each = transcode.encoder_seconds(media(catalog, parts, "L4"), [small], "fast")[0] / 2
    assert 8 / each == pytest.approx(1040, rel=0.05)


def test_media_cards_reach_what_their_vendor_promises(catalog: Catalog, parts: Parts) -> None:
    """4K at 60 frames/s for each of a U30's two devices; 32 streams of 1080p60 on an MA35D."""
    hd = Rendition.of("h265", FULL_HD, 60)
    per_stream = transcode.encoder_seconds(media(catalog, parts, "Alveo-U30", "Alveo-MA35D"), [hd]) / 2
    assert (1 / per_stream).tolist() == pytest.approx([8, 32], rel=0.01)


def test_what_a_chip_has_no_engine_for_takes_for_ever(catalog: Catalog, parts: Parts) -> None:
    on = media(catalog, parts, "T4", "H100-SXM", "A100-80", "B200", "Trainium1", "Alveo-U30", "L4")
    assert np.isfinite(transcode.busy(on, SOURCE, LADDER).total).tolist() == [False] * 6 + [True]
    older = (Rendition.of("h264", FULL_HD, 30),)
    assert np.isfinite(transcode.busy(on, SOURCE, older).total).tolist() == [True, False, False, False, False, True, True]
    assert transcode.chips_needed(transcode.busy(on, SOURCE, LADDER), 10)[0] == np.inf


def test_a_processor_needs_more_time_the_fewer_its_cores(catalog: Catalog, parts: Parts) -> None:
    few, many = (transcode.busy(media(catalog, parts, "EPYC-Genoa", cores=n), SOURCE, LADDER).total[0] for n in (8, 96))
    assert few > 8 * many


def test_raw_video_needs_no_decoder(catalog: Catalog, parts: Parts) -> None:
    raw = transcode.busy(media(catalog, parts, "L4"), Rendition.of("raw", FULL_HD, 60), LADDER)
    assert raw["decode"][0] == 0


def test_a_count_no_sheet_states_widens_the_interval() -> None:
    sure = transcode.busy(ada(2), SOURCE, LADDER)
    unsure = transcode.busy(replace(ada(2), encoder_spread=column(0.3)), SOURCE, LADDER)
    assert unsure.relative[0] > sure.relative[0]


def test_the_example_workload_needs_fewer_l4s_than_its_streams(catalog: Catalog, parts: Parts) -> None:
    work = load(EXAMPLES / "transcode" / "workload.yaml")
    assert isinstance(work, Transcode)
    source, outputs = transcode.ladder_of(work)
    each = transcode.busy(media(catalog, parts, "L4"), source, outputs)
    needed = transcode.chips_needed(each, work.streams or 0)[0]
    assert 10 <= needed <= 40
    load_of_each = transcode.job(work, media(catalog, parts, "L4"), needed).total[0]
    assert 0.5 < load_of_each <= transcode.HEADROOM


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("codec", lambda: Rendition.of("h266", FULL_HD, 60)),
        ("pixels", lambda: Rendition.of("h264", 0, 60)),
        ("fps", lambda: Rendition.of("h264", FULL_HD, -1)),
        ("preset", lambda: transcode.busy(ada(2), SOURCE, LADDER, "medium")),
        ("streams", lambda: transcode.chips_needed(transcode.busy(ada(2), SOURCE, LADDER), 0)),
        ("chips", lambda: transcode.archive(transcode.busy(ada(2), SOURCE, LADDER), 60, 0)),
        ("duration", lambda: transcode.archive(transcode.busy(ada(2), SOURCE, LADDER), -1, 1)),
    ],
)
def test_bad_input_names_the_field_and_what_is_allowed(field: str, call: object) -> None:
    assert callable(call)
    with pytest.raises(BadInput, match=f"^{field}: .*Allowed: "):
        call()
