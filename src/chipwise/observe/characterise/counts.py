"""Operations of one step, from what the hook counted inside the program or what the processor's counters show.

Counts stand for the program only if the counted operations take most of its time: below half of it, they say nothing of what
the program does, and no number is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from chipwise.observe.characterise.values import Bounded, Network, Quantity
from chipwise.observe.sample import NoReading

LEAST_COVERED = 0.5
COUNT_ERROR = 0.01  # of a count that was the same in every step
BYTES_ERROR = 0.10  # what caches keep between two operations is not seen
LINE_BYTES = 64.0
USUAL_PRECISION = "fp64"
_PRECISIONS = ("fp64", "fp32", "bf16", "fp16", "fp8", "int8")


@dataclass(frozen=True, slots=True)
class StepCounts:
    flop: Quantity
    moved: Quantity
    precision: str
    network: Network | None = None
    notes: tuple[str, ...] = ()

    def times(self, steps: float | None, step: str) -> StepCounts:
        """Of another kind of step, which is so many of these; None: nobody knows how many."""
        if steps == 1.0 or isinstance(self.flop, NoReading):
            return self
        if steps is None:
            reason = NoReading(f"operations were counted by steps of the program, and how many a {step} has was not seen")
            return StepCounts(reason, reason, self.precision, self.network)
        moved = self.moved if isinstance(self.moved, NoReading) else self.moved.times(steps)
        return StepCounts(self.flop.times(steps), moved, self.precision, self.network, self.notes)


def counted(counts: Mapping[str, object] | None, step: str, steps: float | None) -> StepCounts:
    """Per step; `steps`: how many the counted run had, where the counts are of all of it."""
    framework = "" if counts is None else counts.get("framework")
    if counts is None or "python" not in counts:
        return _none("the program is not Python, or started it with -I or -E: no operation was counted")
    if framework == "torch" and "step_flop" in counts:
        return _of_torch(counts)
    if framework == "numpy" and "total_flop" in counts:
        return _of_numpy(counts, step, steps)
    if error := counts.get("error"):
        return _none(f"counting failed ({error})")
    name = {"torch": "PyTorch ran no step while it was counted", "numpy": "NumPy did nothing"}.get(str(framework))
    return _none(name or "the program uses neither PyTorch nor NumPy")


def from_counters(counters: Mapping[str, float], steps: float, precision: str) -> StepCounts:
    """By the processor: floating-point operations that were retired, and lines that came from memory."""
    lines = counters.get("cache_misses")
    moved: Quantity = NoReading("the processor does not count what comes from memory")
    if lines is not None:
        moved = Bounded.near(lines * LINE_BYTES / steps, 0.3, "misses of the last cache, 64 bytes each")
    flop = Bounded.near(counters["flop"] / steps, 0.05, "the processor's counters")
    return StepCounts(flop, moved, precision)


def _none(reason: str) -> StepCounts:
    return StepCounts(NoReading(reason), NoReading(reason), USUAL_PRECISION)


def _of_torch(counts: Mapping[str, object]) -> StepCounts:
    flop, moved = _numbers(counts["step_flop"]), _numbers(counts["step_bytes"])
    net_s = _number(counts, "wall_s") - _number(counts, "overhead_s")
    covered = _number(counts, "inside_s") / net_s if net_s > 0 else 0.0
    on_device = counts.get("device") not in (None, "cpu")
    if covered < LEAST_COVERED and not on_device:
        return _uncovered(covered, sum(flop) / len(flop))
    products = _formats(counts.get("products"))
    precision = max(products, key=lambda name: products[name], default="fp32")
    basis = "the operators of PyTorch"
    return StepCounts(
        flop=_spread(flop, COUNT_ERROR, basis),
        moved=_spread(moved, BYTES_ERROR, basis),
        precision=precision if precision in _PRECISIONS else "fp32",
        network=_network(counts),
    )


def _of_numpy(counts: Mapping[str, object], step: str, steps: float | None) -> StepCounts:
    if counts.get("step") == "repeat" and step == "repeat":
        flop, moved = _numbers(counts["step_flop"])[0], _numbers(counts["step_bytes"])[0]
        inside, net_s = _number(counts, "step_inside_s") - _number(counts, "step_unknown_s"), _number(counts, "step_net_s")
    else:
        if steps is None:
            return _none("NumPy's operations could not be divided into steps")
        flop, moved = _number(counts, "total_flop") / steps, _number(counts, "total_bytes") / steps
        inside, net_s = _number(counts, "total_inside_s") - _number(counts, "total_unknown_s"), _number(counts, "net_s")
    covered = inside / net_s if net_s > 0 else 0.0
    if covered < LEAST_COVERED or flop <= 0:
        return _uncovered(covered, flop)
    formats = _formats(counts.get("formats"))
    precision = max(formats, key=lambda name: formats[name], default=USUAL_PRECISION)
    basis = "the operations of NumPy"
    return StepCounts(
        flop=Bounded.near(flop, COUNT_ERROR, basis),
        moved=Bounded.near(moved, BYTES_ERROR, basis),
        precision=precision if precision in _PRECISIONS else USUAL_PRECISION,
    )


def _uncovered(covered: float, flop: float) -> StepCounts:
    what = f"{flop:.3g} FLOP a step were counted, but they take" if flop > 0 else "operations that compute take"
    return _none(f"{what} {min(covered, 1.0):.0%} of the time: what the rest does is not known")


def _network(counts: Mapping[str, object]) -> Network | None:
    batch, forward = _number(counts, "samples"), _number(counts, "forward_flop")
    if batch <= 0 or forward <= 0 or not counts.get("parameters"):
        return None
    shape = [int(size) for size in _numbers(counts.get("input", ()))]
    return Network(
        parameters=int(_number(counts, "parameters")),
        tables=int(_number(counts, "tables")),
        macs=max(round(forward / 2 / batch), 1),
        activations=max(round(_number(counts, "activations") / batch), 1),
        layers=_layers(counts, forward),
        products=max(round(_number(counts, "product_calls")), 1),
        image_size=shape[-1] if len(shape) == 4 else 0,
        sequence=shape[1] if counts.get("tokens") and len(shape) == 2 else 0,
        batch=batch,
    )


def _layers(counts: Mapping[str, object], forward: float) -> str:
    total = sum(_numbers(counts["step_flop"])) / max(_number(counts, "counted_steps"), 1.0) or forward
    attention, convolution = (_number(counts, f"{name}_flop") / total for name in ("attention", "convolution"))
    if convolution > 0.3:
        if attention > 0.05:
            return "hybrid"
        return "depthwise-cnn" if _number(counts, "depthwise_flop") > 0.2 * _number(counts, "convolution_flop") else "cnn"
    return "vit" if attention > 0.01 else "mlp"


def _spread(values: Sequence[float], least: float, basis: str) -> Bounded:
    mean = sum(values) / len(values)
    return Bounded(mean, min(*values, mean * (1 - least)), max(*values, mean * (1 + least)), basis)


def _number(counts: Mapping[str, object], name: str) -> float:
    value = counts.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _numbers(value: object) -> list[float]:
    return [float(item) for item in value if isinstance(item, int | float)] if isinstance(value, list | tuple) else []


def _formats(value: object) -> dict[str, float]:
    return {str(name): float(flop) for name, flop in value.items()} if isinstance(value, Mapping) else {}
