"""Networks as lists of matrix products: what one sample multiplies, moves and keeps, for every shape that is no decoder.

A convolution is the product of its places by (inputs x kernel area) with its outputs; attention beyond the projections is
counted apart (`score_*`). Symbols: m rows per sample, n columns, k depth, g groups; FLOP = 2 m n k g. Shapes come from the
model registry; measured networks that it lacks are in `listed_networks`.
Limits: norms, pools and activations are counted as values that are touched, not as FLOP; boxes are not sorted out (detection).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from chipwise.perf.counted_networks import counted_net
from chipwise.perf.net import (
    CONV_NARROW,
    CONV_PASSES,
    CONVOLUTION,
    DIFFUSION,
    GENERATED,
    GROUPED,
    NORM_PASSES,
    OWN,
    SPOKEN,
    STEPS,
    TABLE,
    TRANSFORMER,
    Net,
    Product,
    Size,
    joined,
    merged,
    repeated,
)
from chipwise.perf.transformer import Layer, layer_of
from chipwise.workload.model.shape import (
    ConvShape,
    CountedShape,
    DecoderShape,
    DiffusionShape,
    EncoderDecoderShape,
    EncoderShape,
    JointTransformerShape,
    RecommenderShape,
    Shape,
    Stack,
    TwoTowerShape,
    UNetShape,
    VaeShape,
    VisionShape,
)
from chipwise.workload.model.unet import SHRINK

_HEAD = 64.0  # values of a UNet's attention head


@cache
def net_of(shape: Shape, size: Size = OWN) -> Net:
    match shape:
        case ConvShape():
            return _convnet(shape, int(size.length) or shape.image_size)
        case VisionShape():
            return _vision(shape, int(size.length) or shape.image_size)
        case EncoderShape():
            return _encoder(shape, size.length or shape.positions or 512.0)
        case TwoTowerShape():
            text = _encoder(shape.text, float(shape.text.positions))
            return joined((_vision(shape.image, int(size.length) or shape.image.image_size), text))
        case EncoderDecoderShape():
            return _encoder_decoder(shape, size)
        case DiffusionShape():
            return _diffusion(shape, size)
        case UNetShape():
            return _unet(shape, (size.length or 1024.0) / SHRINK, 77.0)
        case JointTransformerShape():
            return _joint(shape, int(size.length) or 1024, 512.0)
        case VaeShape():
            return _vae(shape, (size.length or 1024.0) / SHRINK)
        case RecommenderShape():
            return _recommender(shape)
        case CountedShape():
            return counted_net(shape, size)
        case DecoderShape():
            return of_layer(layer_of(shape), size.length or 2048.0)


def _convnet(shape: ConvShape, side: int) -> Net:
    layers = [
        Product(
            rows=float(convolution.out_side**2),
            columns=convolution.outputs / convolution.groups,
            depth=convolution.inputs / convolution.groups * convolution.kernel**2,
            groups=float(convolution.groups),
            window=float(convolution.kernel**2),
            narrow=CONV_NARROW,
        )
        for convolution in shape.convolutions(side)
    ]
    features = shape.widths[-1] * shape.block.expansion
    layers.append(Product(1.0, float(shape.classes), float(features)))
    net = _of_convolutions(layers, float(shape.parameters), 3.0 * side * side)
    return replace(net, kind=GROUPED) if shape.groups > 1 else net


def _of_convolutions(layers: Sequence[Product], parameters: float, inputs: float) -> Net:
    outputs = sum(one.times * one.rows * one.columns * one.groups for one in layers)
    return Net(kind=CONVOLUTION, products=merged(layers), parameters=parameters, touched=CONV_PASSES * outputs, inputs=inputs)


@dataclass(frozen=True, slots=True)
class _Layers:
    """Equal transformer layers, per layer."""

    count: float
    hidden: float
    attention: float  # matrix elements
    mlp: float
    score_width: float
    heads: float

    def net(self, tokens: float, parameters: float, padded: float = 0.0) -> Net:
        """All tokens see each other; `padded`: the length at which attention is done where the rest skips the padding."""
        wide, seen = self.mlp / self.hidden, padded or tokens
        products = (
            Product(tokens, 0.75 * self.attention / self.hidden, self.hidden, times=self.count),
            Product(tokens, 0.25 * self.attention / self.hidden, self.hidden, times=self.count),
            Product(tokens, wide / 2, self.hidden, times=self.count),
            Product(tokens, self.hidden, wide / 2, times=self.count),
        )
        return Net(
            kind=TRANSFORMER,
            products=products,
            parameters=parameters,
            score_flop=2.0 * self.count * self.score_width * seen * seen,
            score_values=2.0 * self.count * self.score_width * seen,
            score_map=self.count * self.heads * seen * seen,
            touched=self.count * tokens * (NORM_PASSES * self.hidden + 2.0 * wide),
            inputs=tokens,
            depth=5.0 * self.count,
        )


def of_layer(layer: Layer, tokens: float, padded: float = 0.0) -> Net:
    """An encoder that a measurement's own shape columns describe."""
    layers = _Layers(
        count=layer.layers,
        hidden=layer.hidden,
        attention=layer.attention_weights,
        mlp=layer.mlp_weights,
        score_width=layer.score_width,
        heads=max(layer.kv_heads, 1.0),
    )
    return layers.net(tokens, layer.parameters, padded)


def _of_stack(stack: Stack, tokens: float, parameters: float) -> Net:
    attention, mlp = stack.attention, stack.mlp
    layers = _Layers(
        count=stack.layers,
        hidden=stack.hidden,
        attention=attention.weights,
        mlp=mlp.weights,
        score_width=attention.score_width,
        heads=attention.heads,
    )
    return layers.net(tokens, parameters)


def _encoder(shape: EncoderShape, tokens: float) -> Net:
    return replace(_of_stack(shape.stack, tokens, float(shape.parameters)), lookups=tokens * shape.hidden)


def _vision(shape: VisionShape, side: int) -> Net:
    tokens = float(shape.tokens(side))
    patches = Product(tokens, float(shape.hidden), float(shape.channels * shape.patch**2))
    body = _of_stack(shape.stack, tokens, float(shape.parameters))
    return replace(body, products=(patches, *body.products), inputs=3.0 * side * side, depth=body.depth + 1)


def _encoder_decoder(shape: EncoderDecoderShape, size: Size) -> Net:
    """The input read once, then one step of the decoder for each token that is written."""
    tokens = size.length or (1500.0 if shape.mels else 512.0)
    written = size.generated or (SPOKEN * tokens if shape.mels else GENERATED)
    reading = _of_stack(shape.encoder, tokens, 0.0)
    hidden, decoder = float(shape.hidden), shape.decoder
    crossing = Product(tokens, float(decoder.cross_weights) / decoder.layers / hidden, hidden, times=float(decoder.layers))
    token_net = _of_stack(decoder, 1.0, float(shape.parameters))
    seen = decoder.layers * decoder.attention.score_width * (tokens + written / 2)
    query = Product(1.0, float(decoder.attention.query_weights) / hidden, hidden, times=float(decoder.layers))
    head = Product(1.0, float(shape.vocab), hidden)
    depth = token_net.depth + 2 * decoder.layers
    products = (*token_net.products, query, head)
    step = replace(token_net, products=products, score_flop=2.0 * seen, score_values=seen, score_map=0.0, depth=depth)
    stem = [Product(2 * tokens, hidden, 3.0 * shape.mels, window=3.0), Product(tokens, hidden, 3.0 * hidden, window=3.0)]
    first = replace(reading, products=(*(stem if shape.mels else ()), *reading.products, crossing))
    return joined((first, repeated(step, written)))


def _attending(width: float, depth: float, places: float, text: float, text_width: float) -> Net:
    """A block of `depth` transformers over the places of a picture that also look at the text."""
    if not depth:
        return Net(DIFFUSION, (), 0.0)
    products = (
        Product(places, width, width, times=2.0),
        Product(places, 3 * width, width, times=depth),
        Product(places, width, width, times=3 * depth),
        Product(places, 8 * width, width, times=depth),
        Product(places, width, 4 * width, times=depth),
        Product(text, 2 * width, text_width, times=depth),
    )
    scores = 4.0 * depth * width * places * (places + text)
    moved = depth * width * (6.0 * places + 2.0 * text)
    squares = depth * width / _HEAD * places * (places + text)
    return Net(
        kind=DIFFUSION,
        products=products,
        parameters=0.0,
        score_flop=scores,
        score_values=moved,
        score_map=squares,
        touched=depth * places * (NORM_PASSES + 14.0) * width,
    )


def _residual(inputs: float, outputs: float, places: float) -> Net:
    products = [_convolution(places, outputs, inputs), _convolution(places, outputs, outputs)]
    if inputs != outputs:
        products.append(_convolution(places, outputs, inputs, 1.0))
    return Net(DIFFUSION, tuple(products), 0.0, touched=CONV_PASSES * places * (inputs + 2 * outputs))


def _convolution(places: float, outputs: float, inputs: float, kernel: float = 3.0) -> Product:
    return Product(rows=places, columns=outputs, depth=kernel**2 * inputs, window=kernel**2, narrow=CONV_NARROW)


def _conv_net(places: float, outputs: float, inputs: float) -> Net:
    return Net(DIFFUSION, (_convolution(places, outputs, inputs),), 0.0, touched=places * outputs)


def _unet(shape: UNetShape, side: float, text: float) -> Net:
    return replace(joined(_unet_pieces(shape, side, text)), parameters=float(shape.parameters))


def _unet_pieces(shape: UNetShape, side: float, text: float) -> Iterator[Net]:
    """The walk of `UNetShape.pieces`, which counts but does not keep the shapes of its products."""

    def attend(level: int) -> Net:
        return _attending(float(shape.widths[level]), float(shape.depths[level]), side * side, text, float(shape.text_width))

    first, last = float(shape.widths[0]), float(shape.widths[-1])
    skips, inputs = [first], first
    yield _conv_net(side * side, first, float(shape.latent_channels))
    for level, width in enumerate(map(float, shape.widths)):
        for _ in range(shape.blocks):
            yield _residual(inputs, width, side * side)
            yield attend(level)
            inputs = width
            skips.append(width)
        if level < len(shape.widths) - 1:
            side = side / 2
            yield _conv_net(side * side, width, width)
            skips.append(width)
    yield repeated(_residual(last, last, side * side), 2.0)
    yield _attending(last, float(shape.middle_depth), side * side, text, float(shape.text_width))
    for level in reversed(range(len(shape.widths))):
        width = float(shape.widths[level])
        for _ in range(shape.blocks + 1):
            yield _residual(inputs + skips.pop(), width, side * side)
            yield attend(level)
            inputs = width
        if level:
            side = side * 2
            yield _conv_net(side * side, width, width)
    yield _conv_net(side * side, float(shape.latent_channels), first)


def _vae(shape: VaeShape, side: float) -> Net:
    """Decoding only: what a picture costs."""
    widths = [float(width) for width in shape.widths]
    inputs, pieces = widths[-1], [_conv_net(side * side, widths[-1], float(shape.latent_channels))]
    pieces.append(repeated(_residual(inputs, inputs, side * side), 2.0))
    middle = Product(side * side, inputs, inputs, times=4.0)
    pieces.append(
        Net(
            kind=DIFFUSION,
            products=(middle,),
            parameters=0.0,
            score_flop=4.0 * inputs * side**4,
            score_values=4.0 * inputs * side**2,
            score_map=side**4,
            touched=CONV_PASSES * inputs * side**2,
        )
    )
    for level in reversed(range(len(widths))):
        for _ in range(shape.blocks + 1):
            pieces.append(_residual(inputs, widths[level], side * side))
            inputs = widths[level]
        if level:
            side = side * 2
            pieces.append(_conv_net(side * side, inputs, inputs))
    pieces.append(_conv_net(side * side, float(shape.channels), inputs))
    return replace(joined(pieces), parameters=float(shape.parameters))


def _joint(shape: JointTransformerShape, side: int, text: float) -> Net:
    """Blocks of either kind multiply a token with the same number of weights."""
    hidden = float(shape.hidden)
    count = shape.joint_layers + shape.single_layers
    layers = _Layers(
        count=count,
        hidden=hidden,
        attention=4 * hidden**2,
        mlp=2 * hidden * shape.width,
        score_width=2 * hidden,
        heads=shape.heads,
    )
    return replace(layers.net(shape.tokens(side) + text, float(shape.parameters)), kind=DIFFUSION)


def _diffusion(shape: DiffusionShape, size: Size) -> Net:
    """Text once, the denoiser at every step (twice the samples where it is guided), the decoder once; only the denoiser is
    narrowed by 8-bit engines."""
    side = int(size.length) or shape.image_size
    passes = size.guidance or (2.0 if shape.guided else 1.0)
    text = float(shape.text_tokens)
    match shape.denoiser:
        case UNetShape():
            denoiser = _unet(shape.denoiser, side / SHRINK, text)
        case JointTransformerShape():
            denoiser = _joint(shape.denoiser, side, text)
    texts = (repeated(_encoder(one, text), 1.0, passes, wide=True) for one in shape.text_encoders)
    decoder = repeated(_vae(shape.vae, side / SHRINK), 1.0, wide=True)
    return joined((repeated(denoiser, size.steps or STEPS, passes), *texts, decoder))


def _recommender(shape: RecommenderShape) -> Net:
    widths = (shape.dense_inputs, *shape.bottom), (shape.joined_width, *shape.top)
    products = [Product(1.0, float(n), float(k)) for one in widths for k, n in pairwise(one)]
    crossed = (len(shape.tables) + 1) * shape.embedding_width
    for _ in range(shape.cross_layers):
        for n, k in ((shape.cross_rank, crossed), (crossed, shape.cross_rank)):
            products.append(Product(1.0, float(n), float(k)))
    lookups = float(shape.rows_read * shape.embedding_width)
    touched = 2.0 * sum(one.columns for one in products)
    inputs = float(shape.dense_inputs + shape.rows_read)
    return Net(
        kind=TABLE,
        products=merged(products),
        parameters=float(shape.dense_parameters),
        touched=touched,
        lookups=lookups,
        inputs=inputs,
        pooled=float(len(shape.tables) * shape.embedding_width),
        rows_read=float(shape.rows_read),
    )
