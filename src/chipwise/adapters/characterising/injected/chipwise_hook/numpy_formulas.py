"""Floating-point operations of NumPy's functions, by the shapes of what they are given; None where nobody can say.

An addition or product counts one, of complex numbers two and six; an elementary function (exponential, sine) eight, and a
random number twenty-five, as in the formulas of chipwise. A transform of N complex values counts 5 N log2 N.
"""

from __future__ import annotations

import math
from typing import Any

ELEMENTARY = 8.0
RANDOM = 25.0
_FREE_WORDS = (
    "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not logical_xor isnan isfinite isinf "
    "bitwise_and bitwise_or bitwise_xor invert left_shift right_shift signbit copysign positive conjugate"
)
_ELEMENTARY_WORDS = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh power "
    "float_power cbrt logaddexp hypot"
)
_COPYING_WORDS = (
    "copy concatenate stack vstack hstack dstack column_stack reshape ravel transpose swapaxes moveaxis expand_dims squeeze "
    "roll flip rot90 tile repeat broadcast_to zeros_like ones_like empty_like full_like where take put copyto shape ndim size "
    "array_split split atleast_1d atleast_2d any all argmax argmin nonzero count_nonzero isin array_equal result_type"
)
_FREE, _ELEMENTARY, _NO_FLOP = (frozenset(words.split()) for words in (_FREE_WORDS, _ELEMENTARY_WORDS, _COPYING_WORDS))
_PER_VALUE = {"sum": 1, "mean": 1, "prod": 1, "cumsum": 1, "cumprod": 1, "max": 1, "min": 1, "amax": 1, "amin": 1, "diff": 1}
_PER_VALUE |= {"var": 4, "std": 4, "clip": 2, "round": 1, "around": 1, "trace": 1, "average": 2, "nansum": 1, "gradient": 2}
_COMPLEX = {"add": 2.0, "subtract": 2.0, "multiply": 6.0}


def ufunc_flop(name: str, method: str, inputs: tuple[Any, ...], result: Any) -> float | None:
    if name in ("matmul", "vecdot", "matvec", "vecmat"):
        return _matmul(inputs[0], inputs[1]) if method == "__call__" else None
    if not _is_float(result) and not any(map(_is_float, inputs)):
        return 0.0
    if name in _FREE:
        return 0.0
    values = _size(result) if method in ("__call__", "outer") else max(map(_size, inputs), default=0.0)
    if any(getattr(getattr(value, "dtype", None), "kind", "") == "c" for value in (*inputs, result)):
        return values * _COMPLEX.get(name, ELEMENTARY)
    return values * (ELEMENTARY if name in _ELEMENTARY and not _is_square(name, inputs) else 1.0)


def _is_square(name: str, inputs: tuple[Any, ...]) -> bool:
    """x ** 2 is a product."""
    return name == "power" and len(inputs) > 1 and not hasattr(inputs[1], "shape") and inputs[1] in (2, -1, 0.5, 1)


def function_flop(function: Any, args: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> float | None:
    name, module = function.__name__, str(getattr(function, "__module__", ""))
    if ".fft" in module or name in _TRANSFORMS:
        return _transform(name, args, keywords, result)
    if name in ("dot", "inner", "vdot") and len(args) > 1:
        return _dot(name, args[0], args[1])
    if name in ("tensordot", "einsum"):
        return _einsum(args) if name == "einsum" else _tensordot(args, keywords, result)
    if name in ("convolve", "correlate") and len(args) > 1:
        return 2.0 * _size(result) * min(_size(args[0]), _size(args[1]))
    if "linalg" in module:
        return _linalg(name, args)
    if name in _NO_FLOP:
        return 0.0
    if name in _PER_VALUE:
        return float(_PER_VALUE[name]) * _size(args[0]) if _is_float(args[0]) else 0.0
    return None


def random_flop(values: Any) -> float:
    return RANDOM * _size(values) if _is_float(values) else 0.0


def _size(value: Any) -> float:
    return float(getattr(value, "size", 1))


def _is_float(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "kind", "f" if isinstance(value, float) else "") in ("f", "c")


def _complex(*values: Any) -> float:
    return 4.0 if any(getattr(getattr(value, "dtype", None), "kind", "") == "c" for value in values) else 1.0


def _matmul(left: Any, right: Any) -> float:
    inner = left.shape[-1]
    rows = left.shape[-2] if left.ndim > 1 else 1
    columns = right.shape[-1] if right.ndim > 1 else 1
    stacked = max(math.prod(left.shape[:-2]), math.prod(right.shape[:-2]))
    return float(2.0 * stacked * rows * columns * inner * _complex(left, right))


def _dot(name: str, left: Any, right: Any) -> float:
    if not getattr(left, "shape", ()) or not getattr(right, "shape", ()):
        return max(_size(left), _size(right))
    if name == "vdot" or (left.ndim == 1 and right.ndim == 1):
        return 2.0 * _size(left) * _complex(left, right)
    inner = left.shape[-1]
    return float(2.0 * _size(left) * _size(right) / inner * _complex(left, right))


def _tensordot(args: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> float:
    axes = keywords.get("axes", args[2] if len(args) > 2 else 2)
    left = args[0]
    if isinstance(axes, int):
        inner = math.prod(left.shape[left.ndim - axes :])
    else:
        chosen = axes[0] if isinstance(axes[0], list | tuple) else [axes[0]]
        inner = math.prod(left.shape[axis] for axis in chosen)
    return float(2.0 * _size(result) * inner * _complex(left, args[1]))


def _einsum(args: tuple[Any, ...]) -> float | None:
    if not args or not isinstance(args[0], str) or "." in args[0] or len(args) > 3:
        return None
    sizes: dict[str, int] = {}
    for letters, array in zip(args[0].replace(" ", "").partition("->")[0].split(","), args[1:], strict=False):
        sizes.update(zip(letters, array.shape, strict=False))
    return 2.0 * math.prod(sizes.values()) * _complex(*args[1:])


_TRANSFORMS = frozenset(
    f"{inverse}{real}fft{dimension}" for inverse in ("", "i") for real in ("", "r") for dimension in ("", "2", "n")
)


def _transform(name: str, args: tuple[Any, ...], keywords: dict[str, Any], result: Any) -> float | None:
    if name not in _TRANSFORMS:
        return 0.0 if "shift" in name or "freq" in name else None
    shape = args[0].shape if not name.startswith("irfft") else result.shape
    if name.endswith("2"):
        lengths = shape[-2:]
    elif name.endswith("n"):
        axes = keywords.get("axes")
        lengths = shape if axes is None else tuple(shape[axis] for axis in axes)
    else:
        axis = keywords.get("axis", args[2] if len(args) > 2 else -1)
        lengths = (result.shape[axis] if name in ("fft", "ifft") else shape[axis],)
    values = _size(result) if name.startswith(("fft", "ifft")) else math.prod(shape)
    full = 5.0 * values * sum(math.log2(max(length, 2)) for length in lengths)
    return full / 2.0 if "rfft" in name else full


def _linalg(name: str, args: tuple[Any, ...]) -> float | None:
    if not args or getattr(args[0], "ndim", 0) < 2:
        return 2.0 * _size(args[0]) if name == "norm" and args else None
    rows, columns = (float(length) for length in args[0].shape[-2:])
    stacked = float(math.prod(args[0].shape[:-2]))
    match name:
        case "norm":
            return 2.0 * _size(args[0])
        case "solve":
            sides = float(args[1].shape[-1]) if getattr(args[1], "ndim", 1) > 1 else 1.0
            return stacked * (2.0 / 3.0 * rows**3 + 2.0 * rows**2 * sides)
        case "inv":
            return stacked * 2.0 * rows**3
        case "det":
            return stacked * 2.0 / 3.0 * rows**3
        case "cholesky":
            return stacked * rows**3 / 3.0
        case "qr":
            return stacked * (4.0 * rows * columns**2 - 4.0 / 3.0 * columns**3)  # with the orthogonal factor
        case _:
            return None  # iterative: eigenvalues, singular values, least squares
