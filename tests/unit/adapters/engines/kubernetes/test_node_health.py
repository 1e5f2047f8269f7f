"""A sick node is cordoned and left; one that flickers, or is not ours to judge, is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kubernetes_rights as rights
from chipwise.adapters.engines.kubernetes.allowed import fault
from chipwise.adapters.engines.kubernetes.health import LASTS_S, TAINT, NodeHealth, SickNode, avoiding, tainted
from chipwise.adapters.engines.kubernetes.kinds import JOB, NODE, POD
from chipwise.adapters.engines.kubernetes.picture import Picture
from chipwise.adapters.engines.kubernetes.reading import Times, part_of, sight
from chipwise.observe.health.decide import Cordon
from chipwise.runner.engine import Seen, Sight, State
from chipwise.runner.events import Begun, Leaving, Placed, Submitted, after, first
from chipwise.runner.job import Job, LeaveReason, MachinePlace, Needs, Spec
from chipwise.runner.step import step

NOW = 1000.0
SICK = [("GPUMissing", "True", "XID79")]


def node(*conditions: tuple[str, str, str], left: int = 8, version: str = "1", name: str = "n", **spec: Any) -> dict[str, Any]:
    told = [{"type": kind, "status": status, "reason": reason} for kind, status, reason in conditions]
    gpu = "nvidia.com/gpu"
    return {
        "metadata": {"name": name, "resourceVersion": version, "labels": {"kubernetes.io/hostname": f"host-{name}"}},
        "spec": spec,
        "status": {"conditions": told, "capacity": {gpu: "8"}, "allocatable": {gpu: str(left)}},
    }


def sick(*nodes: dict[str, Any], lasts_s: float = LASTS_S) -> dict[str, SickNode]:
    picture, health = Picture(), NodeHealth()
    for one in nodes:
        picture.put(NODE, one)
    health.sick(picture, NOW)
    return health.sick(picture, NOW + lasts_s)


def test_a_sick_node_is_cordoned_and_what_runs_there_leaves_with_the_reason() -> None:
    found = sick(node(*SICK))["n"]
    assert found.words == "node n is unhealthy: condition GPUMissing is True (XID79)"
    assert NodeHealth().cordons([found]) == (Cordon("n", found.reason),)
    assert found.concerns(gpus=1)


@pytest.mark.parametrize(
    "conditions",
    [
        (("XIDErrors", "True", "XID13"),),
        (("IBLinkFlapping", "True", ""),),
        (("Ready", "False", "KubeletNotReady"),),
        (("NetworkUnavailable", "True", ""),),
        (("GPUMissing", "False", ""), ("Ready", "True", "")),
        (("GPUMissing", "Unknown", ""),),
    ],
)
def test_what_is_only_to_be_watched_or_is_for_kubernetes_to_act_on_moves_nothing(
    conditions: tuple[tuple[str, str, str], ...],
) -> None:
    assert sick(node(*conditions)) == {}


def test_nothing_is_done_before_it_has_lasted_and_a_flicker_begins_anew() -> None:
    assert sick(node(*SICK), lasts_s=LASTS_S - 1) == {}
    picture, health = Picture(), NodeHealth()
    for at, conditions in ((0.0, SICK), (40.0, []), (50.0, SICK), (LASTS_S + 20.0, SICK)):
        picture.put(NODE, node(*conditions, version=str(int(at) + 1)))
        assert health.sick(picture, NOW + at) == {}
    assert list(health.sick(picture, NOW + 50.0 + LASTS_S)) == ["n"]


def test_devices_out_of_service_concern_only_jobs_that_need_them() -> None:
    """The scheduler knows what is left, and places there what that is enough for."""
    found = sick(node(left=7))["n"]
    assert NodeHealth().cordons([found]) == ()
    assert (found.concerns(gpus=8), found.concerns(gpus=7)) == (True, False)


def test_a_node_that_has_our_taint_is_not_tainted_again_and_other_taints_stay() -> None:
    other = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    change = tainted(node(*SICK, taints=[other]), "condition GPUMissing is True (XID79)")
    [first_taint, own] = change["spec"]["taints"]
    assert first_taint == other
    assert own == {"key": TAINT, "value": "condition-GPUMissing-is-True-XID79", "effect": "NoSchedule"}
    assert change["metadata"]["resourceVersion"] == "1"
    again = sick(node(*SICK, taints=change["spec"]["taints"]))["n"]
    assert NodeHealth().cordons([again]) == ()
    assert again.concerns(gpus=0)  # what still runs there


def test_where_nodes_may_not_be_changed_attempts_keep_away_by_themselves() -> None:
    health = NodeHealth(may_cordon=False)
    found = sick(node(*SICK))["n"]
    assert health.cordons([found]) == ()
    template = {"spec": {"template": {"spec": {"containers": [{"name": "main"}], "priorityClassName": "chipwise-job"}}}}
    changed = avoiding(template, [found])
    terms = changed["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert terms["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["host-n"]}]}
    ]
    assert "affinity" not in template["spec"]["template"]["spec"]
    assert fault(JOB, changed) == ""
    assert avoiding(template, []) is template


def _running(job: Job, sick_nodes: dict[str, str]) -> Sight | None:
    own = {"chipwise.dev/job": "j", "chipwise.dev/attempt": "1"}
    picture = Picture()
    picture.put(JOB, {"metadata": {"name": "j-a1", "uid": "u", "labels": own}, "spec": {}, "status": {}})
    status = {"phase": "Running", "startTime": "2026-11-01T10:00:00Z"}
    picture.put(POD, {"metadata": {"name": "p", "uid": "p", "labels": own}, "spec": {"nodeName": "n"}, "status": status})
    return sight(picture, part_of(picture, ("j", 1), JOB), job, Times(NOW, NOW + 30.0, sick=sick_nodes))


def test_the_job_moves_from_its_last_checkpoint_and_its_story_says_why() -> None:
    job = after(first("j", Submitted(Spec(("x",), "j", "kubernetes", needs=Needs(1))), 0.0), Placed(1, MachinePlace()), 0.0)
    job = after(job, Begun(1, "j-a1"), 1.0)
    found = sick(node(*SICK))["n"]
    seen = _running(job, {"n": found.words})
    assert seen is not None
    assert (seen.state, seen.leave_by, seen.reason) == (State.RUNNING, NOW + 30.0, found.words)
    cordon = Cordon("n", found.reason)
    acts = step({"j": job}, Seen(NOW, {("j", 1): seen}, cordons=(cordon,)), NOW)
    [leaving] = [event for act in acts for event in act.events]
    assert isinstance(leaving, Leaving)
    assert (leaving.why, leaving.reason) == (LeaveReason.NOTICE, found.words)
    assert cordon in [order for act in acts for order in act.orders]
    well = _running(job, {})
    assert well is not None
    assert well.leave_by is None


def test_the_written_right_to_cordon_is_the_one_of_the_code_and_stands_apart() -> None:
    written = Path(__file__).parents[5] / "docs" / "running" / "kubernetes-cordon-role.yaml"
    assert written.read_text() == rights.cordoning_text()
    assert "patch" not in str([one["rules"] for one in rights.objects() if one["kind"] == "ClusterRole"])
