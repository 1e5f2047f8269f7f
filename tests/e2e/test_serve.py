"""A service on this machine as its operator sees it: real replicas as jobs, a real gateway, requests while things happen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import psutil
import pytest

from patience import deadline
from run_machine import CHIPWISE, Machine, machine
from served_load import CUT, errors, loaded, sent, slow

pytestmark = pytest.mark.e2e
__all__ = ["machine"]  # a fixture, taken by its name
ROOT = Path(__file__).resolve().parents[2]
STAND_IN = ("--", sys.executable, str(ROOT / "tests" / "support" / "token_server.py"), "--port", "{port}", "--tokens", "8")


def started(machine: Machine, *words: str) -> dict[str, Any]:
    service: dict[str, Any] = json.loads(machine("serve", "--json", "--port", "0", *words).stdout)
    return service


def status(machine: Machine) -> dict[str, Any]:
    service: dict[str, Any] = json.loads(machine("serve", "status", "--json").stdout)[0]
    return service


def killed(machine: Machine, replica: dict[str, Any]) -> None:
    """Its program, as when it crashes; its supervisor sees that."""
    job = machine.job(replica["job"])
    [program] = psutil.Process(machine.supervisor(job)).children()
    os.kill(program.pid, signal.SIGKILL)


def tiny_model(path: Path) -> Path:
    """Made by the program that the tutorial uses."""
    spec = spec_from_file_location("word_pairs", ROOT / "examples" / "serve-here" / "word_pairs.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.write(path)
    return path


def test_replicas_are_killed_scaled_and_replaced_under_load_and_no_request_is_lost(machine: Machine) -> None:
    """With a stand-in for a model server: tokens are the word "tok"."""
    service = started(machine, "--replicas", "2", "--name", "tiny", *STAND_IN, "--interval", "0.01")
    url, replicas = service["url"], service["replicas"]
    assert [replica["ready"] for replica in replicas] == [True, True]

    shots = loaded(url, 20, 6, lambda: killed(machine, replicas[0]))
    assert set(errors(shots)) <= {CUT}
    assert errors(shots)[CUT] <= 5  # streams that the killed one had begun
    assert len(machine.job(replicas[0]["job"])["attempts"]) == 2

    assert not errors(loaded(url, 20, 10, lambda: machine("serve", "scale", "tiny", "3")))
    assert not errors(loaded(url, 20, 10, lambda: machine("serve", "scale", "tiny", "1")))
    assert [replica["ready"] for replica in status(machine)["replicas"]] == [True]

    better = ("serve", "rollout", "tiny", "--share", "50%", "--judge-for", "60s", *STAND_IN, "--interval", "0.008")
    shots = loaded(url, 30, 25, lambda: machine(*better, timeout=120))
    assert not errors(shots)
    assert [replica["version"] for replica in status(machine)["replicas"]] == [2]
    machine("serve", "stop", "tiny")
    assert json.loads(machine("serve", "status", "--json").stdout) == []
    assert machine("ps", "--phase", "running,queued", "--json").stdout.strip() == "[]"


@pytest.mark.parametrize(
    "fault",
    [("--refuse", "500"), ("--prefill", "1.5"), ("--interval", "0.1")],
    ids=["failing", "slow", "slow tokens"],
)
def test_a_bad_version_is_taken_back_and_hurts_its_share_at_most(fault: tuple[str, str], machine: Machine) -> None:
    service = started(machine, "--name", "tiny", *STAND_IN, "--role", "--interval", "0.005")
    words = ("serve", "rollout", "tiny", "--share", "20%", "--judge-for", "60s", *STAND_IN, "--role", *fault)
    told: list[str] = []
    shots = loaded(service["url"], 25, 16, lambda: told.append(machine(*words, code=1, timeout=120).stderr))
    assert "was taken back" in told[0]
    assert len(errors(shots)) <= 1
    assert sum(errors(shots).values()) + slow(shots, 1.0) <= 0.25 * sent(shots)
    after = status(machine)
    assert after["canary"] is None
    assert [replica["version"] for replica in after["replicas"]] == [1]
    machine("serve", "stop")


def test_llama_cpp_answers_in_words_and_a_killed_replica_loses_no_request(machine: Machine) -> None:
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp: not installed (pip install 'chipwise[llama]')")
    path = tiny_model(machine.home / "work" / "tiny.gguf")
    service = started(machine, str(path), "--replicas", "2", "--cpus", "1", "--queue", "150s")
    body = json.dumps({"model": "tiny", "prompt": "When a replica is", "max_tokens": 12, "temperature": 0}).encode()
    request = urllib.request.Request(f"{service['url']}/v1/completions", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = json.load(answer)["choices"][0]["text"]
    assert text.startswith(" lost")
    shots = loaded(service["url"], 3, 8, lambda: killed(machine, service["replicas"][0]))
    assert set(errors(shots)) <= {CUT}
    story = machine("describe", service["replicas"][1]["job"], env={"COLUMNS": "300"}).stdout
    assert "cold start" in story
    assert "process" in story
    assert "first token" in story
    assert not errors(loaded(service["url"], 3, 6, lambda: machine("serve", "scale", "tiny", "1")))
    shots = loaded(service["url"], 2, 8, lambda: killed(machine, status(machine)["replicas"][0]))  # the only one
    assert set(errors(shots)) <= {CUT}
    machine("serve", "stop")


VLLM = """#!{python}
import os, sys
print("stand-in for vLLM:", *sys.argv[1:], flush=True)
port = sys.argv[sys.argv.index("--port") + 1]
os.execv(sys.executable, [sys.executable, "{server}", "--port", port, "--tokens", "8"])
"""


def test_vllm_is_started_with_the_flags_of_the_plan(machine: Machine) -> None:
    """With a stand-in for vLLM, which prints the words that it was started with."""
    programs = machine.home / "bin"
    programs.mkdir()
    program = programs / "vllm"
    program.write_text(VLLM.format(python=sys.executable, server=ROOT / "tests" / "support" / "token_server.py"))
    program.chmod(0o755)
    machine.env |= {"PATH": f"{programs}:{machine.env['PATH']}", "CHIPWISE_CHIP": "h100-sxm"}
    service = started(machine, str(ROOT / "examples" / "serve" / "workload.yaml"), "--engine", "vllm", "--replicas", "1")
    replica = service["replicas"][0]
    printed = machine("logs", replica["job"]).stdout
    assert "stand-in for vLLM: serve meta-llama/Llama-3.1-8B --served-model-name llama-3-1-8b" in printed
    assert f"--host 127.0.0.1 --port {replica['port']}" in printed
    assert "--max-model-len 8192" in printed
    assert not errors(loaded(service["url"], 20, 2, lambda: None))
    machine("serve", "stop")
    refused = machine("serve", str(ROOT / "examples" / "serve" / "workload.yaml"), code=2, env={"CHIPWISE_CHIP": "t4"})
    assert "fp8 needs compute capability 8.9 or newer" in refused.stderr


def test_a_gateway_that_is_killed_is_back_at_the_same_address(machine: Machine) -> None:
    service = started(machine, "--name", "tiny", *STAND_IN, "--interval", "0.001")
    job = service["gateway"]["job"]
    killed(machine, {"job": job})
    machine.until(job, "running")
    late = deadline(30)
    while True:
        with suppress(OSError), urllib.request.urlopen(f"{service['url']}/v1/models", timeout=5) as answer:
            assert answer.status == 200
            break
        assert time.monotonic() < late
        time.sleep(0.1)
    assert len(machine.job(job)["attempts"]) == 2
    assert not errors(loaded(service["url"], 20, 2, lambda: None))
    machine("serve", "stop")


def test_ctrl_c_stops_a_service_that_is_in_the_foreground(machine: Machine) -> None:
    command = [CHIPWISE, "serve", "--name", "tiny", "--port", "0", *STAND_IN]
    running = subprocess.Popen(
        command, cwd=machine.home / "work", env=machine.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert "tiny serves at http://127.0.0.1:" in running.stdout.readline()
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "tiny ended, with 1 replica" in told
    assert json.loads(machine("serve", "status", "--json").stdout) == []


def test_a_replica_that_cannot_start_is_told_with_what_it_printed_and_nothing_is_left(machine: Machine) -> None:
    done = machine("serve", "--name", "broken", "--", sys.executable, "-c", "raise SystemExit('no such weights')", code=3)
    assert "broken-1 did not start: exit code 1. It printed: no such weights" in done.stderr
    assert json.loads(machine("serve", "status", "--json").stdout) == []
    assert machine("ps", "--phase", "running,queued", "--json").stdout.strip() == "[]"


def test_a_service_is_scaled_up_by_its_load_and_the_story_says_why(machine: Machine) -> None:
    service = started(machine, "--name", "tiny", "--replicas", "1-2", "--at-once", "4", *STAND_IN, "--interval", "0.05")
    shots = loaded(service["url"], 15, 14, lambda: None)
    assert not errors(shots)
    assert len(status(machine)["replicas"]) == 2
    story = machine("describe", service["gateway"]["job"], env={"COLUMNS": "300"}).stdout
    assert "from 1 to 2 replicas" in story
    assert "and one replica takes 2.8" in story
    machine("serve", "stop")
    assert machine("ps", "--phase", "running,queued", "--json").stdout.strip() == "[]"


def test_a_service_without_requests_sleeps_and_the_next_request_waits_for_a_replica_and_is_answered(machine: Machine) -> None:
    words = ("--name", "tiny", "--replicas", "0-2", "--idle", "2s", "--at-once", "4")
    service = started(machine, *words, *STAND_IN, "--interval", "0.01")
    assert (service["scaling"]["idle_s"], service["scaling"]["fewest"]) == (2.0, 0)
    assert service["scaling"]["cold_start_s"] > 0.0  # what the first request after a sleep is told to wait for
    late = deadline(60)
    while status(machine)["replicas"]:
        assert time.monotonic() < late
        time.sleep(0.2)
    with urllib.request.urlopen(f"{service['url']}/health", timeout=5) as answer:
        assert answer.status == 200
    shots = loaded(service["url"], 5, 1, lambda: None)  # they come at once, and all are parked
    assert not errors(shots)
    story = machine("describe", service["gateway"]["job"], env={"COLUMNS": "300"}).stdout
    assert "from 1 to 0 replicas: no request for 2" in story
    assert "from 0 to " in story
    assert "after a request was parked; " in story
    machine("serve", "scale", "tiny", "1")
    after = status(machine)
    assert (after["scaling"], len(after["replicas"])) == (None, 1)
    machine("serve", "stop")
    assert machine("ps", "--phase", "running,queued", "--json").stdout.strip() == "[]"


def test_a_policy_of_a_file_scales_a_service_and_the_story_has_its_numbers(machine: Machine) -> None:
    policy = machine.home / "work" / "two.py"
    policy.write_text("def decide(signals):\n    return 2 if signals.arrived else 1\n")
    words = ("--name", "tiny", "--replicas", "1-3", "--scaling", "two.py", "--scale-every", "1s", "--at-once", "100")
    service = started(machine, *words, *STAND_IN, "--interval", "0.01")

    def until_scaled() -> None:
        late = deadline(60)
        while len(status(machine)["replicas"]) < 2:
            assert time.monotonic() < late
            time.sleep(0.5)

    assert not errors(loaded(service["url"], 15, 4, until_scaled))
    story = machine("describe", service["gateway"]["job"], env={"COLUMNS": "300"}).stdout
    assert "from 1 to 2 replicas: " in story
    assert "two.py wants 2: " in story
    assert "requests/s came, utilisation " in story
    machine("serve", "stop")
