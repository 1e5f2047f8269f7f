"""The long plays of the simulated engine: what its tutorial shows, and a service that goes on for a month."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from chipwise.adapters.engines.simulated.play import TICK_S
from command import ROOT, Chipwise
from played_pipeline import PIPELINE


def test_the_tutorial_of_the_simulated_engine_is_true(chipwise: Chipwise) -> None:
    page = (ROOT / "docs/tutorial/simulate.md").read_text()
    [script] = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    commands = [shlex.split(line.partition("#")[0].partition(">")[0]) for line in script.strip().splitlines()]
    first, other, as_json, stages, command = (chipwise(*words[1:]) for words in commands)
    assert [one.code for one in (first, other, as_json, stages, command)] == [0, 0, 0, 0, 0]
    assert all(re.search(r"simulated: .* interruptions? \([\d.]+\s+predicted\)", one.out, re.DOTALL) for one in (first, other))
    assert stages.out != first.out
    assert "done after 6 h" in command.out
    assert as_json.json
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(compile(code, "simulate.md", "exec"), {})


def test_a_pipeline_is_played_stage_by_stage_on_the_machines_of_its_plan(chipwise: Chipwise, tmp_path: Path) -> None:
    far = PIPELINE.replace("input_tokens: 40}", "input_tokens: 40, limits: {clouds: [runpod]}}").replace(
        "100GB}", "100GB, limits: {clouds: [oci]}}"
    )
    (tmp_path / "p.yaml").write_text(f"{far}limits: {{interruptible: false}}\n")  # nothing is lost, and one hand-off goes far
    done = chipwise("run", "--simulate", "p.yaml", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    played, plan = done.json, chipwise("plan", "p.yaml", "--json", cwd=tmp_path).json
    assert [one["name"] for one in played["jobs"]] == ["made-fetch", "made-solve", "made-serve"]
    assert [one["phase"] for one in played["jobs"]] == ["done", "done", "stopped"]
    seconds = [one["seconds"] for one in played["jobs"]]
    assert seconds == sorted(seconds)
    thought = [stage["choice"]["seconds"]["value"] for stage in plan["stages"]]
    assert seconds[1] == pytest.approx(thought[0] + thought[1], abs=5 * TICK_S), "one after the other"
    names = {one["id"]: one["name"] for one in played["jobs"]}
    begun = [names[one["job"]] for one in played["story"] if one["text"].startswith("attempt 1 on")]
    assert begun == ["made-fetch", "made-solve", "made-serve"]
    machines = [stage["choice"]["machine"] for stage in plan["stages"]]
    told = [one["text"] for one in played["story"] if one["text"].startswith("attempt 1 on")]
    assert all(machine in text for machine, text in zip(machines, told, strict=True))
    assert played["usd"] == pytest.approx(sum(one["usd"] for one in played["jobs"]), abs=1e-3)
    assert played["seconds"] > 30 * 86400
    assert "Data transfers between stages are not simulated" in played["not_played"][0]
    text = chipwise("run", "--simulate", "p.yaml", cwd=tmp_path).out
    assert "All 3 jobs finished after 30 d" in text
    assert "Machine-hours:" in text
