"""A load that is bought in layers: targets that make machines make those of the plan, and together no more than the most."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from chipwise.api.catalog.check import check
from chipwise.api.verbs import plan_any_checked
from chipwise.money.layering import Layer as Paid
from chipwise.planner.values.plan import Plan
from chipwise.renderer.deployment import Deployment, MachineLayer
from chipwise.renderer.describing import describe
from chipwise.renderer.layout import bought, most_machines, part_word
from chipwise.renderer.named_targets import files, target
from deployments import EXAMPLES
from deployments import few_session as session
from fixed_deployments import CASES
from layered import ALL, RESERVED_ON_DEMAND, RESERVED_SPOT, layered


def written(name: str, deployment: Deployment) -> dict[str, str]:
    return {file.path: file.text for file in files(name, target(name), deployment)}


@pytest.mark.parametrize("layers", [RESERVED_SPOT, RESERVED_ON_DEMAND, ALL])
def test_parts_hold_together_what_the_whole_may_hold(layers: tuple[MachineLayer, ...]) -> None:
    whole = layered(layers)
    parts = bought(whole)
    assert sum(most_machines(part) for part in parts) == most_machines(whole)
    assert [part.purchase for part in parts] == [one.purchase for one in layers]
    assert whole.scaling is not None
    for size in ("minimum", "usual", "maximum"):
        assert sum(getattr(part.scaling, size) for part in parts) == getattr(whole.scaling, size)
    assert len({part.name for part in parts}) == len(parts)


def test_what_is_promised_is_never_more_than_the_most_that_may_run() -> None:
    whole = layered(RESERVED_SPOT)
    assert whole.scaling is not None
    small = replace(whole, scaling=replace(whole.scaling, minimum=1, usual=1, maximum=1))
    assert sum(most_machines(part) for part in bought(small)) == most_machines(small)


def test_one_way_to_buy_is_one_part() -> None:
    serve = CASES["serve"]
    assert bought(serve) == (serve,)
    assert part_word(serve, serve) == ""


def test_two_terms_have_names_of_their_own() -> None:
    names = [
        part.name
        for part in bought(
            layered((MachineLayer("reserved-3y", 1), MachineLayer("reserved-1y", 2), MachineLayer("on-demand", 1)))
        )
    ]
    assert names == ["chat-api-base", "chat-api-base-2", "chat-api-on-demand"]


def test_karpenter_fills_what_is_paid_anyway_first_and_keeps_it() -> None:
    pools = list(yaml.safe_load_all(written("karpenter", layered(RESERVED_SPOT))["nodes.yaml"]))[:2]
    base, spot = (pool["spec"] for pool in pools)
    assert base["weight"] > spot["weight"]
    assert (base["limits"]["nvidia.com/gpu"], spot["limits"]["nvidia.com/gpu"]) == ("3", "9")  # one more for a rollout
    assert base["disruption"]["consolidateAfter"] == "Never"
    ways = [
        one["values"]
        for pool in (base, spot)
        for one in pool["template"]["spec"]["requirements"]
        if one["key"] == "karpenter.sh/capacity-type"
    ]
    assert ways == [["on-demand"], ["spot"]]
    assert {pool["template"]["spec"]["nodeClassRef"]["name"] for pool in (base, spot)} == {"chat-api"}


def test_a_pool_alone_has_no_weight() -> None:
    pool = next(yaml.safe_load_all(written("karpenter", CASES["serve"])["nodes.yaml"]))
    assert "weight" not in pool["spec"]


def test_kueue_borrows_in_the_last_layer_only() -> None:
    """A flavor that may borrow is taken before the next one is looked at."""
    objects = list(yaml.safe_load_all(written("kueue", layered(ALL))["queues.yaml"]))
    queue = next(one for one in objects if one["kind"] == "ClusterQueue")
    flavors = queue["spec"]["resourceGroups"][0]["flavors"]
    chips = [{one["name"]: one for one in flavor["resources"]}["nvidia.com/gpu"] for flavor in flavors]
    assert [one["nominalQuota"] for one in chips] == ["2", "1", "4"]
    assert [one["borrowingLimit"] for one in chips] == ["0", "0", "4"]
    assert {flavor["name"] for flavor in flavors} == {
        one["metadata"]["name"] for one in objects if one["kind"] == "ResourceFlavor"
    }


def test_terraform_buys_the_base_for_good_and_spot_above_it() -> None:
    text = written("terraform", layered(ALL))["main.tf"]
    assert "on_demand_base_capacity                  = 3" in text
    assert "var.on_demand_percentage" in text
    steady = written("terraform", layered(RESERVED_ON_DEMAND))["main.tf"]
    assert "on_demand_base_capacity" not in steady
    assert "spot" not in steady.partition("mixed_instances_policy")[2].partition("}\n\n")[0]


def test_terraform_makes_a_node_group_for_each_layer() -> None:
    text = written("terraform", layered(ALL))["eks/main.tf"]
    assert [word for word in ("base", "on_demand", "spot") if f'resource "aws_eks_node_group" "{word}"' in text] == [
        "base",
        "on_demand",
        "spot",
    ]
    assert text.count('"SPOT"') == 1


def test_eksctl_makes_a_group_for_each_layer() -> None:
    config = yaml.safe_load(written("eksctl", layered(RESERVED_SPOT))["cluster.yaml"])
    base, spot = config["managedNodeGroups"][1:]
    assert (base["name"], base["minSize"], base["maxSize"], base.get("spot")) == ("chat-api-base", 3, 3, None)
    assert (spot["name"], spot["minSize"], spot["maxSize"], spot["spot"]) == ("chat-api-spot", 0, 9, True)
    assert base["tags"]["chipwise:workload"] == spot["tags"]["chipwise:workload"] == "chat-api"


def test_pods_of_a_load_in_layers_run_on_any_of_them() -> None:
    text = written("kubernetes", layered(RESERVED_SPOT))["workload.yaml"]
    assert "capacity-type" not in text
    assert "karpenter.sh/capacity-type" in written("kubernetes", layered(RESERVED_ON_DEMAND))["workload.yaml"]


def test_only_machines_of_one_chip_are_mixed_in_layers() -> None:
    other = replace(CASES["serve"].node, machine="g6.xlarge", chip="L4")
    pools = list(yaml.safe_load_all(written("karpenter", layered(RESERVED_SPOT, alternatives=(other,)))["nodes.yaml"]))
    assert "g6.xlarge" not in str(pools[:2])


# -- from a plan


def planned() -> tuple[object, Plan]:
    path = str(EXAMPLES / "serve" / "workload.yaml")
    checked = check(session(), path, None, text=None)
    found = plan_any_checked(session(), path, checked, None, 20)
    assert isinstance(found, Plan)
    return checked.workload, found


def described(layers: tuple[Paid, ...], steps: tuple[tuple[int, float], ...], rank: int = 0, usd: float = 900.0) -> Deployment:
    work, plan = planned()
    assert plan.load is not None
    load = replace(plan.load, layers=layers, steps=steps, usd=usd, machines_peak=max(many for many, _ in steps))
    return describe(work, replace(plan, load=load), session().catalog, None, plan.choices[rank])  # type: ignore[arg-type]


def test_the_layers_of_a_plan_are_those_of_its_files() -> None:
    made = described((Paid("reserved-3y", 3, 1, 1, 1), Paid("on-demand", 2, 1, 1, 1)), ((3, 600.0), (5, 130.0)))
    assert made.layers == (MachineLayer("reserved-3y", 3), MachineLayer("on-demand", 2))
    assert made.scaling is not None
    assert made.scaling.minimum == 3  # paid for whether they run or not, though the workload asks for two at least
    assert made.scaling.maximum == 12  # as the workload says; the last layer takes what is above the plan's five
    assert sum(most_machines(part) for part in bought(made)) == most_machines(made)
    assert made.predicted.followed_usd == 900.0


def test_one_layer_says_how_the_machines_are_bought() -> None:
    made = described((Paid("reserved-1y", 2, 1, 1, 1),), ((2, 730.0),))
    assert made.layers == ()
    assert made.purchase == "reserved-1y"


def test_layers_are_not_those_of_another_choice() -> None:
    made = described((Paid("reserved-3y", 3, 1, 1, 1), Paid("spot", 2, 1, 1, 1)), ((3, 600.0), (5, 130.0)), rank=1)
    assert made.layers == ()
    assert made.predicted.followed_usd is None


def test_owned_machines_are_not_bought() -> None:
    layers = (Paid("owned", 2, 1, 1, 1, owned="own rack-1 in Berlin"), Paid("on-demand", 1, 1, 1, 1), Paid("spot", 2, 1, 1, 1))
    made = described(layers, ((1, 600.0), (3, 130.0)))
    assert [one.purchase for one in made.rented] == ["on-demand", "spot"]
    assert any("own rack-1 in Berlin" in note for note in made.notes)


def test_a_load_that_is_cheapest_elsewhere_is_told_with_its_choice() -> None:
    work, plan = planned()
    assert plan.load is not None
    other = plan.choices[1]
    load = replace(plan.load, provider=other.provider, machine=other.machine, region=other.region, usd=10.0)
    made = describe(work, replace(plan, load=load), session().catalog, None)  # type: ignore[arg-type]
    assert any("--choice 2 writes that" in note for note in made.notes)
