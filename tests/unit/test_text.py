from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chipwise import text, units


@given(st.floats(min_value=1, max_value=1e17), st.booleans())
def test_a_shown_size_reads_back_to_within_its_digits(value: float, binary: bool) -> None:
    assert units.parse_bytes(text.size(value, binary)) == pytest.approx(value, rel=6e-3)


@given(st.floats(min_value=1e-6, max_value=1e11))
def test_a_shown_duration_reads_back_to_within_its_digits(value: float) -> None:
    assert units.parse_seconds(text.duration(value)) == pytest.approx(value, rel=6e-3)


@given(st.floats(min_value=1e-4, max_value=1e9))
def test_a_shown_amount_reads_back_to_within_its_digits(value: float) -> None:
    assert units.parse_usd(text.price(value)) == pytest.approx(value, rel=6e-3)


@given(st.floats(min_value=-1e17, max_value=1e17))
def test_nothing_is_shown_as_a_power_of_ten_above_one(value: float) -> None:
    assert "e+" not in text.size(value) + text.duration(value) + text.price(value)


def test_a_loss_has_its_sign_before_the_dollar() -> None:
    assert text.price(-5) == "-$5.00"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (3e-9, "3 ns"), (0.05, "50 ms"), (90, "90 s"), (2400, "40 min"), (5400, "1.5 h"), (86400 * 3, "3 d")],
)
def test_a_duration_has_the_unit_people_would_use(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(("seconds", "shown"), [(59, "59 s"), (90, "1 min 30 s"), (12000, "3 h 20 min"), (187200, "2 d 4 h")])
def test_a_span_has_two_units(seconds: float, shown: str) -> None:
    assert text.span(seconds) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "$0"), (1e-8, "<$0.000001"), (0.0484, "$0.0484"), (12.3, "$12.30"), (28373.6, "$28,374"), (-5, "-$5.00")],
)
def test_a_sum_shows_what_tells_two_sums_apart(value: float, shown: str) -> None:
    assert text.usd(value) == shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(1303.0, 1893.0, "$1,300-1,900"), (1161.0, 2323.0, "$1,160-2,330"), (0.55, 1.58, "$0.55-1.58"), (100.0, 100.0, "$100")],
)
def test_an_interval_of_money_is_never_shown_narrower_than_it_is(low: float, high: float, shown: str) -> None:
    assert text.usd_range(low, high) == shown


def test_an_end_that_is_the_value_is_not_rounded_away_from_it() -> None:
    assert text.usd_interval(2455.0, 3718.0, 2455.0) == "$2,455-3,720"
    assert text.usd_interval(40_123.0, 80_358.2, 80_358.0) == "$40,100-80,358"
    assert text.usd_interval(2401.0, 3718.0, 2455.0) == "$2,400-3,720"


SOURCE = Path(text.__file__).parent
_DIGITS = re.compile(r"[fge,]$")
_UNITS = re.compile(r" ?(ms|us|min|[kKMGT]i?B)(?!\w)")


def _form(node: ast.FormattedValue) -> str:
    parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))


def formatted_here(tree: ast.AST) -> Iterator[str]:
    """Strings that write money with digits of their own, or scale a size or a time to a unit."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for left, right in zip(node.values, node.values[1:], strict=False):
            if isinstance(left, ast.Constant) and isinstance(right, ast.FormattedValue):
                if str(left.value).endswith("$") and _DIGITS.search(_form(right)):
                    yield ast.unparse(node)
            elif isinstance(left, ast.FormattedValue) and isinstance(right, ast.Constant):
                scaled = any(isinstance(part, ast.BinOp) for part in ast.walk(left.value))
                if scaled and _DIGITS.search(_form(left)) and _UNITS.match(str(right.value)):
                    yield ast.unparse(node)


def test_no_other_module_formats_money_sizes_or_times() -> None:
    """Programs that leave for other machines bring their own words."""
    files = [path for path in SOURCE.rglob("*.py") if "programs" not in path.parts and path != SOURCE / "text.py"]
    found = {
        f"{path.relative_to(SOURCE)}: {line}" for path in files for line in formatted_here(ast.parse(path.read_text("utf-8")))
    }
    assert found == set()


@pytest.mark.parametrize("line", ['f"${cost:,.2f} a month"', 'f"{memory / 2**30:.0f} GiB"', 'f"takes {wait * 1e3:g} ms"'])
def test_a_number_that_is_formatted_elsewhere_is_seen(line: str) -> None:
    assert list(formatted_here(ast.parse(line)))


@pytest.mark.parametrize("line", ['f"{usd(cost)} a month"', 'f"within {limit_s:g} s"', 'f"{count / 2:.1f} jobs"'])
def test_words_of_text_and_plain_numbers_are_not(line: str) -> None:
    assert not list(formatted_here(ast.parse(line)))
