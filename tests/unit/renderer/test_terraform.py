"""What the Terraform target keeps to, whatever the plan."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from email import message_from_string
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from booting import Booted, booted
from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.launch.health import start_seconds
from chipwise.renderer.targets.terraform import render
from fixed_deployments import CASES
from hcl_reading import Found, dangling, modules, strings, text_of, values

FITTING = ("train", "serve", "neuron", "tpu", "azure", "batch", "hpc", "notebooks")
MACHINES = ("train", "serve", "neuron", "azure", "batch", "hpc")
BASH = shutil.which("bash") or "/bin/bash"
HOSTILE = [
    '"',
    "'",
    "a\nb",
    '${file("/etc/passwd")}',
    "%{ for x in y }",
    "$(touch owned)",
    "`id`",
    "\\",
    "é😀",
    "x" * 10_000,
    "EOT",
]


@cache
def every(case: str) -> Mapping[str, list[Found]]:
    return modules(render(CASES[case]))


def module(case: str, folder: str = "") -> list[Found]:
    return every(case)[folder]


def file(case: str, path: str) -> str:
    return next(one.text for one in render(CASES[case]) if one.path == path)


@pytest.mark.parametrize("case", FITTING)
def test_every_reference_has_what_it_refers_to(case: str) -> None:
    for folder, found in every(case).items():
        assert dangling(found) == set(), folder


def test_a_reference_to_nothing_is_seen() -> None:
    assert dangling([Found("output", ("x",), {"value": "${aws_vpc.missing.id}"})]) == {"aws_vpc.missing"}


@pytest.mark.parametrize("case", MACHINES)
def test_plain_machines_and_a_node_pool_each_have_four_files(case: str) -> None:
    paths = {one.path for one in render(CASES[case])}
    pool = {"aws": "eks", "gcp": "gke", "azure": "aks"}[CASES[case].node.provider]
    wanted = {f"{place}{name}.tf" for place in ("", f"{pool}/") for name in ("versions", "variables", "main", "outputs")}
    assert wanted <= paths
    assert "start.sh" in paths


@pytest.mark.parametrize("case", ["notebooks", "tpu"])
def test_what_no_plain_machine_runs_gets_a_node_pool_alone(case: str) -> None:
    assert all(one.path.startswith(("eks/", "gke/")) for one in render(CASES[case]))


def test_nobody_is_let_in_from_an_address_range() -> None:
    for case in ("train", "serve", "neuron", "hpc"):
        rules = values(module(case), "resource", "aws_vpc_security_group_ingress_rule")
        assert all("cidr_ipv4" not in rule and "cidr_ipv6" not in rule for rule in rules), case
        assert not values(module(case), "resource", "aws_security_group")[0].keys() & {"ingress", "egress"}


def test_machines_that_work_together_reach_each_other_and_stand_close() -> None:
    assert values(module("train"), "resource", "aws_vpc_security_group_ingress_rule", "each_other")
    assert text_of(values(module("train"), "resource", "aws_placement_group")[0]["strategy"]) == "cluster"
    assert not values(module("serve"), "resource", "aws_placement_group")


def test_each_network_card_has_its_efa_interface() -> None:
    (template,) = values(module("train"), "resource", "aws_launch_template")
    (cards,) = (one['"network_interfaces"'] for one in template["dynamic"])
    assert cards["for_each"] == "${range(32)}"
    assert "efa-only" in cards["content"][0]["interface_type"]


@pytest.mark.parametrize(
    ("case", "folder"), [("train", ""), ("serve", ""), ("hpc", ""), ("train", "eks"), ("notebooks", "eks")]
)
def test_disks_are_encrypted_and_the_old_metadata_service_is_off(case: str, folder: str) -> None:
    (template,) = values(module(case, folder), "resource", "aws_launch_template")
    (disk,) = template["block_device_mappings"]
    assert disk["ebs"][0]["encrypted"] is True
    assert text_of(disk["ebs"][0]["volume_type"]) == "gp3"
    assert text_of(template["metadata_options"][0]["http_tokens"]) == "required"


def test_the_bucket_is_private_encrypted_and_versioned() -> None:
    found = module("train")
    (block,) = values(found, "resource", "aws_s3_bucket_public_access_block")
    assert all(block[key] is True for key in block if key.startswith(("block_", "ignore_", "restrict_")))
    assert values(found, "resource", "aws_s3_bucket_server_side_encryption_configuration")
    assert values(found, "resource", "aws_s3_bucket_versioning")


def test_a_place_that_the_workload_names_needs_no_bucket() -> None:
    what = CASES["train"]
    volumes = tuple(replace(one, url="s3://mine/runs") if one.name == "checkpoints" else one for one in what.volumes)
    found = modules(render(replace(what, volumes=volumes)))[""]
    assert not values(found, "resource", "aws_s3_bucket")
    assert _rights(found)["s3:PutObject"] == ['"arn:${data.aws_partition.current.partition}:s3:::mine/runs/*"']


def _rights(found: list[Found]) -> dict[str, list[str]]:
    (policy,) = values(found, "data", "aws_iam_policy_document", "machines")
    made: dict[str, list[str]] = {}
    for statement in policy["statement"]:
        for action in statement["actions"]:
            made.setdefault(text_of(action), []).extend(statement["resources"])
    return made


def test_machines_may_do_what_their_script_does_and_no_more() -> None:
    rights = _rights(module("train"))
    assert not any("*" in action for action in rights)
    everything = {action for action, places in rights.items() if '"*"' in places}
    assert everything == {"ecr:GetAuthorizationToken", "ec2:DescribeInstances"}, "calls that know no narrower resource"
    assert all("legal-text/tokens/*" in one for one in rights["s3:GetObject"] if "work" not in one)
    assert "ec2:DescribeInstances" not in _rights(module("serve"))


def test_spot_has_a_way_out_and_several_machine_types() -> None:
    what = replace(CASES["train"], machines=1)
    (group,) = values(modules(render(what))[""], "resource", "aws_autoscaling_group")
    (mix,) = group["mixed_instances_policy"]
    assert mix["instances_distribution"][0]["on_demand_percentage_above_base_capacity"] == "${var.on_demand_percentage}"
    (types,) = values(modules(render(what))[""], "variable", "instance_types")
    assert [text_of(one) for one in types["default"]] == ["p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"]


def test_each_machine_of_a_spot_job_has_a_number_that_its_successor_keeps() -> None:
    (group,) = values(module("train"), "resource", "aws_autoscaling_group")
    assert group["count"] == 2
    assert (group["min_size"], group["max_size"]) == (0, 1)
    (tags,) = (one['"tag"'] for one in group["dynamic"])
    assert "chipwise-first-rank" in tags["for_each"]


def test_a_service_scales_within_the_plan_and_sleeps_when_its_users_do() -> None:
    found = module("serve")
    (group,) = values(found, "resource", "aws_autoscaling_group")
    assert (group["min_size"], group["desired_capacity"], group["max_size"]) == (2, 2, 13)
    starts, stops = values(found, "resource", "aws_autoscaling_schedule")
    assert (text_of(starts["recurrence"]), starts["desired_capacity"]) == ("0 7 * * 1,2,3,4,5,6", 2)
    assert (text_of(stops["recurrence"]), stops["desired_capacity"]) == ("0 22 * * 1,2,3,4,5,6", 0)


def test_copies_of_a_machine_have_a_target_group_each() -> None:
    """Of one group, only the first of four copies would ever be asked."""
    serve = CASES["serve"]
    four = replace(serve, node=replace(serve.node, machine="g6e.12xlarge", chips=4), chips_each=1)
    text = "".join(one.text for one in render(four) if one.path.startswith("machines/") or "/" not in one.path)
    assert "one for each port from 8000 to 8003" in text
    assert "contains([0, 4], length(var.target_group_arns))" in text
    alone = "".join(one.text for one in render(serve))
    assert "one for each port" not in alone
    assert serve.scaling is not None
    assert serve.scaling.busy_per_minute is not None
    rate = f"target_value = {serve.scaling.busy_per_minute:.3g}"
    assert rate in " ".join(text.split()), "requests of one copy: each target group counts its own"


def test_who_pays_is_written_on_everything() -> None:
    wanted = {"owner": "mara.lindqvist", "team": "language", "project": "legal-assistant", "cost_center": "4711"}
    (locals_,) = values(module("train"), "locals")
    tags = {key: text_of(one) for key, one in locals_["tags"].items() if not key.startswith("__")}
    assert wanted.items() <= tags.items()
    (template,) = values(module("train"), "resource", "aws_launch_template")
    assert {text_of(one["resource_type"]) for one in template["tag_specifications"]} == {
        "instance",
        "volume",
        "network-interface",
    }


def test_a_known_image_is_looked_up_and_an_unknown_one_asked_for() -> None:
    known = replace(CASES["train"], platforms={"AMI": {"ec2": "/aws/service/some/image"}})
    (parameter,) = values(modules(render(known))[""], "data", "aws_ssm_parameter")
    assert text_of(parameter["name"]) == "/aws/service/some/image"
    (asked,) = values(modules(render(replace(known, platforms={})))[""], "variable", "ami_id")
    assert "default" not in asked


def test_node_groups_keep_others_away_from_accelerators() -> None:
    (group,) = values(module("train", "eks"), "resource", "aws_eks_node_group")
    assert text_of(group["taint"][0]["key"]) == "nvidia.com/gpu"
    assert text_of(group["capacity_type"]) == "SPOT"
    assert text_of(group["ami_type"]) == "AL2023_x86_64_NVIDIA"
    (plain,) = values(module("hpc", "eks"), "resource", "aws_eks_node_group")
    assert "taint" not in plain


def test_gke_installs_the_driver_and_slices_have_their_topology() -> None:
    what = replace(CASES["batch"], platforms={"Machine": {"accelerator": "nvidia-l4"}})
    (pool,) = values(modules(render(what))["gke"], "resource", "google_container_node_pool")
    (card,) = pool["node_config"][0]["guest_accelerator"]
    assert text_of(card["gpu_driver_installation_config"][0]["gpu_driver_version"]) == "LATEST"
    (slices,) = values(module("tpu", "gke"), "resource", "google_container_node_pool")
    assert text_of(slices["placement_policy"][0]["tpu_topology"]) == "4x8"


@pytest.mark.parametrize(("case", "asks"), [("serve", "--secret-id hub-token"), ("azure", "/secrets/")])
def test_secrets_are_named_and_never_written(case: str, asks: str, tmp_path: Path) -> None:
    what = CASES[case]
    secrets = (("HF_TOKEN", "hub-token", "token"),)
    made = run(replace(what, software=replace(what.software, secrets=secrets)), tmp_path)
    assert any(asks in one for one in made.calls)
    assert made.options()[made.options().index("HF_TOKEN") - 1] == "--env"
    written = [one for one in tmp_path.rglob("*") if one.is_file() and one.parent.name != "programs"]
    assert not any(b"hidden" in one.read_bytes() for one in written)


@pytest.mark.parametrize("case", FITTING)
def test_scripts_are_shell(case: str) -> None:
    for one in render(CASES[case]):
        if one.path.endswith(".sh"):
            assert subprocess.run([BASH, "-n"], input=one.text, text=True, capture_output=True, check=False).stderr == ""


@pytest.mark.parametrize("case", ["pipeline", "device"])
def test_what_terraform_cannot_make_is_refused_with_what_can(case: str) -> None:
    with pytest.raises(CannotRender) as error:
        render(CASES[case])
    assert "--to" in str(error.value.remedy)


def test_another_provider_is_refused_with_what_can() -> None:
    what = replace(CASES["serve"], node=replace(CASES["serve"].node, provider="lambda"))
    with pytest.raises(CannotRender, match="lambda") as error:
        render(what)
    assert "skypilot" in str(error.value.remedy)


@pytest.mark.parametrize(
    ("case", "text"),
    [(("train", "azure", "batch")[at % 3], text) for at, text in enumerate(HOSTILE)],
    ids=lambda value: repr(value[:12]),
)
def test_hostile_text_stays_text(case: str, text: str, tmp_path: Path) -> None:
    what = CASES[case]
    hostile = _hostile(what, text)
    ours, theirs = every(case), modules(render(hostile))
    assert {folder: [(one.kind, one.labels) for one in found] for folder, found in theirs.items()} == {
        folder: [(one.kind, one.labels) for one in found] for folder, found in ours.items()
    }, "no block more, no block less"
    for folder, found in theirs.items():
        assert dangling(found) == set()
        expressions = [one for block in found for one in strings(block.body) if one.startswith("${")]
        assert not any("passwd" in one or "for x in y" in one for one in expressions), folder
    made = run(hostile, tmp_path)
    assert made.command()[1:] == [text], "the command carries the text as one word"
    assert f"SETTING={text}" in made.options()


def _hostile(what: Deployment, text: str) -> Deployment:
    software = replace(what.software, command=("prog", text), env=(("SETTING", text),), is_custom=True, framework="none")
    volumes = tuple(replace(one, url=one.url and f"{one.url}{text}", reason=text) for one in what.volumes)
    return replace(
        what, title=text, description=text, labels={"owner": text}, software=software, volumes=volumes, notes=(text,)
    )


def run(what: Deployment, folder: Path, stand_ins: dict[str, str] | None = None) -> Booted:
    """What a machine does with the start script of a module, with what Terraform writes before it."""
    script = next(one.text for one in render(what) if one.path == "start.sh")
    settings = {"KEEP": "s3://kept", "LOG_GROUP": "logs", "IDENTITY": "me", "VAULT": "v", "ZONE": "z"}
    return booted(script, folder, stand_ins, **settings)


ENDS = ("shutdown -h now", "aws autoscaling terminate-instance", "gcloud compute instance-groups managed delete-instances")


def ends(made: Booted) -> int:
    """How often it tried to end the machine."""
    return sum(one.startswith(ENDS) or "/deallocate?" in one for one in made.calls)


@pytest.mark.parametrize(("case", "many"), [("train", 1), ("batch", 1), ("hpc", 1), ("serve", 0), ("small", 0)])
def test_a_script_ends_its_machine_only_when_it_is_a_job(case: str, many: int, tmp_path: Path) -> None:
    made = run(CASES[case], tmp_path)
    assert (made.status, ends(made)) == (0, many)


@pytest.mark.parametrize(
    ("case", "fails"),
    [("train", "aws"), ("train", "curl"), ("neuron", "docker"), ("batch", "gcloud"), ("batch", "curl"), ("hpc", "systemctl")],
)
def test_a_machine_ends_itself_whatever_fails_first(case: str, fails: str, tmp_path: Path) -> None:
    made = run(replace(CASES[case], purchase="on-demand"), tmp_path, {fails: "exit 1"})
    assert made.status != 0
    assert ends(made) == 1


def test_nothing_is_sent_back_before_everything_is_there(tmp_path: Path) -> None:
    fails = 'case "$*" in *"sync --only-show-errors s3://kept/checkpoints"*) exit 1 ;; esac'
    made = run(CASES["train"], tmp_path, {"aws": fails})
    assert made.status == 1
    assert [one for one in made.calls if one.endswith("s3://kept/checkpoints")] == [], "half a checkpoint over a whole one"
    assert any(one.endswith("s3://kept/logs/machine-0") for one in made.calls)


@pytest.mark.parametrize(
    ("case", "tool", "nothing"),
    [
        ("batch", "gcloud", "ERROR: (gcloud.storage.rsync) Did not find existing container at: gs://b/checkpoints"),
        ("azure", "azcopy", "sync must happen between source and destination of the same type, e.g. directory"),
    ],
)
def test_a_first_start_finds_nothing_and_goes_on_but_a_refusal_ends_it(
    case: str, tool: str, nothing: str, tmp_path: Path
) -> None:
    what = CASES[case]
    what = replace(what, form=Form.JOB, volumes=(Volume("checkpoints", "/checkpoints", 1e9),))
    for name, says, status in (("empty", nothing, 1), ("there", "fine", 0), ("refused", "403 forbidden", 1)):
        fetch = f"case $* in *kept/checkpoints\\ *) echo '{says}' >&2; exit {status} ;; esac"
        made = run(what, tmp_path / name, {tool: fetch})
        assert (made.status, len(made.containers) > 0) == ((1, False) if name == "refused" else (0, True)), name


@pytest.mark.parametrize(
    ("case", "tool", "url"),
    [
        ("train", "aws", "s3://legal-text/tokens/"),
        ("batch", "gcloud", "gs://archive/documents/"),
        ("azure", "azcopy", "https://store.blob.core.windows.net/texts"),
    ],
)
def test_data_that_the_workload_names_must_be_there(case: str, tool: str, url: str, tmp_path: Path) -> None:
    """Stores copy an empty place without a word."""
    software = replace(CASES[case].software, secrets=())
    data = Volume("data", "/data", 1e9, False, url)
    what = replace(CASES[case], form=Form.JOB, purchase="on-demand", software=software, volumes=(data,))
    copies_nothing = {tool: "case $* in *describe-instances*) echo 10.0.0.1 ;; esac"}
    made = run(what, tmp_path / "empty", copies_nothing)
    assert (made.status, made.containers, ends(made)) == (1, [], 1)
    assert f"nothing lies at {url}" in (made.folder / "console").read_text()
    made = run(what, tmp_path / "there")
    assert (made.status, len(made.containers) > 0) == (0, True)
    kept = replace(what, volumes=(replace(data, url=None),))
    assert run(kept, tmp_path / "kept", copies_nothing).status == 0, "at the first start nothing is kept"


def test_a_deadline_ends_the_machine_as_its_own_end_does(tmp_path: Path) -> None:
    hangs = {
        "docker": 'case $1 in run) until [ -e "$OUT/stopped" ]; do /bin/sleep 0.1; done ;; stop) touch "$OUT/stopped" ;; '
        "ps) echo c ;; esac",
        "sleep": 'case $1 in 2) ;; infinity) exec /bin/sleep 1 ;; *) exec /bin/sleep "$@" ;; esac',
    }
    made = run(replace(CASES["train"], deadline_s=2.0), tmp_path, hangs)
    assert "docker stop -t 60 c" in made.calls
    assert ends(made) >= 1
    assert (tmp_path / "logs" / "status").exists()
    (last,) = [one for one in made.calls if one.startswith("shutdown -h +")]
    assert int(last.rpartition("+")[2]) * 60 > 2, "the last resort comes after it"
    others = {"none": replace(CASES["train"], deadline_s=None), "service": replace(CASES["serve"], deadline_s=7200.0)}
    for name, what in others.items():
        assert not any(one.startswith("shutdown -h +") for one in run(what, tmp_path / name).calls)


def test_apply_leaves_alone_what_the_clock_sets() -> None:
    for case, wanted in (("serve", {"desired_capacity", "min_size", "max_size"}), ("train", {"desired_capacity"})):
        (group,) = values(module(case), "resource", "aws_autoscaling_group")
        assert {str(one).strip("${}") for one in group["lifecycle"][0]["ignore_changes"]} == wanted


def test_a_newer_image_replaces_no_machine_by_itself() -> None:
    what = replace(CASES["serve"], platforms={"AMI": {"ec2": "/aws/service/some/image"}})
    found = modules(render(what))[""]
    assert dangling(found) == set()
    (kept,) = values(found, "resource", "terraform_data", "ami")
    assert [str(one).strip("${}") for one in kept["lifecycle"][0]["ignore_changes"]] == ["input"]
    (image,) = values(found, "data", "aws_ami")
    (wanted,) = image["filter"][0]["values"]
    assert "terraform_data.ami[0].output" in wanted
    assert "var.ami_id" in wanted, "which pins it"


def test_a_machine_has_time_to_fetch_and_load_before_it_is_judged() -> None:
    what = CASES["serve"]
    (group,) = values(module("serve"), "resource", "aws_autoscaling_group")
    assert group["health_check_grace_period"] == 300 + start_seconds(what)


def test_nodes_with_efa_let_programs_lock_memory() -> None:
    (template,) = values(module("train", "eks"), "resource", "aws_launch_template")
    assert "nodes.txt" in template["user_data"]
    [part] = [one for one in message_from_string(file("train", "eks/nodes.txt")).walk() if not one.is_multipart()]
    assert part.get_content_type() == "application/node.eks.aws"
    config = yaml.safe_load(str(part.get_payload()))
    limits = {one["type"]: one["hard"] for one in config["spec"]["containerd"]["baseRuntimeSpec"]["process"]["rlimits"]}
    assert limits == {"RLIMIT_NOFILE": 1048576, "RLIMIT_MEMLOCK": 2**50}
    (plain,) = values(module("serve", "eks"), "resource", "aws_launch_template")
    assert "user_data" not in plain
    assert "eks/nodes.txt" not in _paths(render(CASES["serve"]))


def _paths(files: list[File]) -> Mapping[str, Any]:
    return {one.path: one.text for one in files}


def test_the_same_plan_gives_the_same_files() -> None:
    assert _paths(render(CASES["train"])) == _paths(render(CASES["train"]))


def test_copies_that_share_a_machine_on_google_cloud_have_a_named_port_each() -> None:
    serve = CASES["serve"]
    shared = replace(serve, node=replace(serve.node, provider="gcp", region="europe-west4", machine="g2-standard-24", chips=2))
    assert _named_ports(shared) == ["8000", "8001"]
    assert _named_ports(replace(shared, chips_each=2)) == ["8000"]


def _named_ports(what: Deployment) -> list[str]:
    text = next(file.text for file in render(what) if file.path == "main.tf")
    return re.findall(r'named_port \{\s*name\s*= "[^"]+"\s*port\s*= (\d+)', text)
