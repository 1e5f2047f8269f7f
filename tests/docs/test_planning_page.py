"""docs/planning.md names every key of `chipwise plan --json`, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from chipwise.api.session.wiring import open_session
from chipwise.api.verbs import plan
from chipwise.views.plan import SCHEMA, plan_view

ROOT = Path(__file__).resolve().parents[2]


def test_every_key_is_documented_and_every_documented_key_is_there() -> None:
    page = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    tables = [re.findall(r"^\| (`[^|]+`) \|", part, re.M) for part in page.split("A choice:")]
    whole, choice = ({name for cell in cells for name in re.findall(r"`(\w+)`", cell)} for cells in tables)
    view = plan_view(plan(open_session(), str(ROOT / "examples" / "serve" / "workload.yaml")))
    assert whole == {*view, "mix"}
    assert choice == set(view["winner"])
    assert view["schema"] == SCHEMA
