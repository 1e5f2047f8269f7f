"""The shapes a model can have, and what every one of them answers: `kind`, `parameters`, `active_parameters`.

Counts are computed from the shape alone. Transformers add `kv_bytes_per_token` and `matrix_flop_per_token`, all but
decoders `forward_flop` for one input. FLOP count a multiplication and an addition as two.
"""

from __future__ import annotations

from chipwise.workload.model.convnet import Block, ConvShape
from chipwise.workload.model.counted import CountedShape, Layers
from chipwise.workload.model.decoder import DecoderShape
from chipwise.workload.model.diffusion import DiffusionShape, JointTransformerShape
from chipwise.workload.model.encoder import EncoderDecoderShape, EncoderShape, TwoTowerShape, VisionShape
from chipwise.workload.model.layers import Attention, Experts, FeedForward, LatentAttention, Norm, QkNorm, Stack
from chipwise.workload.model.recommender import Interaction, RecommenderShape
from chipwise.workload.model.unet import UNetShape, VaeShape

Shape = (
    DecoderShape
    | EncoderShape
    | EncoderDecoderShape
    | VisionShape
    | TwoTowerShape
    | ConvShape
    | DiffusionShape
    | UNetShape
    | JointTransformerShape
    | VaeShape
    | RecommenderShape
    | CountedShape
)

__all__ = [
    "Attention",
    "Block",
    "ConvShape",
    "CountedShape",
    "DecoderShape",
    "DiffusionShape",
    "EncoderDecoderShape",
    "EncoderShape",
    "Experts",
    "FeedForward",
    "Interaction",
    "JointTransformerShape",
    "LatentAttention",
    "Layers",
    "Norm",
    "QkNorm",
    "RecommenderShape",
    "Shape",
    "Stack",
    "TwoTowerShape",
    "UNetShape",
    "VaeShape",
    "VisionShape",
]
