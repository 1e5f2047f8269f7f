"""Cron as AWS writes it."""

from __future__ import annotations

import pytest

from chipwise.renderer.aws.schedules import aws_cron


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("0 7 * * 1-5", "cron(0 7 ? * MON-FRI *)"),
        ("30 13 * * sat,sun", "cron(30 13 ? * SAT,SUN *)"),
        ("0 20 1 * *", "cron(0 20 1 * ? *)"),
        ("0 2 * * 0,7", "cron(0 2 ? * SUN,SUN *)"),
        ("*/15 * * * *", "cron(*/15 * * * ? *)"),
    ],
)
def test_five_fields_become_six(given: str, wanted: str) -> None:
    assert aws_cron(given) == wanted


@pytest.mark.parametrize("given", ["", "0 2 1 * 1", "0 2 * *", "0 2 * * $(id)", "a\nb c d e"])
def test_what_aws_cannot_say_is_none(given: str) -> None:
    assert aws_cron(given) is None
