"""A profile as a roofline picture: one SVG file, readable without scripts, style sheets or fonts from elsewhere.

Above, each sample with arithmetic stands at its arithmetic intensity (FLOP per byte) and achieved rate (FLOP/s), both on
logarithmic scales. The slanted line is the best copy bandwidth that was measured, each level line the best rate of one
precision; dashed lines are what the data sheet says (S. Williams et al., Roofline, CACM 52(4), 2009). Below stand the samples
that only move bytes. The list names every kind with the best that was seen, launches by their time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from chipwise.perf.profile import Profile, ProfileSample
from chipwise.text import duration

_WIDTH = 1000.0
_LEFT, _RIGHT, _TOP = 92.0, 710.0, 64.0  # of the plot; the list stands to its right
_PLOT, _ROW = 430.0, 22.0
_COLOURS = (  # Okabe and Ito's, which most colour-blind readers tell apart, then darker ones
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f3c8d",
    "#8c564b",
    "#3b5b2e",
    "#1b1b6f",
    "#a3123f",
    "#5f6b6d",
    "#b8a500",
    "#00707a",
    "#ff7f6b",
    "#4b4b4b",
)
_INK, _QUIET, _GRID = "#1f2328", "#57606a", "#e4e7eb"
_HALO = 'paint-order="stroke" stroke="#ffffff" stroke-width="3"'  # a label stays readable over lines and dots
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic scale: `low` and `high` are powers of ten, `start` and `end` their places on the page."""

    low: int
    high: int
    start: float
    end: float

    def place(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))

    def ticks(self) -> list[float]:
        step = max(1, math.ceil((self.high - self.low) / 9))
        return [10.0**power for power in range(self.low, self.high + 1, step) if -308 < power < 308]


def draw(profile: Profile, peak_flops_per_s: float | None, bandwidth: float | None) -> str:
    """The picture; `peak_flops_per_s` and `bandwidth` (bytes/s) are the data sheet's, None where it does not say."""
    dots = [sample for sample in profile.samples if _drawable(sample.intensity, sample.flop_per_s)]
    movers = [sample for sample in profile.samples if sample.flop == 0 and _drawable(sample.bytes_per_s)]
    peak = peak_flops_per_s if _drawable(peak_flops_per_s) else None
    nominal = bandwidth if _drawable(bandwidth) else None
    kinds = list(dict.fromkeys(sample.kind for sample in profile.samples))
    colours = {kind: _COLOURS[i % len(_COLOURS)] for i, kind in enumerate(kinds)}
    strip = sorted({sample.kind for sample in movers}, key=kinds.index)
    strip_top = _TOP + _PLOT + 92
    height = max(strip_top + _ROW * len(strip) + 64 if strip else _TOP + _PLOT + 70, _TOP + 48 + 36 * len(kinds))
    size = f'width="{_WIDTH:.0f}" height="{height:.0f}"'
    view = f'viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img" aria-labelledby="title description"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} font-family="system-ui, sans-serif" font-size="12">',
        f'<title id="title">{_xml(f"Roofline of {profile.device}")}</title>',
        f'<desc id="description">{_xml(_description(profile, dots, movers))}</desc>',
        f'<rect {size} fill="#ffffff"/>',
        _label(_LEFT, 28, f"Roofline of {profile.chip or profile.device}", size=18, weight="600"),
        _label(_LEFT, 48, f"{profile.device}, {profile.software}, {profile.date}", fill=_QUIET),
    ]
    parts += _roofline(dots, movers, peak, nominal, colours) if dots else [_nothing()]
    parts += _strip(movers, strip, strip_top, colours) if strip else []
    parts += _list(profile.samples, kinds, colours)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawable(*values: float | None) -> bool:
    return all(value is not None and math.isfinite(value) and value > 0 for value in values)


def _nothing() -> str:
    return _label((_LEFT + _RIGHT) / 2, _TOP + _PLOT / 2, "No sample with arithmetic", fill=_QUIET, anchor="middle", size=16)


def _roofline(
    dots: Sequence[ProfileSample],
    movers: Sequence[ProfileSample],
    peak: float | None,
    nominal: float | None,
    colours: dict[str, str],
) -> list[str]:
    copies = [sample.bytes_per_s for sample in movers if sample.kind == "copy"]
    measured = max(copies, default=None)
    best: dict[str, float] = {}
    for sample in dots:
        best[sample.precision] = max(best.get(sample.precision, 0.0), sample.flop_per_s)
    x_axis = _axis([sample.flop / sample.bytes for sample in dots], _LEFT, _RIGHT)
    y_axis = _axis([*(sample.flop_per_s for sample in dots), *([peak] if peak else ())], _TOP + _PLOT, _TOP)
    parts = _frame(x_axis, y_axis)
    if nominal or peak:
        parts += _roof(x_axis, y_axis, nominal, peak, f'stroke="{_QUIET}" stroke-dasharray="6 4"')
        parts += _nominal_label(y_axis, x_axis, peak, nominal)
    parts += _roof(x_axis, y_axis, measured, max(best.values()), f'stroke="{_INK}" stroke-width="1.6"')
    lines, labels = _levels(x_axis, y_axis, best, measured)
    dotted = [_dot(x_axis.place(s.flop / s.bytes), y_axis.place(s.flop_per_s), s, colours[s.kind]) for s in dots]
    captions = [_slope_label(x_axis, y_axis, measured, f"measured {_si(measured, 'B/s')}")] if measured else []
    return [*parts, *lines, *dotted, *labels, *captions]


def _axis(values: Iterable[float], start: float, end: float) -> _Axis:
    powers = [min(max(math.log10(value), -300.0), 300.0) for value in values]  # further out no power of ten is a float
    low, high = math.floor(min(powers)), math.ceil(max(powers) + 0.05)
    return _Axis(low, max(high, low + 1), start, end)


def _frame(x_axis: _Axis, y_axis: _Axis) -> list[str]:
    bottom = _TOP + _PLOT
    parts = []
    for tick in x_axis.ticks():
        x = x_axis.place(tick)
        parts += [_line(x, _TOP, x, bottom), _label(x, bottom + 18, _plain(tick), fill=_QUIET, anchor="middle")]
    for tick in y_axis.ticks():
        y = y_axis.place(tick)
        parts += [_line(_LEFT, y, _RIGHT, y), _label(_LEFT - 8, y + 4, _si(tick, "FLOP/s"), fill=_QUIET, anchor="end")]
    middle = (_LEFT + _RIGHT) / 2
    return [*parts, _label(middle, bottom + 40, "arithmetic intensity, FLOP per byte", anchor="middle")]


def _roof(x_axis: _Axis, y_axis: _Axis, bandwidth: float | None, peak: float | None, style: str) -> list[str]:
    """The slanted line up to the peak, and the peak from there on; each alone where the other is not known."""
    left, right = 10.0**x_axis.low, 10.0**x_axis.high
    bottom, top = 10.0**y_axis.low, 10.0**y_axis.high
    points: list[tuple[float, float]] = []
    ridge = left
    if bandwidth:
        ridge = (peak or top) / bandwidth
        points.append((max(left, bottom / bandwidth), max(bandwidth * left, bottom)))
        end = min(max(ridge, left), right)
        points.append((end, min(bandwidth * end, peak or top)))
    if peak and ridge < right:
        points += [(max(ridge, left), peak), (right, peak)]
    path = " ".join(f"{x_axis.place(x):.1f},{y_axis.place(y):.1f}" for x, y in points if _drawable(x, y))
    return [f'<polyline points="{path}" fill="none" {style}/>'] if path else []


def _levels(x_axis: _Axis, y_axis: _Axis, best: dict[str, float], measured: float | None) -> tuple[list[str], list[str]]:
    """A thin line per precision at its best rate, and its label; labels that would overlap stand below each other."""
    lines, labels = [], []
    free = _TOP
    for precision, rate in sorted(best.items(), key=lambda item: -item[1]):
        y = y_axis.place(rate)
        start = x_axis.place(rate / measured) if measured and _drawable(rate / measured) else _LEFT
        lines.append(f'<line x1="{start:.1f}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}" stroke="{_INK}" stroke-width="0.8"/>')
        free = max(free + 13, y - 4)
        text = f"{precision} {_si(rate, 'FLOP/s')}"
        width = 6.6 * len(text) + 4  # of letters this size, about; a plate, since a halo leaves lines between them
        labels += [
            f'<rect x="{_RIGHT - 2 - width:.1f}" y="{free - 10:.1f}" width="{width + 3:.1f}" height="12.5" fill="#ffffff"/>',
            _label(_RIGHT - 4, free, text, anchor="end", size=11),
        ]
    return lines, labels


def _nominal_label(y_axis: _Axis, x_axis: _Axis, peak: float | None, nominal: float | None) -> list[str]:
    text = ", ".join(([_si(peak, "FLOP/s")] if peak else []) + ([_si(nominal, "B/s")] if nominal else []))
    y = y_axis.place(peak) - 6 if peak else _TOP + 14
    ridge = peak / nominal if peak and nominal else 0.0
    x = x_axis.place(ridge) if _drawable(ridge) else _LEFT
    return [_label(max(x - 8, _LEFT + 220), y, f"data sheet {text}", fill=_QUIET, size=11, anchor="end")]


def _slope_label(x_axis: _Axis, y_axis: _Axis, bandwidth: float, text: str) -> str:
    """A label that follows the slanted line, above it."""
    slope = ((_PLOT) / (y_axis.high - y_axis.low)) / ((_RIGHT - _LEFT) / (x_axis.high - x_axis.low))
    low = max(10.0**x_axis.low, 10.0**y_axis.low / bandwidth)
    x, y = x_axis.place(low), y_axis.place(max(bandwidth * low, 10.0**y_axis.low))
    angle = -math.degrees(math.atan(slope))
    return (
        f'<text transform="translate({x:.1f} {y:.1f}) rotate({angle:.1f})" x="14" y="-7" font-size="11"'
        f' fill="{_INK}" {_HALO}>{_xml(text)}</text>'
    )


def _strip(movers: Sequence[ProfileSample], kinds: Sequence[str], top: float, colours: dict[str, str]) -> list[str]:
    rates = _axis([sample.bytes_per_s for sample in movers], _LEFT + 60, _RIGHT)
    bottom = top + _ROW * len(kinds)
    parts = [_label(_LEFT, top - 14, "Moving bytes only", size=13, weight="600")]
    for tick in rates.ticks():
        x = rates.place(tick)
        parts += [_line(x, top, x, bottom), _label(x, bottom + 18, _si(tick, "B/s"), fill=_QUIET, anchor="middle")]
    for index, kind in enumerate(kinds):
        y = top + _ROW * (index + 0.5)
        parts.append(_label(rates.start - 8, y + 4, kind, anchor="end", size=11))
        parts += [_dot(rates.place(s.bytes_per_s), y, s, colours[kind]) for s in movers if s.kind == kind]
    return parts


def _list(samples: Sequence[ProfileSample], kinds: Sequence[str], colours: dict[str, str]) -> list[str]:
    x = _RIGHT + 28
    parts = [_label(x, _TOP + 10, "Kinds, and the best of each", size=13, weight="600")]
    for index, kind in enumerate(kinds):
        y = _TOP + 34 + 36 * index
        own = [sample for sample in samples if sample.kind == kind]
        parts += [
            f'<circle cx="{x + 5:.1f}" cy="{y - 4:.1f}" r="5" fill="{colours[kind]}"/>',
            _label(x + 18, y, kind),
            _label(x + 18, y + 15, f"{_best(own)} ({len(own)})", fill=_QUIET, size=11),
        ]
    return parts


def _best(samples: Sequence[ProfileSample]) -> str:
    """The highest rate, or the shortest time where nothing is computed or moved."""
    if any(sample.flop > 0 for sample in samples):
        top = max(samples, key=lambda sample: sample.flop_per_s)
        return f"{_si(top.flop_per_s, 'FLOP/s')} in {top.precision}"
    if any(sample.bytes > 0 for sample in samples):
        return _si(max(sample.bytes_per_s for sample in samples), "B/s")
    return f"{duration(min(sample.seconds for sample in samples))} each"


def _dot(x: float, y: float, sample: ProfileSample, colour: str) -> str:
    """A dot with its story as a tooltip; a compiled one has a dark rim."""
    sizes = ", ".join(f"{name} {size:,}" for name, size in sample.shape)
    rate = _si(sample.flop_per_s, "FLOP/s") if sample.flop > 0 else _si(sample.bytes_per_s, "B/s")
    tooltip = f"{sample.kind} {sample.precision}: {sizes}. {duration(sample.seconds)}, {rate}"
    rim = f' stroke="{_INK}" stroke-width="1.2"' if sample.size("compiled") else ""
    title = f"<title>{_xml(tooltip)}</title>"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}" fill-opacity="0.75"{rim}>{title}</circle>'


def _description(profile: Profile, dots: Sequence[ProfileSample], movers: Sequence[ProfileSample]) -> str:
    sentences = [f"{len(profile.samples)} samples of {profile.device} on {profile.date}."]
    if dots:
        top = max(dots, key=lambda sample: sample.flop_per_s)
        sentences.append(f"The highest rate is {_si(top.flop_per_s, 'FLOP/s')} ({top.kind} in {top.precision}).")
    if movers:
        fast = max(movers, key=lambda sample: sample.bytes_per_s)
        sentences.append(f"The highest bandwidth is {_si(fast.bytes_per_s, 'B/s')} ({fast.kind}).")
    return " ".join(sentences)


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{_GRID}"/>'


def _label(
    x: float, y: float, text: str, *, fill: str = _INK, anchor: str = "start", size: int = 12, weight: str = "400"
) -> str:
    style = f'fill="{fill}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" {_HALO}'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{_xml(text)}</text>'


def _plain(value: float) -> str:
    return f"{value:,.0f}" if 1 <= value < 1e7 else f"{value:g}"


def _si(value: float, unit: str) -> str:
    """Three digits with a prefix: 788 TFLOP/s."""
    for factor, prefix in _PREFIXES:
        if value >= factor * 0.9995 and value < 1e21:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def _xml(text: str) -> str:
    """Escaped, and without the characters XML has no way to write."""
    return escape("".join(c if c.isprintable() else " " for c in text))
