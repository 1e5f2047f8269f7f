"""Networks as lists of matrix products: what one sample multiplies, moves and keeps, for every shape that is no decoder.

A convolution is the product of its places by (inputs x kernel area) with its outputs; attention beyond the projections is
counted apart (`score_*`). Symbols: m rows per sample, n columns, k depth, g groups; FLOP = 2 m n k g. Shapes come from the
model registry; measured networks that it lacks are in `listed_networks`.
Limits: norms, pools and activations are counted as values that are touched, not as FLOP; boxes are not sorted out (detection).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from chipwise.perf.operators import NARROW
from chipwise.perf.transformer import Layer, layer_of
from chipwise.workload.model.shape import (
    ConvShape,
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

STEPS = 30  # denoising steps where nobody says
GENERATED = 64  # tokens that an encoder-decoder writes where nobody says
CONVOLUTION, TRANSFORMER, DIFFUSION, TABLE = "convolution", "transformer", "diffusion", "table"
CONV_NARROW = 16.0  # channels or depth at which a convolution reaches half of its rate; plain products need more
CONV_PASSES, NORM_PASSES = 5.0, 14.0  # values read and written around a convolution, around a transformer's layer


_HEAD = 64.0  # values of a UNet's attention head


@dataclass(frozen=True, slots=True)
class Product:
    """`times` products of rows x depth by depth x columns in `groups` independent parts, rows per sample."""

    rows: float
    columns: float
    depth: float
    groups: float = 1.0
    window: float = 1.0  # uses of an input value within one product: the kernel's area
    times: float = 1.0
    wide: bool = False  # stays in 16 bits where the rest is narrower
    narrow: float = NARROW  # columns or depth at which it reaches half of its rate

    @property
    def flop(self) -> float:
        return 2.0 * self.times * self.rows * self.columns * self.depth * self.groups

    @property
    def weights(self) -> float:
        return self.columns * self.depth * self.groups


@dataclass(frozen=True, slots=True)
class Net:
    """One sample's forward pass."""

    kind: str  # convolution, transformer, diffusion, table: what behaves alike
    products: tuple[Product, ...]
    parameters: float
    score_flop: float = 0.0  # attention beyond its projections, in 16 bits
    score_values: float = 0.0  # queries, keys, values and results that it moves
    score_map: float = 0.0  # values between scores and weighted sum, which an engine without fused attention writes and reads
    touched: float = 0.0  # values that norms, activations and sums read and write where nothing is fused
    lookups: float = 0.0  # values of embedding tables that are read
    inputs: float = 0.0  # values that come from the host
    pooled: float = 0.0  # values that all tables give a sample: what chips exchange where the tables are split over them
    rows_read: float = 0.0  # rows of tables that a sample names
    depth: float = 0.0  # kernels one after the other, where that is not the number of products

    @property
    def flop(self) -> float:
        return sum(one.flop for one in self.products) + self.score_flop

    @property
    def kernels(self) -> float:
        return self.depth or sum(one.times for one in self.products)


def joined(nets: Iterable[Net]) -> Net:
    """Nets that run one after the other on the same sample."""
    nets = tuple(nets)
    return Net(
        kind=nets[0].kind,
        products=merged(one for net in nets for one in net.products),
        parameters=sum(net.parameters for net in nets),
        score_flop=sum(net.score_flop for net in nets),
        score_values=sum(net.score_values for net in nets),
        score_map=sum(net.score_map for net in nets),
        touched=sum(net.touched for net in nets),
        lookups=sum(net.lookups for net in nets),
        inputs=max(net.inputs for net in nets),
        pooled=sum(net.pooled for net in nets),
        rows_read=sum(net.rows_read for net in nets),
        depth=sum(net.kernels for net in nets),
    )


def merged(products: Iterable[Product]) -> tuple[Product, ...]:
    """Equal products counted together."""
    counts: dict[Product, float] = {}
    for product in products:
        key = replace(product, times=1.0)
        counts[key] = counts.get(key, 0.0) + product.times
    return tuple(replace(one, times=times) for one, times in counts.items())


def repeated(net: Net, times: float, samples: float = 1.0, wide: bool | None = None) -> Net:
    """The same weights used `times` times in a row, on `samples` inputs at once."""
    uses = times * samples
    return Net(
        kind=net.kind,
        products=tuple(
            replace(
                product, rows=product.rows * samples, times=product.times * times, wide=product.wide if wide is None else wide
            )
            for product in net.products
        ),
        parameters=net.parameters,
        score_flop=net.score_flop * uses,
        score_values=net.score_values * uses,
        score_map=net.score_map * uses,
        touched=net.touched * uses,
        lookups=net.lookups * uses,
        inputs=net.inputs,
        pooled=net.pooled * uses,
        rows_read=net.rows_read * uses,
        depth=net.kernels * times,
    )


@dataclass(frozen=True, slots=True)
class Size:
    """How large one sample is; 0 stands for the model's own."""

    length: float = 0.0  # tokens, or the side of a picture
    steps: float = 0.0  # denoising steps
    generated: float = 0.0  # tokens that are written
    guidance: float = 0.0  # passes of the denoiser in a step


OWN = Size()


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
    return _of_convolutions(layers, float(shape.parameters), 3.0 * side * side)


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
    written = size.generated or GENERATED
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
