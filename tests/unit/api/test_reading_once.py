"""A workload file is read once, whatever is asked of it besides its plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from chipwise.cli.plan import plan
from chipwise.planner import check as workloads
from chipwise.workload.parse import Look, Parsed, load_with_lines

pytestmark = pytest.mark.real_catalog

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "serve" / "workload.yaml"


@pytest.mark.parametrize("options", [[], ["--why", "hopper"], ["--html", "report.html"]])
def test_a_file_is_parsed_once(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def counted(path: str, environment: str | None, look: Look) -> Parsed:
        reads.append(path)
        return load_with_lines(path, environment, look)

    monkeypatch.setattr(workloads, "load_with_lines", counted)
    monkeypatch.setenv("CHIPWISE_CONFIG_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(plan, [str(EXAMPLE), *options])
    assert found.exit_code == 0, found.output
    assert reads == [str(EXAMPLE)]
    assert (": at best " in " ".join(found.output.split())) == ("--why" in options)
