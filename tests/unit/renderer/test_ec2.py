"""EC2: what the scripts hold, and what they refuse."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from booting import booted
from chipwise.planner.values.split import UNSPLIT, Runs
from chipwise.renderer.aws.start import start_script
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender
from chipwise.renderer.targets import ec2
from deployments import on_few_offers as deployment
from effort import LONG
from hostile import TEXTS, hostile
from render_checks import program
from scripts import accepted, constants, loaded

ON_AWS = "clouds=[aws]"
MADE = {"programs", "start.sh", "state", "console", "words", "calls", "logs"}  # by a machine that keeps nothing
FITTING = ("train", "finetune", "batch", "hpc", "render", "serve", "hybrid", "stream")


def rendered(name: str, *limits: str) -> dict[str, str]:
    return {file.path: file.text for file in ec2.render(deployment(name, ON_AWS, *limits))}


@pytest.mark.parametrize("name", FITTING)
def test_every_example_renders_into_scripts_that_compile_and_are_formatted(name: str, tmp_path: Path) -> None:
    accepted(ec2.render(deployment(name, ON_AWS)), tmp_path)


@pytest.mark.chance
def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    """In one call, of scripts that differ: of a job and of a service, and of all examples in the long run."""
    names = FITTING if LONG else ("train", "serve")
    scripts = {text for name in names for path, text in rendered(name).items() if path.endswith(".sh")}
    assert len(scripts) >= len(names)
    for at, text in enumerate(sorted(scripts)):
        (tmp_path / f"{at}.sh").write_text(text)
    words = [program("shellcheck"), *map(str, sorted(tmp_path.iterdir()))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_rendering_twice_gives_the_same() -> None:
    assert ec2.render(deployment("train", ON_AWS)) == ec2.render(deployment("train", ON_AWS))


def test_other_spot_machines_are_tried_before_the_full_price() -> None:
    planned = deployment("train", ON_AWS)
    attempts = constants(rendered("train")["launch.json"])["ATTEMPTS"]
    assert isinstance(attempts, list)
    names = [one.machine for one in (planned.node, *planned.alternatives)]
    assert [(machine, purchase) for machine, purchase, _, _ in attempts] == [
        *((name, "spot") for name in names),
        *((name, "on-demand") for name in names),
    ]


def test_a_plan_at_the_full_price_never_asks_for_spot() -> None:
    attempts = constants(rendered("serve")["launch.json"])["ATTEMPTS"]
    assert isinstance(attempts, list)
    assert {purchase for _, purchase, _, _ in attempts} == {"on-demand"}


def test_only_programs_that_talk_to_each_other_get_efa() -> None:
    together, apart = constants(rendered("train")["launch.json"]), constants(rendered("batch")["launch.json"])
    assert (together["TOGETHER"], apart["TOGETHER"]) == (True, False)
    assert isinstance(together["ATTEMPTS"], list)
    assert isinstance(apart["ATTEMPTS"], list)
    assert together["ATTEMPTS"][0][2] == deployment("train", ON_AWS).node.interfaces
    assert {interfaces for _, _, interfaces, _ in apart["ATTEMPTS"]} == {0}


def test_the_image_follows_the_chip() -> None:
    gpu, fpga = (constants(rendered(name)["launch.json"])["IMAGE_PARAMETER"] for name in ("serve", "stream"))
    arm = constants(rendered("hybrid", "chips=[graviton4]")["launch.json"])["IMAGE_PARAMETER"]
    assert "nvidia-driver" in str(gpu)
    assert str(arm).endswith("arm64")
    assert fpga is None  # its tools come with an image of the Marketplace, which has no public parameter


def test_a_chip_before_the_open_driver_has_no_public_image() -> None:
    from chipwise.renderer.platforms import platforms
    from deployments import session

    planned = deployment("serve", ON_AWS)
    volta = replace(planned.node, chip="V100-16", capability=7.0)
    assert platforms(session().catalog.rows("runtimes"), volta)["AMI"] == {}


def test_no_fallback_needs_another_driver_than_the_image_has() -> None:
    planned = deployment("hpc", ON_AWS)
    volta = replace(planned.node, machine="p3dn.24xlarge", chip="V100-32", capability=7.0)
    said = constants({file.path: file.text for file in ec2.render(replace(planned, alternatives=(volta,)))}["launch.json"])
    assert {machine for machine, *_ in said["ATTEMPTS"]} == {planned.node.machine}


def test_what_is_not_on_aws_is_refused_with_what_can() -> None:
    with pytest.raises(CannotRender, match="runs on AWS only") as refused:
        ec2.render(deployment("serve", "clouds=[gcp]"))
    assert "--cloud aws" in str(refused.value.remedy)
    for name, what in (("interactive", "jupyterhub"), ("pipeline", "--stage")):
        with pytest.raises(CannotRender) as refused:
            ec2.render(deployment(name, ON_AWS))
        assert what in str(refused.value.remedy)


def test_a_command_that_user_data_cannot_hold_is_refused_with_its_size() -> None:
    planned = deployment("finetune", ON_AWS)
    long = replace(
        planned, software=replace(planned.software, command=("python", Random(1).randbytes(20_000).hex()), is_custom=True)
    )
    with pytest.raises(CannotRender, match="User data of EC2 takes 15,000 bytes, packed"):
        ec2.render(long)


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_stays_text(text: str) -> None:
    files = {file.path: file.text for file in ec2.render(hostile(deployment("finetune", ON_AWS), text))}
    tree = constants(files["launch.json"])
    assert isinstance(tree["TAGS"], dict)
    assert {"Name", "chipwise-deployment"} <= set(tree["TAGS"])
    for shell in ("launch.sh", "start.sh"):
        subprocess.run(["bash", "-n"], input=files[shell], text=True, check=True)


@pytest.mark.parametrize("text", TEXTS)
def test_a_machine_hands_every_word_to_the_container_as_it_was_written(text: str, tmp_path: Path) -> None:
    evil = hostile(replace(deployment("hpc", ON_AWS), machines=1, split=UNSPLIT), text)
    made = booted(start_script(evil), tmp_path)
    assert {one.name for one in tmp_path.iterdir()} == MADE
    assert tuple(made.command())[-2:] == evil.software.command[-2:]
    assert f"SETTING={text}" in made.options()


def test_each_part_is_told_which_it_is(tmp_path: Path) -> None:
    planned = replace(deployment("batch", ON_AWS), volumes=())
    script = start_script(planned)
    made = booted(script, tmp_path / "batch", {"curl": 'case "$*" in *first-rank*) echo 3 ;; *) echo 0 ;; esac'})
    told = [dict(word.split("=", 1) for word in made.options(at) if "=" in word) for at in range(8)]
    assert sorted(one["PART"] for one in told) == [str(number) for number in range(24, 32)]
    assert {(one["PARTS"], one["SHARD"]) for one in told} == {
        (str(planned.replicas * planned.per_machine), f"000{number}") for number in range(24, 32)
    }
    assert made.command()[3:6] == ["batch", "/data/requests", "/data/answers"]
    assert sorted(made.options(at)[made.options(at).index("--gpus") + 1] for at in range(8)) == [
        f'"device={n}"' for n in range(8)
    ]
    frames = booted(
        start_script(replace(deployment("render", ON_AWS, "chip_count={min: 16}"), volumes=())), tmp_path / "render"
    ).command()
    assert frames[:2] == ["sh", "-c"]
    assert '--frame-start "$((PART + 1))"' in frames[2]
    assert '--frame-jump "$PARTS"' in frames[2]


def test_runs_of_a_simulation_are_dealt_out_and_none_is_repeated(tmp_path: Path) -> None:
    planned = replace(deployment("hpc", ON_AWS), runs=13)
    assert planned.split == Runs(at_once=6, chips_each=8)
    told: list[str] = []
    for rank in range(planned.machines):
        ranks = {"curl": f'case "$*" in *first-rank*) echo {rank} ;; *) echo 0 ;; esac'}
        made = booted(start_script(planned), tmp_path / str(rank), ranks)
        told += [word for at in range(len(made.containers)) for word in made.options(at) if word.startswith("RUN=")]
        assert made.command()[1:5] == ["-n", "8", "python", "main.py"]  # a rank for each of its chips
    assert sorted(told) == sorted(f"RUN={run}" for run in range(13))


def test_a_copy_that_fails_does_not_end_the_machine_while_others_work(tmp_path: Path) -> None:
    planned = replace(deployment("batch", ON_AWS), purchase="on-demand", volumes=())
    docker = 'if [ "$1" = run ]; then case "$*" in *PART=3*) exit 7 ;; esac; sleep 1; echo >> "$OUT/done"; fi'
    made = booted(start_script(planned), tmp_path, {"docker": docker})
    assert (made.status, (tmp_path / "done").read_text().count("\n")) == (7, 7)
    assert "shutdown -h now" in made.calls


def over_machines(planned: Deployment) -> Deployment:
    """One MPI run over all of its machines."""
    return replace(planned, split=Runs(at_once=1, chips_each=planned.machines * planned.node.chips), runs=1)


def test_one_mpi_run_over_several_machines_is_for_schedulers() -> None:
    with pytest.raises(CannotRender, match="one MPI program over 6 machines") as refused:
        ec2.render(over_machines(deployment("hpc", ON_AWS)))
    assert refused.value.remedy == "Use --to slurm or parallelcluster."


def test_neuron_starts_a_process_for_each_core() -> None:
    train = deployment("train", ON_AWS)
    node = replace(train.node, machine="trn1.32xlarge", chip="Trainium", kind="neuron", vendor="AWS", chips=16, cores=2)
    assert " --nproc-per-node=32 " in start_script(replace(train, node=node, chips_each=16))
    half = replace(node, machine="trn2.48xlarge", chip="Trainium2", cores=8)
    assert " --nproc-per-node=64 " in start_script(replace(train, node=half, chips_each=16))


def test_the_full_price_is_paid_only_by_who_asks_for_it() -> None:
    files = rendered("train")
    inside = loaded(files, "launch.py")
    cheap, dear = (inside["attempts"](SimpleNamespace(or_on_demand=said)) for said in (False, True))
    assert {purchase for _, purchase, _, _ in cheap} == {"spot"}
    assert dear == inside["ATTEMPTS"]


def test_where_a_machine_was_just_taken_is_tried_last_and_the_full_price_after_some_losses() -> None:
    inside = loaded(rendered("train"), "launch.py")
    names = list(dict.fromkeys(name for name, *_ in inside["ATTEMPTS"]))
    allowed = SimpleNamespace(or_on_demand=True)

    def lost(many: int) -> list[tuple[str, str, str]]:
        one = inside["LaunchedMachine"]("i-1", 0, names[0], "spot", "a", None, "lost")
        return [(attempt[0], attempt[1], subnet) for attempt, subnet in inside["order"](allowed, ["a", "b"], [one] * many)]

    assert lost(0)[:2] == [(names[0], "spot", "a"), (names[0], "spot", "b")]
    assert lost(1)[0] == (names[0], "spot", "b")
    assert lost(1)[2 * len(names) - 1] == (names[0], "spot", "a")  # before anything at the full price
    assert [purchase for _, purchase, _ in lost(inside["LOSSES"])][:1] == ["on-demand"]
    assert sorted(lost(0)) == sorted(lost(1)) == sorted(lost(9))


@pytest.mark.parametrize(
    ("example", "reason", "tag", "fate"),
    [
        ("train", "Client.InstanceInitiatedShutdown", "", "finished"),
        ("train", "Server.SpotInstanceTermination", "", "lost"),
        ("train", "Client.UserInitiatedShutdown", "", "lost"),
        ("train", "Client.UserInitiatedShutdown", "chipwise-ended", "ended"),
        ("serve", "Client.InstanceInitiatedShutdown", "", "lost"),  # a service has no end of its own
    ],
)
def test_who_ended_a_machine_tells_a_finished_one_from_a_lost_one(example: str, reason: str, tag: str, fate: str) -> None:
    tags = [{"Key": key, "Value": "2"} for key in ("chipwise-first-rank", tag) if key]
    told = {
        "InstanceId": "i-1",
        "InstanceType": "x",
        "LaunchTime": None,
        "AmiLaunchIndex": 1,
        "Tags": tags,
        "State": {"Name": "terminated"},
        "StateReason": {"Code": reason},
    }
    one = loaded(rendered(example), "launch.py")["machine"](told)
    assert (one.rank, one.fate) == (3, fate)


def test_only_spot_is_followed_without_being_asked() -> None:
    assert [constants(rendered(name)["launch.json"])["FOLLOWS"] for name in ("train", "serve")] == [True, False]


@pytest.mark.parametrize("taken", [False, True])
def test_a_machine_that_is_taken_waits_for_it_and_does_not_shut_itself_down(tmp_path: Path, taken: bool) -> None:
    """A shutdown of its own would look like the end of the job."""
    planned = replace(deployment("finetune", ON_AWS), purchase="spot", volumes=(), deadline_s=None)
    docker = 'if [ "$1" = run ]; then touch "$CHIPWISE_STATE/chipwise-taken"; fi' if taken else ":"
    made = booted(start_script(planned), tmp_path, {"docker": docker}, KEEP="s3://kept")
    ended = [one for one in made.calls if one in ("sleep 300", "shutdown -h now") or ("logs" in one and "sync" in one)]
    send = f"aws s3 sync --only-show-errors {tmp_path}/logs s3://kept/logs/machine-0"
    assert ended == ([send, "sleep 300"] if taken else []) + [send, "shutdown -h now"]
    assert (tmp_path / "logs" / "status").read_text() == "0 0\n"  # machine, status


@pytest.mark.parametrize(("name", "said"), [("train", "give a private subnet="), ("serve", "dry run: fine")])
def test_the_shell_launcher_wants_a_private_subnet_for_efa_as_the_other_does(name: str, said: str, tmp_path: Path) -> None:
    for path, text in rendered(name).items():
        (tmp_path / path).write_text(text)
    (tmp_path / "aws").write_text("#!/bin/sh\ncase $* in *--dry-run*) echo DryRunOperation; exit 1 ;; *) echo x ;; esac\n")
    (tmp_path / "aws").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = ["bash", str(tmp_path / "launch.sh"), "check", "image=a", "profile=p", "loses_work=yes"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=20)
    assert said in done.stdout + done.stderr


@pytest.mark.parametrize(("allowed", "said"), [("", "or_on_demand=yes takes them at the full price"), ("yes", "started")])
def test_the_shell_launcher_pays_the_full_price_only_if_it_is_told(allowed: str, said: str, tmp_path: Path) -> None:
    for path, text in rendered("train").items():
        (tmp_path / path).write_text(text)
    refuses = "*run-instances*MarketType=spot*) echo InsufficientInstanceCapacity >&2; exit 1 ;;"
    (tmp_path / "aws").write_text(
        f"#!/bin/sh\ncase $* in {refuses} *describe-instances*) [ ! -e {tmp_path}/up ] || echo i-1 ;; "
        f"*run-instances*) touch {tmp_path}/up ;; *) echo x ;; esac\n"
    )
    (tmp_path / "aws").chmod(0o755)
    words = ["bash", str(tmp_path / "launch.sh"), "up", "image=a", "subnet=s", "keep=s3://b/c", "profile=p"]
    words += ["or_on_demand=yes"] if allowed else []
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=20)
    assert said in done.stdout + done.stderr
    assert (done.returncode, (tmp_path / "up").exists()) == ((0, True) if allowed else (1, False))


def command(folder: Path, files: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """launch.sh, with an AWS CLI that says of every dry run that it is fine."""
    folder.mkdir()
    for path, text in files.items():
        (folder / path).write_text(text)
    (folder / "aws").write_text("#!/bin/sh\ncase $* in *--dry-run*) echo DryRunOperation; exit 1 ;; *) echo x ;; esac\n")
    (folder / "aws").chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    told = ["bash", str(folder / "launch.sh"), "check", "image=a", "ami=b", "subnet=c", *words]
    return subprocess.run(told, env=env, capture_output=True, text=True, check=False, timeout=20)


@pytest.mark.parametrize("name", ["hpc", "finetune", "batch", "render"])
def test_neither_launcher_starts_a_job_whose_work_would_be_lost(name: str, tmp_path: Path) -> None:
    files = rendered(name)
    inside = loaded(files, "launch.py")
    options: dict[str, Any] = {"image": "a", "keep": None, "loses_work": False}
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"keep": "s3://b/c"}, True),
        ({"loses_work": True}, True),
        ({"keep": "s3://b", "profile": ""}, False),
    ]
    for at, (given, fine) in enumerate(cases):
        profile = given.get("profile", "p")
        said = options | {key: value for key, value in given.items() if key != "profile"} | {"instance_profile": profile}
        words = [f"{key}={'yes' if value is True else value}" for key, value in given.items() if value]
        done = command(tmp_path / str(at), files, *words, *([f"profile={profile}"] if profile else []))
        assert (done.returncode == 0) == fine, done.stderr
        if fine:
            inside["check"](SimpleNamespace(**said))
            continue
        with pytest.raises(inside["LaunchFailed"]) as refused:
            inside["check"](SimpleNamespace(**said))
        cause = "give --instance-profile" if not profile else "the program's log would be lost with the machine"
        assert cause in str(refused.value)
        assert ("profile=" if not profile else "loses_work=yes") in done.stderr


def test_a_job_that_names_no_folder_has_one_for_its_results(tmp_path: Path) -> None:
    files = rendered("hpc")
    assert constants(files["launch.json"])["KEEPS"] == "/results and the program's log"
    docker = 'if [ "$1" = run ]; then echo fluid > "$OUT/root/results/run-0"; fi'
    made = booted(files["start.sh"], tmp_path, {"docker": docker}, KEEP="s3://kept", MACHINES="1")
    assert f"aws s3 sync --only-show-errors {tmp_path}/root/results s3://kept/results" in made.calls
    assert "/results" not in str(constants(rendered("finetune")["launch.json"])["KEEPS"])  # it has its checkpoints


def test_secrets_are_read_on_the_machine_and_written_nowhere(tmp_path: Path) -> None:
    planned = deployment("finetune", ON_AWS)
    with_secret = replace(planned, software=replace(planned.software, secrets=(("HF_TOKEN", "hub-token", "token"),)))
    files = {file.path: file.text for file in ec2.render(with_secret)}
    made = booted(files["start.sh"], tmp_path)
    assert any("get-secret-value --secret-id hub-token" in one for one in made.calls)
    assert made.options()[made.options().index("HF_TOKEN") - 1] == "--env"
    written = [one for one in tmp_path.rglob("*") if one.is_file() and one.parent.name != "programs"]
    assert not any(b"hidden" in one.read_bytes() for one in written)
    assert constants(files["launch.json"])["NEEDS_ROLE"] is True


def test_a_job_of_some_hours_is_started_and_ended_by_a_crontab() -> None:
    for path, text in rendered("render").items():
        assert "suspend it and resume it" not in text
        if path == "launch.py":
            assert "# CRON_TZ=Europe/Rome\n# 0 19 * * 1,2,3,4,5 python launch.py --up\n" in text
            assert "# 0 7 * * 2,3,4,5,6 python launch.py --down\n" in text
    planned = deployment("render", ON_AWS)
    forgets = replace(planned, checkpoint_s=None, volumes=tuple(one for one in planned.volumes if one.name != "checkpoints"))
    text = {file.path: file.text for file in ec2.render(forgets)}["launch.py"]
    assert "CRON_TZ" not in text  # it would begin from nothing every evening
    assert "suspend it and resume it" in text
