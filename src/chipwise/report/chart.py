"""What a chart is, as values: series on two axes, and what stands beside them. `svg` draws it.

Texts are markup already (`markup.label`); a series without a name is not in the legend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

INK, QUIET, GRID = "#1f2328", "#57606a", "#d8dee4"
COLOURS = (  # Okabe and Ito's, which most colour-blind readers tell apart; bars have a thin dark rim besides
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#8c564b",
    "#5f6b6d",
)
ANSWER = "#d1242f"  # the sign of the chosen one
_UNKNOWN = "#c0c4c8"
_VIRIDIS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))

Value = float | str  # a number, an ISO date or a name


@dataclass(frozen=True, slots=True)
class Stroke:
    colour: str
    width: float
    dash: str = ""  # dot, dash
    shape: str = ""  # of steps: hv (across then up), vh, hvh; empty: straight from point to point


@dataclass(frozen=True, slots=True)
class Bar:
    """From left to right beside its place; `interval` is a thin line over it."""

    place: str
    length: float
    colour: str
    tip: str = ""
    start: float | None = None  # None: at zero, or at the end of those before it where bars are stacked
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    bars: tuple[Bar, ...]
    name: str = ""

    @property
    def xs(self) -> list[float]:
        return [bar.length for bar in self.bars]

    @property
    def ys(self) -> list[str]:
        return [bar.place for bar in self.bars]


@dataclass(frozen=True, slots=True)
class Columns:
    xs: Sequence[float]
    ys: Sequence[float]
    colour: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A line through points, broken where a value is None; with `fill` an area on top of the areas before it."""

    xs: Sequence[Value]
    ys: Sequence[float | None]
    stroke: Stroke
    name: str = ""
    fill: str = ""
    second: bool = False  # on the second axis, at the right


@dataclass(frozen=True, slots=True)
class Ribbon:
    """What is between two lines."""

    xs: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    fill: str
    name: str = ""

    @property
    def ys(self) -> list[float]:
        return [*self.lows, *self.highs]


@dataclass(frozen=True, slots=True)
class Dot:
    x: Value
    y: float
    size: float
    colour: str
    rim: float = 1  # pixels
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Points:
    """`shaded`: colours follow the chart's scale, and the legend shows the symbol without one."""

    symbol: str
    dots: tuple[Dot, ...]
    name: str = ""
    shaded: bool = False

    @property
    def xs(self) -> list[Value]:
        return [dot.x for dot in self.dots]

    @property
    def ys(self) -> list[float]:
        return [dot.y for dot in self.dots]


Series = Bars | Columns | Lines | Ribbon | Points


@dataclass(frozen=True, slots=True)
class Axis:
    title: str = ""
    span: tuple[float, float] | None = None  # in powers of ten on a logarithmic axis; None: that of the values
    is_log: bool = False
    marks: tuple[tuple[float, str], ...] = ()  # of a logarithmic axis: values, and how each is written
    step: float | None = None  # between figures; None: a round one
    most_figures: int = 7  # where their step is not given
    prefix: str = ""
    in_thousands: bool = False  # 250k, 3M
    from_zero: bool = False
    ends_at_last: bool = False  # no room behind the highest value


@dataclass(frozen=True, slots=True)
class Note:
    """A text beside a bar; without `x` at the right edge."""

    x: float | None
    place: str
    text: str
    inside: bool = False  # the end of the bar, in white


@dataclass(frozen=True, slots=True)
class ColourScale:
    """Viridis, dark where the value is high; grey where it is not known."""

    title: str
    low: float
    high: float
    marks: tuple[str, str, str]  # how low, middle and high are written

    def colour(self, value: float | None) -> str:
        if value is None:
            return _UNKNOWN
        share = (1.0 - min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)) * (len(_VIRIDIS) - 1)
        index = min(int(share), len(_VIRIDIS) - 2)
        mixed = (a + (b - a) * (share - index) for a, b in zip(_VIRIDIS[index], _VIRIDIS[index + 1], strict=True))
        return "#" + "".join(f"{round(part):02x}" for part in mixed)


@dataclass(frozen=True, slots=True)
class Chart:
    name: str
    series: tuple[Series, ...]
    x: Axis
    y: Axis
    height: float  # of the plot alone, in pixels
    second: Axis | None = None  # for lines on an axis of their own, at the right
    stacked: bool = False  # bars of one place follow each other
    legend_above: bool = False
    scale: ColourScale | None = None
    notes: tuple[Note, ...] = ()
    limit: float | None = None  # across: a dashed line
