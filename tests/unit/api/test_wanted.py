"""What options of `run` say of a command, of a workload and of the stages of a pipeline, and what they cannot say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chipwise.adapters.stores.memory_record import MemoryRecord
from chipwise.adapters.this_machine import host_name
from chipwise.api.running import asking, wanted
from chipwise.api.session.wiring import Session
from chipwise.errors import BadInput, NotAllowed
from chipwise.runner.job import Needs, Spec
from chipwise.runner.submission import machines_of_plan
from chipwise.runner.submission.request import needs_of

STAGE = "kind: hpc, steps: 1, flop_per_step: 1e9, bytes_per_step: 1MB, program: {command: ['true'], produces: [own.txt]}"


@pytest.fixture
def one(tmp_path: Path) -> str:
    (tmp_path / "one.yaml").write_text(f"{{name: small, {STAGE}}}\n")
    return str(tmp_path / "one.yaml")


@pytest.fixture
def flow(tmp_path: Path) -> str:
    stages = f"  - {{name: make, {STAGE}}}\n  - {{name: use, {STAGE}}}\n"
    (tmp_path / "flow.yaml").write_text(f"kind: pipeline\nname: flow\nstages:\n{stages}")
    return str(tmp_path / "flow.yaml")


def specs(session: Session, path: str, **given: Any) -> list[Spec]:
    with asking.opened(session) as held:
        return [spec for _, spec in wanted.named_specs(session, wanted.RunRequest((path,), path == "true", **given), held)]


# What is to be there in the end.


@pytest.mark.parametrize("path", ["", "  ", "a\nb", "a\tb", "x" * 1001])
def test_what_is_no_path_of_a_file_is_not_looked_for(session: Session, path: str) -> None:
    with pytest.raises(BadInput, match=r"--produces: .* is no path of a file\. Give a path such as"):
        specs(session, "true", produces=("good.txt", path))


def test_a_command_leaves_as_many_files_as_a_workload(session: Session) -> None:
    many = tuple(f"{n}.txt" for n in range(400))
    [spec] = specs(session, "true", produces=many)
    assert spec.produces == many
    with pytest.raises(BadInput, match="--produces: 401 are too many files"):
        specs(session, "true", produces=(*many, "more"))


def test_a_workload_leaves_what_its_file_and_the_command_line_say(session: Session, one: str) -> None:
    [spec] = specs(session, one, produces=("more.txt", "own.txt"))
    assert spec.produces == ("own.txt", "more.txt")


def test_which_stage_leaves_a_file_the_stage_says(session: Session, flow: str) -> None:
    with pytest.raises(BadInput, match=r"does not say which stage of .* makes ghost.txt\. Name it in the stage"):
        specs(session, flow, produces=("ghost.txt",))


# How many machines.


def test_a_simulation_plays_the_machines_of_the_plan(session: Session, one: str) -> None:
    [spec] = specs(session, one, machines="1-", played=True)
    assert spec.needs.machines_least == 1
    played = asking.simulate(session, wanted.RunRequest((one,), False, machines="1-"), 0)
    assert [course.job.spec.needs.fewest_machines for course in played.courses] == [1]


def test_of_a_simulation_the_least_is_not_more_than_is_planned(session: Session, one: str, flow: str) -> None:
    with pytest.raises(BadInput, match=r"The plan of small has 1 machine, fewer than the minimum of 3\. Write --machines 1-"):
        asking.simulate(session, wanted.RunRequest((one,), False, machines="3-"), 0)
    played = asking.simulate(session, wanted.RunRequest((flow,), False, machines="3-"), 0)  # as much as each stage can do
    assert [course.job.spec.needs.machines_least for course in played.courses] == [None, None]


def test_as_many_as_planned_or_more_than_the_least(session: Session) -> None:
    needs = machines_of_plan.with_minimum(Spec(("true",), "big", needs=Needs(machines_least=2)), 4, "big", serves=False)
    assert (needs.machines, needs.fewest_machines) == (4, 2)


@pytest.mark.parametrize("stages", [(), ("make=local",), ("make=local", "use=local")])
def test_where_all_runs_on_this_machine_it_is_one(session: Session, flow: str, one: str, stages: tuple[str, ...]) -> None:
    for path in (flow, one)[: 1 if stages else 2]:
        with pytest.raises(BadInput, match=r"This machine is one\. Leave --machines out, or take another engine"):
            specs(session, path, machines="2-", stages=stages)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"engine": "kubernetes"}, "Leave --engine out"),
        ({"stages": ("make=ec2",)}, "Leave --stage-engine out"),
        ({"engine": "ec2", "stages": ("make=local",)}, "Leave --engine and --stage-engine out"),
    ],
)
def test_a_simulation_names_the_option_that_it_does_not_take(session: Session, given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        asking.simulate(session, wanted.RunRequest(("flow.yaml",), False, **given), 0)


def test_a_command_without_its_dashes_is_told_of_them(session: Session) -> None:
    with pytest.raises(
        BadInput, match=r"There is no file 'nvidia-smi'.* Before a command write --: chipwise run -- nvidia-smi"
    ):
        specs(session, "nvidia-smi")
    with pytest.raises(BadInput, match=r"There is no file 'gone\.yaml'") as told:
        specs(session, "gone.yaml")
    assert "--" not in str(told.value)


def test_a_stage_on_this_machine_is_on_one(session: Session) -> None:
    needs = needs_of(wanted.RunRequest(("flow.yaml",), False, machines="2-"), "local", is_local=True)
    assert (needs.machines, needs.machines_least) == (1, None)


# Of which team it is.


class Known(MemoryRecord):
    def __init__(self, *teams: str) -> None:
        super().__init__(login="mia")
        self.known = frozenset(teams)

    def teams(self) -> frozenset[str]:  # type: ignore[override]
        return self.known


def of_team(session: Session, path: str, record: Known, team: str | None = None) -> str:
    with asking.opened(session) as held:
        request = wanted.RunRequest((path,), path == "true", team=team)
        [(_, spec)] = wanted.named_specs(session, request, replace(held, record=record))
        return spec.team


def test_a_job_belongs_to_the_only_team_of_its_owner(session: Session, one: str) -> None:
    assert of_team(session, "true", Known("vision")) == "vision"
    assert of_team(session, one, Known("vision")) == "vision"
    assert of_team(session, "true", Known()) == ""


def test_one_of_several_teams_says_for_which(session: Session) -> None:
    both = Known("vision", "speech")
    assert of_team(session, "true", both, "speech") == "speech"
    with pytest.raises(BadInput, match=r"mia is in several teams: speech, vision. .*--team"):
        of_team(session, "true", both)


def test_another_team_is_refused_in_words(session: Session) -> None:
    with pytest.raises(NotAllowed, match=r"mia is not in team speech. Yours: vision; .*chipwise members add mia --team speech"):
        of_team(session, "true", Known("vision"), "speech")


# What it may cost.


def priced(session: Session, usd: float) -> None:
    session.config.catalog_dir.mkdir(parents=True, exist_ok=True)
    (session.config.catalog_dir / "own.yaml").write_text(
        f"machines: [{{name: {host_name()}, chip: h100, chips: 4, vcpus: 8, region: here, price_per_hour: {usd}}}]\n"
        "regions: [{name: here, country: DEU}]\n"
    )


def test_a_command_on_a_machine_of_the_catalog_has_its_price(session: Session) -> None:
    priced(session, 8.0)
    [whole] = specs(session, "true", gpus=4, budget=5.0)
    [part] = specs(session, "true", gpus=1, budget=5.0)
    assert [one.usd_per_hour for one in (*whole.places, *part.places)] == [8.0, 2.0]


def test_a_budget_that_leaving_alone_would_cost_is_refused(session: Session) -> None:
    priced(session, 36.0)
    with pytest.raises(BadInput, match=r"may spend \$0\.20, and at \$36\.00 an hour the 30 s .* cost \$0\.30 alone\..*--grace"):
        specs(session, "true", gpus=4, budget=0.2)
    [short] = specs(session, "true", gpus=4, budget=0.2, grace=5.0)
    assert short.budget_usd == 0.2


def test_a_machine_without_a_price_says_under_which_name_it_is_looked_for(session: Session) -> None:
    with pytest.raises(BadInput, match=f"to the catalog by its name, {host_name()}, with its price"):
        specs(session, "true", budget=5.0)
