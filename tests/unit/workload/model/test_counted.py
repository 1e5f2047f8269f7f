"""Networks by their counts: how they grow with their input, and the shape of a transformer that counts imply."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chipwise.errors import InvalidFile
from chipwise.perf.net import Size
from chipwise.perf.networks import net_of
from chipwise.workload.model.counted import CountedShape, Layers, usual_activations
from chipwise.workload.model.inline import shape_from_mapping

VIT_B = CountedShape(
    parameters=86_570_000, macs=17_580_000_000, activations=23_900_000, layers=Layers.VIT, products=50, image_size=224
)
RESNET_50 = CountedShape(
    parameters=25_560_000, macs=4_110_000_000, activations=11_110_000, layers=Layers.CNN, products=54, image_size=224
)


def test_the_counts_of_a_transformer_tell_its_width_times_its_layers() -> None:
    assert VIT_B.width_layers == pytest.approx(768 * 12, rel=0.03)
    assert VIT_B.tokens == pytest.approx(197, rel=0.05)


def test_attention_over_all_places_grows_faster_than_the_picture() -> None:
    assert RESNET_50.forward_flop(448) == pytest.approx(4 * RESNET_50.forward_flop())
    assert VIT_B.forward_flop(448) > 4 * VIT_B.forward_flop()


@pytest.mark.parametrize("layers", list(Layers))
def test_a_larger_picture_is_more_work_of_every_kind(layers: Layers) -> None:
    shape = replace(RESNET_50, layers=layers)
    nets = [net_of(shape, Size(side, steps=1.0)) for side in (128.0, 224.0, 512.0)]
    for name in ("flop", "touched", "inputs", "score_flop", "score_map"):
        values = [getattr(net, name) for net in nets]
        assert values == sorted(values)


def test_a_denoiser_runs_once_per_step_and_guidance() -> None:
    shape = replace(VIT_B, layers=Layers.DIT)
    once, often = (net_of(shape, Size(steps=steps, guidance=ways)) for steps, ways in ((1.0, 1.0), (20.0, 2.0)))
    assert often.flop == pytest.approx(40 * once.flop)


def test_a_workload_file_may_give_the_counts() -> None:
    shape = shape_from_mapping(
        {"kind": "network", "parameters": 25_560_000, "macs": 4_110_000_000, "layers": "cnn", "image_size": 224}
    )
    assert isinstance(shape, CountedShape)
    assert shape.activations == usual_activations(Layers.CNN, 25_560_000, 4_110_000_000, 224)
    assert shape.activations == pytest.approx(11.11e6, rel=0.4)


def test_counts_that_are_missing_are_named() -> None:
    with pytest.raises(InvalidFile) as refused:
        shape_from_mapping({"kind": "network", "parameters": 25_560_000})
    assert {problem.field for problem in refused.value.problems} == {"macs", "layers"}
