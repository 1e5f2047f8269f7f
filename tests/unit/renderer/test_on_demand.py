"""A service on demand: no copy while nobody asks, the first request is held until there is one, and none is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import yaml

from autoscaling import SYNC_S, Autoscaler, Service, evaluate
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.timing import ready_seconds
from chipwise.renderer.targets import gateway, keda
from fixed_deployments import CASES

SERVE = replace(CASES["serve"], starts="", stops="")
ASKED = replace(SERVE, idle_s=900.0)


def every(target: Any, planned: Deployment) -> list[dict[str, Any]]:
    return [one for file in target.render(planned) for one in yaml.safe_load_all(file.text)]


def scaled(planned: Deployment = ASKED) -> dict[str, Any]:
    return dict(next(one["spec"] for one in every(keda, planned) if one["kind"] == "ScaledObject"))


def formula(planned: Deployment = ASKED) -> str:
    return str(scaled(planned)["advanced"]["scalingModifiers"]["formula"])


def test_there_is_none_only_while_nothing_is_in_work_and_nothing_is_held() -> None:
    quiet = {"load": 0.0, "waiting": 0.0, "held": 0.0}
    assert evaluate(formula(), **quiet, copies=1) == 0
    assert evaluate(formula(), **quiet, copies=0) == 0
    assert evaluate(formula(), **(quiet | {"held": 1.0}), copies=0) >= 1
    assert evaluate(formula(), **(quiet | {"load": 1.0}), copies=1) >= 1, "an answer is being written"
    spec = scaled()
    assert spec["minReplicaCount"] == 0
    assert spec["cooldownPeriod"] == 900
    assert "activationTarget" not in spec["advanced"]["scalingModifiers"], "KEDA takes 0: active above it"
    assert {one["name"] for one in spec["triggers"]} == {"waiting", "load", "copies", "held"}


def test_without_it_the_least_of_the_plan_stays() -> None:
    assert SERVE.scaling is not None
    assert scaled(SERVE)["minReplicaCount"] == SERVE.scaling.minimum
    assert "held" not in formula(SERVE)


def test_its_hours_close_it_all_the_same() -> None:
    planned = replace(ASKED, starts="0 7 * * *", stops="0 22 * * *")
    signals = {"load": 3.0, "waiting": 0.0, "held": 2.0, "copies": 1.0}
    assert evaluate(formula(planned), **signals, hours=0) == 0
    assert evaluate(formula(planned), **signals, hours=2) >= 1
    assert evaluate(formula(planned), load=0, waiting=0, held=0, copies=0, hours=2) == 0


def play(planned: Deployment, rate: Callable[[int], float], seconds: int) -> tuple[list[int], Service]:
    """KEDA between none and one, as its executor does; the autoscaler above. What finds no pod ready is held, not refused."""
    spec, start_s = scaled(planned), float(ready_seconds(planned))
    service = Service(slots=128, answer_s=9.0, start_s=start_s)
    above = Autoscaler(spec, 1)
    asked_at, copies = -1e9, 0
    seen: list[int] = []
    for now in range(seconds):
        service.step(rate(now), now)
        if now % SYNC_S == 0:
            ready = service.ready(now)
            now_seen = service.signals(now)
            waiting = now_seen["waiting"] if ready else 0.0
            held = now_seen["waiting"] if not ready else 0.0
            signals = {"load": now_seen["running"] + waiting, "waiting": waiting, "held": held, "copies": float(copies)}
            if evaluate(formula(planned), **signals) > 0:
                asked_at = now
                copies = max(copies, 1)
                copies = above.sync(now, copies, signals)
            elif now - asked_at >= spec["cooldownPeriod"]:
                copies = 0
            service.set(copies, now)
        seen.append(copies)
    return seen, service


def test_a_call_in_the_night_is_answered_and_nothing_runs_before_and_long_after() -> None:
    hour = 3600
    seen, service = play(ASKED, lambda now: 1.0 if now == hour else 0.0, 4 * hour)
    assert set(seen[:hour]) == {0}
    assert max(seen) == 1, "one request needs one copy"
    assert service.in_flight < 0.01, "it was answered"
    assert seen[-1] == 0
    up = sum(1 for one in seen if one)
    assert up <= ready_seconds(ASKED) + 900 + 300, "a start, an answer, and the time that the workload gives"


def test_a_morning_is_met_from_nothing() -> None:
    assert ASKED.scaling is not None
    assert ASKED.scaling.per_replica is not None
    rate = 2.0 * ASKED.scaling.per_replica
    seen, service = play(ASKED, lambda now: rate if now >= 600 else 0.0, 3 * 3600)
    assert seen[-1] >= 2
    assert service.in_flight <= seen[-1] * 128, "nothing waits in the end"


def picker_config(planned: Deployment) -> dict[str, Any]:
    maps = [one for one in every(gateway, planned) if one["kind"] == "ConfigMap"]
    [text] = [one["data"]["plugins.yaml"] for one in maps if "plugins.yaml" in one["data"]]
    return dict(yaml.safe_load(text))


def test_the_picker_holds_a_request_as_long_as_a_start_takes() -> None:
    config = picker_config(ASKED)
    assert config["featureGates"] == ["flowControl"]
    assert config["flowControl"]["defaultRequestTTL"] == f"{ready_seconds(ASKED)}s"
    assert "featureGates" not in picker_config(SERVE)
    [route] = [one for one in every(gateway, ASKED) if one["kind"] == "HTTPRoute"]
    [rule] = route["spec"]["rules"]
    assert int(rule["timeouts"]["request"].removesuffix("s")) > ready_seconds(ASKED)
    [epp] = [one for one in every(gateway, ASKED) if one["kind"] == "Deployment"]
    words = epp["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--disable-endpoint-subset-filter=true" in words


def test_prometheus_reads_the_picker_that_the_rule_asks_about() -> None:
    monitors = {one["metadata"]["name"]: one for one in every(keda, ASKED) if one["kind"] == "PodMonitor"}
    [epp] = [one for one in every(gateway, ASKED) if one["kind"] == "Deployment"]
    picked = monitors[epp["metadata"]["name"]]["spec"]
    assert picked["selector"]["matchLabels"].items() <= epp["spec"]["template"]["metadata"]["labels"].items()
    ports = {one["name"] for one in epp["spec"]["template"]["spec"]["containers"][0]["ports"]}
    assert picked["podMetricsEndpoints"][0]["port"] in ports


@pytest.mark.parametrize(
    "planned",
    [
        replace(ASKED, software=replace(ASKED.software, is_custom=True)),
        replace(ASKED, software=replace(ASKED.software, engine="tgi")),
    ],
    ids=["own", "tgi"],
)
def test_what_nothing_would_hold_is_refused(planned: Deployment) -> None:
    with pytest.raises(CannotRender, match="idle_after"):
        keda.render(planned)
