"""Counts of what a NumPy program computes, by arrays of a class of our own that stand in for plain ones.

Arrays that the program creates through functions of NumPy are of the class `Counted`, and so is all that follows from them:
operators, slices, products, transforms. Each operation is done on the plain arrays inside, and its time is taken there, so what
counting costs is known and can be left out. Bytes are those of all inputs and results, once each. What is computed with Python
numbers, or inside other libraries, is not seen here. The program is slower meanwhile: a run of its own is made for this.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any

from .numpy_formulas import function_flop, random_flop, ufunc_flop
from .repeats import Repeats
from .report import Report

_CREATE = (
    "zeros ones empty full arange linspace logspace geomspace eye identity array load loadtxt frombuffer fromfile fromiter"
)
_DRAWN = "random standard_normal normal uniform exponential standard_exponential integers poisson gamma lognormal binomial"
_DRAWN_BEFORE = "rand randn random random_sample normal uniform standard_normal exponential randint lognormal"
_METHODS = ("dot", "sort", "argsort", "partition", "searchsorted", "trace", "round", "clip", "cumsum", "cumprod")


class Tally:
    """All that was counted, as sums, and the sequence of operations by which steps are found."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.flop = self.moved = self.inside_s = self.overhead_s = self.unknown_s = 0.0
        self.calls = 0
        self.formats: dict[str, float] = {}
        self.operators: dict[str, list[float]] = {}
        self.repeats = Repeats()
        self.began = time.perf_counter()

    def add(self, name: str, flop: float | None, arrays: Iterable[Any], start: float, middle: float) -> None:
        """One operation: `flop` is None where nobody knows; it ran from `start` to `middle`."""
        arrays = list(arrays)
        size, seconds = float(sum(array.nbytes for array in arrays)), middle - start
        self.calls += 1
        self.flop += flop or 0.0
        self.moved += size
        self.inside_s += seconds
        self.unknown_s += seconds if flop is None else 0.0
        if flop:
            kind = _format(arrays)
            self.formats[kind] = self.formats.get(kind, 0.0) + flop
        row = self.operators.setdefault(name, [0.0, 0.0, 0.0, 0.0])
        for place, value in enumerate((1.0, flop or 0.0, size, seconds)):
            row[place] += value
        shapes = tuple(array.shape for array in arrays)
        self.repeats.add((name, shapes), (self.flop, self.moved, self.inside_s, self.unknown_s, self.net_s(middle)))
        if self.repeats.is_due(middle):
            self._tell()
        self.overhead_s += time.perf_counter() - middle

    def net_s(self, now: float) -> float:
        """Since the program imported NumPy, without what counting took."""
        return now - self.began - self.overhead_s

    def _tell(self) -> None:
        if self.report.counts.get("framework") == "torch":
            return  # NumPy only helps there
        slowest = sorted(self.operators.items(), key=lambda item: -item[1][3])[:20]
        self.report.note(
            framework="numpy",
            total_flop=self.flop,
            total_bytes=self.moved,
            total_inside_s=self.inside_s,
            total_unknown_s=self.unknown_s,
            net_s=self.net_s(time.perf_counter()),
            formats=self.formats,
            operators=[[name, *row] for name, row in slowest],
            **self.repeats.summary(),
        )

    def finish(self) -> None:
        self._tell()


def _format(arrays: list[Any]) -> str:
    names = {"float64": "fp64", "complex128": "fp64", "float32": "fp32", "complex64": "fp32", "float16": "fp16"}
    return next((names[str(array.dtype)] for array in arrays if str(array.dtype) in names), "other")


def watch(numpy: ModuleType, report: Report) -> None:
    import atexit

    np: Any = numpy
    tally = Tally(report)
    counted = _array_class(np, tally)

    def wrapped(value: Any) -> Any:
        return value.view(counted) if type(value) is np.ndarray and value.dtype.kind in "fciub" else value

    def creating(function: Callable[..., Any]) -> Callable[..., Any]:
        def create(*args: Any, **kwargs: Any) -> Any:
            return wrapped(function(*args, **kwargs))

        create.__name__ = function.__name__
        create.__doc__ = function.__doc__
        return create

    def drawing(function: Callable[..., Any]) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            value = function(*args, **kwargs)
            middle = time.perf_counter()
            if isinstance(value, np.ndarray):
                tally.add(f"random.{function.__name__}", random_flop(value), [value], start, middle)
            return wrapped(value)

        draw.__name__ = function.__name__
        return draw

    for name in _CREATE.split():
        setattr(np, name, creating(getattr(np, name)))
    random = importlib.import_module("numpy.random")
    for name in _DRAWN_BEFORE.split():
        setattr(random, name, drawing(getattr(random, name)))
    generator: Any = random.Generator
    members = {name: _method(drawing, getattr(generator, name)) for name in _DRAWN.split()}
    counting_generator = type("Generator", (generator,), members)
    plain_rng = random.default_rng
    setattr(random, "default_rng", lambda seed=None: counting_generator(plain_rng(seed).bit_generator))  # noqa: B010
    atexit.register(tally.finish)
    if report.counts.get("framework") != "torch":
        report.note(framework="numpy", version=str(np.__version__))


def _method(drawing: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    counted = drawing(function)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return counted(self, *args, **kwargs)

    return method


def _array_class(np: Any, tally: Tally) -> Any:
    def plain(value: Any) -> Any:
        if isinstance(value, Counted):
            return value.view(np.ndarray)
        if isinstance(value, list | tuple) and any(isinstance(item, Counted | list | tuple) for item in value):
            items = [plain(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        return value

    def wrapped(value: Any) -> Any:
        if type(value) is np.ndarray:
            return value.view(Counted) if value.dtype.kind in "fciub" else value
        if isinstance(value, list | tuple) and type(value) in (list, tuple):
            return type(value)(wrapped(item) for item in value)
        return value

    def arrays(value: Any) -> Iterator[Any]:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, list | tuple):
            for item in value:
                yield from arrays(item)

    listed = (np.ndarray, list)

    def _gathers(key: Any) -> bool:
        """Whether what it selects is copied: an array of positions or flags, alone or among slices."""
        return isinstance(key, listed) or (type(key) is tuple and any(isinstance(part, listed) for part in key))

    class Counted(np.ndarray):  # type: ignore[misc]
        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
            before = time.perf_counter()
            targets = kwargs.get("out")
            if targets is not None:
                kwargs["out"] = tuple(plain(target) for target in targets)
            if "where" in kwargs:
                kwargs["where"] = plain(kwargs["where"])
            values = tuple(plain(value) for value in inputs)
            start = time.perf_counter()
            result = getattr(ufunc, method)(*values, **kwargs)
            middle = time.perf_counter()
            tally.overhead_s += start - before
            distinct = {id(original): value for original, value in zip(inputs, values, strict=True)}  # x * x reads x once
            used = [*arrays(tuple(distinct.values())), *arrays(result)]
            tally.add(
                f"{ufunc.__name__}.{method}" if method != "__call__" else ufunc.__name__,
                ufunc_flop(ufunc.__name__, method, values, result),
                used,
                start,
                middle,
            )
            if targets is not None:
                return targets[0] if len(targets) == 1 else targets
            return wrapped(result)

        def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            before = time.perf_counter()
            target = kwargs.get("out")
            values, keywords = plain(tuple(args)), {name: plain(value) for name, value in kwargs.items()}
            start = time.perf_counter()
            result = func(*values, **keywords)
            middle = time.perf_counter()
            tally.overhead_s += start - before
            used = [*arrays(values), *arrays(list(keywords.values())), *arrays(result)]
            tally.add(func.__name__, function_flop(func, values, keywords, result), used, start, middle)
            return target if target is not None else wrapped(result)

        def __getitem__(self, key: Any) -> Any:
            if not _gathers(key):
                return super().__getitem__(key)
            source, place = self.view(np.ndarray), plain(key)
            start = time.perf_counter()
            value = source[place]
            middle = time.perf_counter()
            tally.add("gather", 0.0, [value, value, *arrays(place)], start, middle)  # read, and written as often
            return wrapped(value)

        def __setitem__(self, key: Any, value: Any) -> None:
            target, source, place = self.view(np.ndarray), plain(value), plain(key)
            start = time.perf_counter()
            target[place] = source
            middle = time.perf_counter()
            if isinstance(source, np.ndarray) and source.ndim:
                tally.add("assign", 0.0, [source, source], start, middle)  # read, and written as often

    for name in _METHODS:
        setattr(Counted, name, _as_function(np, name))
    return Counted


def _as_function(np: Any, name: str) -> Callable[..., Any]:
    """The method as the function of the same name, which is counted; `sort` and `partition` work in place."""
    function = getattr(np, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        if name in ("sort", "partition"):
            self.view(np.ndarray)[...] = result
            return None
        return result

    return method
