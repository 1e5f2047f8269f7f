"""Video: decode once, scale and encode every output. Chip-seconds that one second of one stream keeps a chip busy.

    decode = pixels/s of the source / (engines x rate)      encode = sum over outputs of pixels/s / (engines x rate)
    scale  = 1.5 bytes x (source + output pixels/s) of every output that is smaller / (0.3 x memory bandwidth)
Fixed-function engines and the scaler work side by side (`overlapped`); on processors the same cores do all three in turn.
Rates by engine, codec and preset are `data/perf/codecs.csv`; a 10-bit stream gets 0.75 of them (rule of thumb). What an
engine cannot do (AV1 on Turing, encoding on an H100) takes infinitely long. Counts of engines are the catalog's
(`Chip.silicon`); where the sheet is silent, those usual for the generation, with a wider interval.
Limits: no bound on sessions (consumer cards have one), on bit rate, or on the host; mixes of presets are the caller's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from chipwise.catalog.chip import Chip
from chipwise.perf.arrays import Array, Coded, Index, column
from chipwise.perf.kernels.work import Numbers, Terms, allowed_name, at_least, overlapped, pick, pick_names, positive
from chipwise.perf.part import Part
from chipwise.perf.tables import rows
from chipwise.workload.kinds import Transcode
from chipwise.workload.media import Codec, Video

CODECS = tuple(codec.value for codec in Codec)
_ALSO = {"hevc": "h265", "avc": "h264", "x264": "h264", "x265": "h265", "svt-av1": "av1", "nvenc": "h264"}
PRESETS = ("fast", "balanced", "quality")
BYTES_PER_PIXEL = 1.5  # 4:2:0 in 8 bits
SCALE_FRACTION = 0.3  # of the memory bandwidth that a scaler reaches; rule of thumb
DEEP = 0.75  # rate in more than 8 bits over the rate in 8; rule of thumb
HEADROOM = 0.85  # how busy an engine may be on average when streams are live; rule of thumb
ASSUMED_SPREAD = 0.3
SCALE_SPREAD = 0.5
# Architecture -> (encoding engine, decoding engine, encoders, decoders): the counts only where the sheet has none.
_NVIDIA = {
    "Maxwell": ("nvenc-maxwell", "nvdec-maxwell", 2, 1),
    "Pascal": ("nvenc-pascal", "nvdec-pascal", 2, 1),
    "Volta": ("nvenc-pascal", "nvdec-pascal", 2, 1),
    "Turing": ("nvenc-turing", "nvdec-turing", 1, 2),
    "Ampere": ("nvenc-turing", "nvdec-ampere", 1, 1),
    "Ada": ("nvenc-ada", "nvdec-ada", 1, 1),
    "Hopper": ("none", "nvdec-hopper", 0, 7),
    "Blackwell": ("nvenc-blackwell", "nvdec-blackwell", 1, 1),
}
_CARDS = {"Alveo-U30": ("u30", "u30", 2, 2), "Alveo-MA35D": ("ma35d", "ma35d", 2, 2)}
_NONE = ("none", "none", 0, 0)


def engines_of(chip: Chip) -> tuple[str, str, int, int]:
    """(encoding engine, decoding engine, encoders, decoders) that its generation usually has."""
    if chip.name in _CARDS:
        return _CARDS[chip.name]
    if chip.kind.value == "cpu":
        core = "arm-core" if chip.vendor == "AWS" or "Neoverse" in chip.architecture else "x86-core"
        return core, core, 1, 1
    if chip.vendor == "NVIDIA" and chip.kind.value == "edge":
        old = chip.architecture.startswith(("Maxwell", "Volta"))  # before Orin: no AV1
        return ("nvenc-maxwell", "nvdec-maxwell", 1, 1) if old else ("nvenc-jetson", "nvdec-jetson", 1, 1)
    if chip.architecture.startswith(("Ampere", "Blackwell")) and not chip.silicon.rt_cores:  # made for data centres
        return ("none", "nvdec-ampere-large", 0, 5) if chip.architecture == "Ampere" else ("none", "nvdec-blackwell", 0, 7)
    if chip.vendor == "AMD":
        name = (
            "vcn-cdna" if chip.architecture.startswith("CDNA") else "vcn-rdna3" if "RDNA3" in chip.architecture else "vcn-rdna"
        )
        return ("none", name, 0, 2) if name == "vcn-cdna" else (name, name, 1, 1)
    return next((found for start, found in _NVIDIA.items() if chip.architecture.startswith(start)), _NONE)


@cache
def rates() -> dict[tuple[str, str, str], tuple[float, float, float, float]]:
    """(engine, operation, codec) -> pixels/s at the balanced preset, factors of the fast and quality presets, spread."""
    return {
        (row["engine"], row["operation"], row["codec"]): (
            1e6 * float(row["mpixels_per_s"]),
            float(row["fast"]),
            float(row["quality"]),
            float(row["spread"]),
        )
        for row in rows("codecs.csv")
    }


@dataclass(frozen=True, slots=True)
class Media:
    """Columns of candidates: one chip each, or `cores` cores of a processor."""

    encoder: Coded
    decoder: Coded
    encoders: Array
    decoders: Array
    bandwidth: Array
    shared: Array  # 1: the same cores decode, scale and encode
    encoder_spread: Array  # where the sheet does not count them
    decoder_spread: Array

    @classmethod
    def of(cls, chips: Sequence[Chip], parts: Sequence[Part], cores: Numbers = 1.0, index: Index | None = None) -> Media:
        """`chips` and `parts` are the same things in the same order; `cores` is read for processors only."""
        usual = [engines_of(chip) for chip in chips]
        sheet = [(chip.silicon.encoders, chip.silicon.decoders) for chip in chips]
        cpu = pick([float(chip.kind.value == "cpu") for chip in chips], index)
        core_count = at_least("cores", cores, 1.0)
        encoders = pick([u[2] if s[0] is None else s[0] for u, s in zip(usual, sheet, strict=True)], index)
        decoders = pick([u[3] if s[1] is None else s[1] for u, s in zip(usual, sheet, strict=True)], index)
        sure = [chip.name in _CARDS or chip.kind.value == "cpu" for chip in chips]
        unsure = [
            pick([0.0 if known or s[i] is not None else ASSUMED_SPREAD for known, s in zip(sure, sheet, strict=True)], index)
            for i in (0, 1)
        ]
        return cls(
            encoder=pick_names([u[0] for u in usual], index),
            decoder=pick_names([u[1] for u in usual], index),
            encoders=np.where(cpu > 0, core_count, encoders),
            decoders=np.where(cpu > 0, core_count, decoders),
            bandwidth=pick([part.bandwidth for part in parts], index),
            shared=cpu,
            encoder_spread=unsure[0],
            decoder_spread=unsure[1],
        )


@dataclass(frozen=True, slots=True)
class Rendition:
    """One stream: what is decoded, or one rung of what is encoded."""

    codec: str
    pixels: Array  # of one frame
    fps: Array
    deep: bool = False  # more than 8 bits

    @classmethod
    def of(cls, codec: str, pixels: Numbers, fps: Numbers, bit_depth: int = 8) -> Rendition:
        name = allowed_name("codec", codec, CODECS, _ALSO)
        deep = bool(at_least("bit_depth", bit_depth, 8, 16)[0] > 8)
        return cls(name, positive("pixels", pixels), positive("fps", fps), deep)

    @classmethod
    def from_video(cls, video: Video) -> Rendition:
        return cls.of(video.codec.value, video.resolution.pixels, video.fps, video.bit_depth)

    @property
    def rate(self) -> Array:
        """Pixels per second of playing time."""
        return self.pixels * self.fps


def _engine_seconds(engine: Coded, operation: str, video: Rendition, preset: str) -> tuple[Array, Array]:
    """Seconds of one engine for a second of the stream, and how unsure; raw video needs none, an unable engine for ever."""
    if video.codec == "raw":
        return np.zeros_like(video.rate), column(0.0)
    table = rates()
    entries = [table.get((name, operation, video.codec)) for name in engine.names]
    factor = {"fast": 1, "quality": 2}.get(preset)
    speeds = [0.0 if row is None else row[0] * (row[factor] if factor else 1.0) for row in entries]
    speed = np.array(speeds)[engine.index] * (DEEP if video.deep else 1.0)
    spread = np.array([0.0 if row is None else row[3] for row in entries])[engine.index]
    seconds = np.where(speed > 0, video.rate / np.where(speed > 0, speed, 1.0), np.inf)
    return seconds, spread


def encoder_seconds(media: Media, outputs: Sequence[Rendition], preset: str = "balanced") -> Array:
    """Seconds of one encoder for a second of one stream's outputs."""
    name = allowed_name("preset", preset, PRESETS)
    return sum((_engine_seconds(media.encoder, "encode", video, name)[0] for video in outputs), np.zeros(1))


def busy(media: Media, source: Rendition, outputs: Sequence[Rendition], preset: str = "balanced") -> Terms:
    """Chip-seconds per second of one stream; its total is the share of a chip that a live stream takes."""
    name = allowed_name("preset", preset, PRESETS)
    decode, decode_spread = _engine_seconds(media.decoder, "decode", source, name)
    rungs = [_engine_seconds(media.encoder, "encode", video, name) for video in outputs]
    encode = sum((seconds for seconds, _ in rungs), np.zeros(1))
    encode_spread = np.max(np.stack(np.broadcast_arrays(*(spread for _, spread in rungs))), axis=0) if rungs else np.zeros(1)
    scaled = sum(
        (np.where(out.pixels < source.pixels, source.pixels * out.fps + out.rate, 0.0) for out in outputs), np.zeros(1)
    )
    times = (
        _per_chip(decode, media.decoders),
        BYTES_PER_PIXEL * scaled / (SCALE_FRACTION * media.bandwidth),
        _per_chip(encode, media.encoders),
    )
    turns = np.broadcast_arrays(*times, media.shared)[:3]
    side_by_side = overlapped(*times)
    spreads = (
        np.hypot(decode_spread, media.decoder_spread),
        np.full(1, SCALE_SPREAD),
        np.hypot(encode_spread, media.encoder_spread),
    )
    parts = {
        term: (np.where(media.shared > 0, own, hidden), spread)
        for term, own, hidden, spread in zip(("decode", "scale", "encode"), turns, side_by_side, spreads, strict=True)
    }
    return Terms.of(parts)


def _per_chip(seconds: Array, engines: Array) -> Array:
    return np.where(seconds == 0, 0.0, np.where(engines > 0, seconds / np.where(engines > 0, engines, 1.0), np.inf))


def streams_per_chip(each: Terms, headroom: float = HEADROOM) -> Array:
    """Whole live streams that one chip carries; 0 where it carries none."""
    return np.floor(headroom / np.maximum(each.total, 1e-12) + 1e-9)


def chips_needed(stream_terms: Terms, streams: Numbers, headroom: float = HEADROOM) -> Array:
    """Chips for live streams. A stream too large for one chip is taken to be split by its outputs; inf: cannot be done."""
    stream_count, capacity = positive("streams", streams), streams_per_chip(stream_terms, headroom)
    return np.where(
        capacity >= 1, np.ceil(stream_count / np.maximum(capacity, 1.0)), np.ceil(stream_count * stream_terms.total / headroom)
    )


def encoders_needed(
    media: Media, outputs: Sequence[Rendition], streams: Numbers, preset: str = "balanced", headroom: float = HEADROOM
) -> Array:
    return np.ceil(positive("streams", streams) * encoder_seconds(media, outputs, preset) / headroom)


def archive(each: Terms, duration: Numbers, chips: Numbers) -> Terms:
    """Seconds to work through `duration` seconds of video on `chips` chips that are kept full."""
    return each.times(positive("duration", duration) / at_least("chips", chips, 1.0))


def job(work: Transcode, media: Media, chips: Numbers, preset: str = "balanced") -> Terms:
    """An archive: seconds until it is done. Live streams: how busy each chip is, which must stay below `HEADROOM`."""
    source, outputs = ladder_of(work)
    stream_terms = busy(media, source, outputs, preset)
    if work.duration is not None:
        return archive(stream_terms, work.duration, chips)
    return stream_terms.times((work.streams or 1) / at_least("chips", chips, 1.0))


def ladder_of(work: Transcode) -> tuple[Rendition, tuple[Rendition, ...]]:
    return Rendition.from_video(work.source), tuple(Rendition.from_video(video) for video in work.outputs)
