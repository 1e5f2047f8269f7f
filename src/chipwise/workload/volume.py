"""How many bytes a workload reads, writes and saves, as far as its description tells. What the file states wins.

| work | reads | writes |
|---|---|---|
| train, finetune | tokens x 2 B (a vocabulary of up to 65,536) or 4 B; samples x bytes of a sample | the weights, 2 B each |
| batch, serve | items, or requests of a month, x bytes of a sample; 4 B a token | 4 B a token, a vector, a picture, a label |
| transcode | seconds x bitrate of the source | seconds x bitrates of the outputs |
| stream | bytes/s of a month | as much |
| render | the scene | frames x pixels x 8 B: four channels of 16 bits |
| hpc | | runs x working set: the last state |
| hybrid | | shots x qubits of all circuits, a bit each |

A checkpoint has for each parameter that learns its weight in 16 bits, a copy of it in 32 and what the optimizer keeps: 14 B
with AdamW, whose two moments have 32 bits, 8 B with those in 8 bits. Of adapters rank x (inputs + outputs) parameters learn
for each matrix that has one; experts have none. Networks that are not transformers count a hundredth.
A picture is 0.6 B a pixel and at least 110 kB, which is the mean of ImageNet's JPEG files (138 GB for 1.28 million); speech
is half a minute of 16 bits at 16 kHz; English text has about 4 B a token. A video without a bitrate counts by bits a pixel
that are usual for its codec. All these are rules of thumb, good to a factor of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from chipwise.errors import BadInput
from chipwise.text import decimal_size, large, number, plural
from chipwise.units import HOUR, MONTH, WEEK
from chipwise.workload.choices import Method, Optimizer
from chipwise.workload.common import Common
from chipwise.workload.kinds import Batch, Finetune, Hpc, Hybrid, Learning, Render, Serve, Stream, Transcode
from chipwise.workload.media import Codec, Video
from chipwise.workload.model.shape import (
    ConvShape,
    CountedShape,
    DecoderShape,
    DiffusionShape,
    EncoderDecoderShape,
    EncoderShape,
    RecommenderShape,
    Shape,
    TwoTowerShape,
    VisionShape,
)

STATE_BYTES = {  # a parameter that learns, of what the optimizer keeps
    Optimizer.ADAMW: 8.0,
    Optimizer.ADAMW_16BIT: 4.0,
    Optimizer.ADAMW_8BIT: 2.0,
    Optimizer.ADAFACTOR: 0.0,
    Optimizer.LION: 4.0,
    Optimizer.MUON: 4.0,
    Optimizer.SGD: 4.0,
}
COPY_BYTES = 4.0  # a parameter that learns
ADAPTED = 0.01  # of the parameters in low-rank adapters, where matrices are not known one by one
WEIGHT_BYTES = 2.0
TEXT_BYTES = 4.0  # a token
SHORT_VOCABULARY = 65_536  # token numbers in 16 bits
PICTURE_BYTES, PIXEL_BYTES = 110e3, 0.6  # a JPEG file at least, and a pixel of a large one
DRAWN_BYTES = 1.5  # a pixel of a generated picture, as PNG
FRAME_BYTES = 8.0  # a pixel of a rendered frame
SPEECH_BYTES = 30.0 * 16_000 * 2
LABEL_BYTES = 100.0  # a line with a name, a class and a score
BITS_A_PIXEL = {
    Codec.H264: 0.1,
    Codec.H265: 0.06,
    Codec.VP9: 0.06,
    Codec.AV1: 0.05,
    Codec.MPEG2: 0.2,
    Codec.MJPEG: 1.6,
    Codec.PRORES: 3.5,
}
RAW_SAMPLES = 1.5  # a pixel of uncompressed video, at 4:2:0


@dataclass(frozen=True, slots=True)
class Amount:
    """So many bytes, and how they are known: a formula, or nothing where the file states them."""

    bytes: float
    formula: str = ""


@dataclass(frozen=True, slots=True)
class Volume:
    """What is read and written in all, or in a month; None: nothing tells."""

    read: Amount | None = None
    written: Amount | None = None
    checkpoint: Amount | None = None  # each of them
    monthly: bool = False

    @property
    def read_bytes(self) -> float:
        return self.read.bytes if self.read is not None else 0.0

    @property
    def written_bytes(self) -> float:
        return self.written.bytes if self.written is not None else 0.0


W = TypeVar("W", bound=Common)


def volume_of(work: Common, shape: Shape | None = None) -> Volume:
    """`shape` is that of the workload's model, if it has one."""
    derived = _derived(work, shape)
    data = work.data
    if data is None:
        return derived
    return Volume(
        read=derived.read if data.size is None else Amount(data.size),
        written=derived.written if data.results is None else Amount(data.results),
        checkpoint=derived.checkpoint,
        monthly=derived.monthly and data.size is None,
    )


def sized(work: W, shape: Shape | None = None) -> W:
    """The workload with the sizes of its data filled in; as it is where it names no data."""
    data = work.data
    if data is None or (data.size is not None and data.results is not None):
        return work
    volume = volume_of(work, shape)
    if volume.read is None:
        raise BadInput("data.size: nothing else in the workload tells how much is read.", remedy="data: {size: 1.5TB}")
    answers = isinstance(work, Serve)  # they go to users, not to where the data lies
    written = data.results if answers else volume.written.bytes if volume.written is not None else None
    return work.model_copy(update={"data": data.model_copy(update={"size": volume.read.bytes, "results": written})})


def learning_parameters(work: Learning, shape: Shape) -> float:
    """Those that learn, and are saved."""
    if not isinstance(work, Finetune) or work.method is Method.FULL:
        return float(shape.parameters)
    attention_only = work.targets == "attention"
    match shape:
        case DecoderShape():
            dense = 0 if attention_only or shape.experts else shape.mlp.ends
            per_rank = shape.layers * (shape.attention.ends + dense)
        case EncoderShape() | VisionShape():
            per_rank = shape.stack.adapted(attention_only)
        case EncoderDecoderShape():
            per_rank = shape.encoder.adapted(attention_only) + shape.decoder.adapted(attention_only)
        case _:
            return ADAPTED * float(shape.parameters)
    return float(work.rank or 0) * per_rank


def _saved_bytes(work: Learning) -> float:
    """For each parameter that learns."""
    return WEIGHT_BYTES + COPY_BYTES + STATE_BYTES[work.optimizer]


def checkpoint_bytes(work: Learning, shape: Shape) -> float:
    return _saved_bytes(work) * learning_parameters(work, shape)


def _derived(work: Common, shape: Shape | None) -> Volume:
    match work:
        case Learning():
            return _learning(work, shape)
        case Batch():
            return _samples(work, shape, work.items, f"{large(work.items)} items", monthly=False)
        case Serve() if work.arrival.rate is not None:
            requests = work.arrival.rate * (work.devices or 1) * _month_s(work)
            return _samples(work, shape, requests, f"{large(requests)} requests", monthly=True)
        case Transcode():
            return _video(work)
        case Stream():
            rate = work.bandwidth or (work.messages or 0.0) * (work.message_size or 0.0)
            flow = Amount(rate * _month_s(work), f"{_hours(_month_s(work))} x {decimal_size(rate)}/s")
            return Volume(read=flow, written=flow, monthly=True)
        case Render():
            frame = f"{work.resolution.width} x {work.resolution.height} x {FRAME_BYTES:g} bytes"
            frames = Amount(work.frames * work.resolution.pixels * FRAME_BYTES, f"{large(work.frames)} frames x {frame}")
            return Volume(read=Amount(work.scene, "the scene") if work.scene else None, written=frames)
        case Hpc() if work.working_set is not None:
            return Volume(
                written=Amount(
                    work.runs * work.working_set,
                    f"{plural(work.runs, 'run')} x a working set of {decimal_size(work.working_set)}",
                )
            )
        case Hybrid():
            part = work.quantum
            shots = work.iterations * part.circuits * part.shots
            return Volume(written=Amount(shots * part.qubits / 8, f"{large(shots)} shots x {part.qubits} bits"))
    return Volume()


def _month_s(work: Common) -> float:
    """Seconds of a month in which it is on."""
    return float(work.schedule.hours_per_week or WEEK / HOUR) * HOUR * MONTH / WEEK


def _hours(seconds: float) -> str:
    hours = seconds / HOUR
    return f"{hours:,.0f} h" if hours >= 100 else f"{number(hours)} h"


# -- video


def bitrate(video: Video) -> tuple[float, bool]:
    """(bytes a second, whether the file states it)."""
    if video.bitrate is not None:
        return video.bitrate, True
    bits = BITS_A_PIXEL.get(video.codec, RAW_SAMPLES * video.bit_depth)
    return bits * video.resolution.pixels * video.fps / 8, False


def _video(work: Transcode) -> Volume:
    streams = work.streams or 1
    seconds = work.duration if work.duration is not None else streams * _month_s(work)

    def amount(videos: tuple[Video, ...]) -> Amount:
        rates = [bitrate(video) for video in videos]
        rate = sum(value for value, _ in rates)
        usual = "" if all(stated for _, stated in rates) else ", usual for the codec"
        return Amount(seconds * rate, f"{_hours(seconds)} x {_bits(rate)}{usual}")

    return Volume(read=amount((work.source,)), written=amount(work.outputs), monthly=work.duration is None)


def _bits(bytes_per_s: float) -> str:
    bits = 8 * bytes_per_s
    scale, unit = next((pair for pair in ((1e9, "Gbit/s"), (1e6, "Mbit/s")) if bits >= pair[0]), (1e3, "kbit/s"))
    return f"{number(bits / scale)} {unit}"


# -- models


def _learning(work: Learning, shape: Shape | None) -> Volume:
    weights = checkpoint = None
    if shape is not None:
        trained = learning_parameters(work, shape)
        weights = Amount(WEIGHT_BYTES * trained, f"{large(trained)} parameters x {WEIGHT_BYTES:g} bytes")
        saved = _saved_bytes(work)
        checkpoint = Amount(saved * trained, f"{large(trained)} parameters x {saved:g} bytes")
    return Volume(read=_learned(work, shape), written=weights, checkpoint=checkpoint)


def _learned(work: Learning, shape: Shape | None) -> Amount | None:
    vocabulary = getattr(shape, "vocab", None) or SHORT_VOCABULARY + 1
    token = 2.0 if vocabulary <= SHORT_VOCABULARY else 4.0
    if work.tokens is not None:
        return Amount(work.tokens * token, f"{large(work.tokens)} tokens x {token:g} bytes")
    if work.samples is None:
        return None
    samples, sample = f"{large(work.samples)} samples", _sample_bytes(shape)
    if sample is not None:
        return Amount(work.samples * sample, f"{samples} x {decimal_size(sample)}")
    if work.sequence_length is None:
        return None
    length = work.sequence_length + (work.target_length or 0.0)
    return Amount(work.samples * length * token, f"{samples} x {large(length)} tokens x {token:g} bytes")


def _samples(work: Batch | Serve, shape: Shape | None, items: float, noun: str, monthly: bool) -> Volume:
    sample, answer = _sample_bytes(shape), _answer_bytes(shape)
    read = None if sample is None else Amount(items * sample, f"{noun} x {decimal_size(sample)}")
    written = None if answer is None else Amount(items * answer, f"{noun} x {decimal_size(answer)}")
    if isinstance(shape, DiffusionShape):
        read = _text(items, noun, shape.text_tokens)
    elif work.input_tokens is not None and sample is None:
        read = _text(items, noun, work.input_tokens.mean)
    if work.output_tokens is not None:
        written = _text(items, noun, work.output_tokens.mean)
    return Volume(read=read, written=written, monthly=monthly)


def _text(items: float, noun: str, tokens: float) -> Amount:
    return Amount(items * tokens * TEXT_BYTES, f"{noun} x {large(tokens)} tokens x {TEXT_BYTES:g} bytes")


def _sample_bytes(shape: Shape | None) -> float | None:
    """Of what a model is shown, as it is stored; None of text, whose length the workload tells, and of what nobody stores."""
    match shape:
        case ConvShape() | VisionShape() | DiffusionShape():
            return _picture(shape.image_size)
        case CountedShape() if shape.image_size:
            return _picture(shape.image_size)
        case TwoTowerShape():
            return _picture(shape.image.image_size)
        case EncoderDecoderShape() if shape.mels:
            return SPEECH_BYTES
        case RecommenderShape():
            return 4.0 * (1 + shape.dense_inputs + (shape.lookups or len(shape.tables)))
    return None


def _picture(side: float) -> float:
    return max(PICTURE_BYTES, PIXEL_BYTES * side * side)


def _answer_bytes(shape: Shape | None) -> float | None:
    """Of what a model makes of one sample, unless that is text."""
    match shape:
        case DiffusionShape():
            return DRAWN_BYTES * shape.image_size**2
        case EncoderShape():
            return 4.0 * (shape.projection or shape.stack.hidden)
        case TwoTowerShape():
            return 4.0 * (shape.image.projection or shape.image.stack.hidden)
        case ConvShape() | VisionShape() | RecommenderShape() | CountedShape():
            return LABEL_BYTES
    return None
