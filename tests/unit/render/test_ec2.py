"""EC2: what the scripts hold, and what they refuse."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from chipwise.planner.values.split import UNSPLIT, Runs
from chipwise.render.aws.start import start_script
from chipwise.render.deployment import Deployment
from chipwise.render.file import CannotRender
from chipwise.render.targets import ec2
from deployments import deployment
from hostile import TEXTS, hostile
from render_checks import program
from scripts import accepted, constants, loaded

ON_AWS = "clouds=[aws]"
FITTING = ("train", "finetune", "batch", "hpc", "render", "serve", "transcode", "hybrid", "stream")


def rendered(name: str, *limits: str) -> dict[str, str]:
    return {file.path: file.text for file in ec2.render(deployment(name, ON_AWS, *limits))}


@pytest.mark.parametrize("name", FITTING)
def test_every_example_renders_into_scripts_that_compile_and_are_formatted(name: str, tmp_path: Path) -> None:
    accepted(ec2.render(deployment(name, ON_AWS)), tmp_path)


@pytest.mark.parametrize("name", FITTING)
def test_shellcheck_has_nothing_to_say(name: str, tmp_path: Path) -> None:
    shellcheck = program("shellcheck")
    for path, text in rendered(name).items():
        if path.endswith(".sh"):
            (tmp_path / path).write_text(text)
            done = subprocess.run([shellcheck, str(tmp_path / path)], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout


def test_rendering_twice_gives_the_same() -> None:
    assert ec2.render(deployment("train", ON_AWS)) == ec2.render(deployment("train", ON_AWS))


def test_other_spot_machines_are_tried_before_the_full_price() -> None:
    planned = deployment("train", ON_AWS)
    attempts = constants(rendered("train")["launch.py"])["ATTEMPTS"]
    assert isinstance(attempts, list)
    names = [one.machine for one in (planned.node, *planned.others)]
    assert [(machine, purchase) for machine, purchase, _, _ in attempts] == [
        *((name, "spot") for name in names),
        *((name, "on-demand") for name in names),
    ]


def test_a_plan_at_the_full_price_never_asks_for_spot() -> None:
    attempts = constants(rendered("serve")["launch.py"])["ATTEMPTS"]
    assert isinstance(attempts, list)
    assert {purchase for _, purchase, _, _ in attempts} == {"on-demand"}


def test_only_programs_that_talk_to_each_other_get_efa() -> None:
    together, apart = constants(rendered("train")["launch.py"]), constants(rendered("batch")["launch.py"])
    assert (together["TOGETHER"], apart["TOGETHER"]) == (True, False)
    assert isinstance(together["ATTEMPTS"], list)
    assert isinstance(apart["ATTEMPTS"], list)
    assert together["ATTEMPTS"][0][2] == deployment("train", ON_AWS).node.interfaces
    assert {interfaces for _, _, interfaces, _ in apart["ATTEMPTS"]} == {0}


def test_the_image_follows_the_chip() -> None:
    gpu, arm, fpga = (constants(rendered(name)["launch.py"])["IMAGE_PARAMETER"] for name in ("serve", "hybrid", "stream"))
    assert "nvidia-driver" in str(gpu)
    assert str(arm).endswith("arm64")
    assert fpga is None  # its tools come with an image of the Marketplace, which has no public parameter


def test_a_chip_before_the_open_driver_has_no_public_image() -> None:
    from chipwise.render.platforms import platforms
    from deployments import session

    planned = deployment("serve", ON_AWS)
    volta = replace(planned.node, chip="V100-16", capability=7.0)
    assert platforms(session().catalog.rows("runtimes"), volta)["AMI"] == {}


def test_no_fallback_needs_another_driver_than_the_image_has() -> None:
    planned = deployment("hpc", ON_AWS)
    volta = replace(planned.node, machine="p3dn.24xlarge", chip="V100-32", capability=7.0)
    said = constants({file.path: file.text for file in ec2.render(replace(planned, others=(volta,)))}["launch.py"])
    assert {machine for machine, *_ in said["ATTEMPTS"]} == {planned.node.machine}


def test_what_is_not_on_aws_is_refused_with_what_can() -> None:
    with pytest.raises(CannotRender, match="is of AWS") as refused:
        ec2.render(deployment("serve", "clouds=[gcp]"))
    assert "clouds=[aws]" in str(refused.value.remedy)
    for name, what in (("interactive", "jupyterhub"), ("pipeline", "--stage")):
        with pytest.raises(CannotRender) as refused:
            ec2.render(deployment(name, ON_AWS))
        assert what in str(refused.value.remedy)


def test_a_command_that_user_data_cannot_hold_is_refused_with_its_size() -> None:
    planned = deployment("finetune", ON_AWS)
    long = replace(planned, software=replace(planned.software, command=("python", "x.py", "y" * 20_000), given=True))
    with pytest.raises(CannotRender, match="16 KiB"):
        ec2.render(long)


@pytest.mark.parametrize("text", TEXTS)
def test_hostile_text_stays_text(text: str) -> None:
    files = {file.path: file.text for file in ec2.render(hostile(deployment("finetune", ON_AWS), text))}
    tree = constants(files["launch.py"])
    assert isinstance(tree["TAGS"], dict)
    assert {"Name", "chipwise-deployment"} <= set(tree["TAGS"])
    for shell in ("launch.sh", "start.sh"):
        subprocess.run(["bash", "-n"], input=files[shell], text=True, check=True)


STUBS = {
    "docker": 'if [ "$1" = run ]; then printf "%s\\0" "$@" > "$OUT/words"; fi',
    "curl": "echo 0",
    "mountpoint": "exit 1",
    "lsblk": ":",
    "systemctl": ":",
    "shutdown": ":",
    "chmod": ":",
    "mkdir": ":",
    "aws": "echo x",
    "dnf": ":",
    "tee": "cat",
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_machine_hands_every_word_to_the_container_as_it_was_written(text: str, tmp_path: Path) -> None:
    """The rendered start.sh is really run, with stand-ins for what would touch the machine."""
    programs, work = tmp_path / "programs", tmp_path / "work"
    programs.mkdir()
    work.mkdir()
    for name, body in STUBS.items():
        (programs / name).write_text(f"#!/bin/bash\n{body}\n")
        (programs / name).chmod(0o755)
    planned = replace(deployment("hpc", ON_AWS), machines=1, split=UNSPLIT, deadline_s=None)
    evil = hostile(planned, text)
    script = start_script(evil).replace("/var/log/chipwise.log", str(tmp_path / "log"))
    script = f"IMAGE=image:1\nKEEP=\n{script}"
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "OUT": str(tmp_path), "HOME": "/nowhere"}
    subprocess.run(["bash", "-c", script], env=env, cwd=work, capture_output=True, timeout=20, check=False)
    assert list(work.iterdir()) == []
    words = (tmp_path / "words").read_bytes().decode().split("\0")[:-1]
    at = words.index("image:1")
    assert tuple(words[at + 1 :])[-2:] == evil.software.command[-2:]
    assert f"SETTING={text}" in words[:at]


def test_each_part_is_told_which_it_is() -> None:
    batch, frames = rendered("batch")["start.sh"], rendered("render")["start.sh"]
    assert "' batch /data/requests /data/answers " in batch
    assert 'SHARD=$(printf %05d "$PART")' in batch
    assert "PARTS=4096\n" in batch
    assert '--env "PART=$PART" --env "PARTS=$PARTS" --env "SHARD=$SHARD"' in batch
    assert '--frame-start "$((PART + 1))"' in frames
    assert '--frame-jump "$PARTS"' in frames


def run_on_a_machine(planned: Deployment, folder: Path, docker: str, rank: int = 0) -> tuple[int, list[str]]:
    """Runs the rendered start.sh with stand-ins: (its status, what every container was told)."""
    programs = folder / "programs"
    programs.mkdir()
    for name, body in {
        **STUBS,
        "docker": docker,
        "curl": f'case "$*" in *first-rank*) echo {rank} ;; *) echo 0 ;; esac',
    }.items():
        (programs / name).write_text(f"#!/bin/bash\n{body}\n")
        (programs / name).chmod(0o755)
    script = "IMAGE=image:1\nKEEP=\n" + start_script(planned).replace("/var/log/chipwise.log", str(folder / "log"))
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "OUT": str(folder), "HOME": "/nowhere"}
    done = subprocess.run(["bash", "-c", script], env=env, cwd=folder, capture_output=True, timeout=30, check=False)
    return done.returncode, sorted((folder / "told").read_text().splitlines())


def test_runs_of_a_simulation_are_dealt_out_and_none_is_repeated(tmp_path: Path) -> None:
    planned = replace(deployment("hpc", ON_AWS), runs=13)
    assert planned.split == Runs(at_once=6, chips_each=4)
    docker = 'if [ "$1" = run ]; then grep -ao "RUN=[0-9]*" <<< "$*" >> "$OUT/told"; fi'
    told: list[str] = []
    for rank in range(planned.machines):
        folder = tmp_path / str(rank)
        folder.mkdir()
        told += run_on_a_machine(planned, folder, docker, rank)[1]
    assert sorted(told) == sorted(f"RUN={run}" for run in range(13))
    assert '"$IMAGE" -n 4 python main.py' in start_script(planned)  # a rank for each of its chips


def test_a_copy_that_fails_does_not_end_the_machine_while_others_work(tmp_path: Path) -> None:
    planned = replace(deployment("batch", ON_AWS), purchase="on-demand", volumes=())
    docker = 'if [ "$1" = run ]; then case "$*" in *PART=3*) exit 7 ;; esac; sleep 1; echo done >> "$OUT/told"; fi'
    status, told = run_on_a_machine(planned, tmp_path, docker)
    assert (status, told) == (7, ["done"] * 7)


def over_machines(planned: Deployment) -> Deployment:
    """One MPI run over all of its machines."""
    return replace(planned, split=Runs(at_once=1, chips_each=planned.machines * planned.node.chips), runs=1)


def test_one_mpi_run_over_several_machines_is_for_schedulers() -> None:
    with pytest.raises(CannotRender, match="one MPI program over 3 machines") as refused:
        ec2.render(over_machines(deployment("hpc", ON_AWS)))
    assert refused.value.remedy == "Take --to slurm or parallelcluster."


def test_neuron_starts_a_process_for_each_core() -> None:
    train = deployment("train", ON_AWS)
    node = replace(train.node, machine="trn1.32xlarge", chip="Trainium", kind="neuron", vendor="AWS", chips=16, cores=2)
    assert "--nproc-per-node=32 " in start_script(replace(train, node=node, chips_each=16))
    half = replace(node, machine="trn2.48xlarge", chip="Trainium2", cores=8)
    assert "--nproc-per-node=64 " in start_script(replace(train, node=half, chips_each=16))


def test_the_full_price_is_paid_only_by_who_asks_for_it() -> None:
    files = rendered("train")
    inside = loaded(files["launch.py"])
    cheap, dear = (inside["attempts"](SimpleNamespace(or_on_demand=said)) for said in (False, True))
    assert {purchase for _, purchase, _, _ in cheap} == {"spot"}
    assert dear == inside["ATTEMPTS"]
    assert files["launch.sh"].index(" spot ") < files["launch.sh"].index('[ -n "$or_on_demand" ] || {')
    assert "or_on_demand" not in rendered("serve")["launch.sh"]


def test_where_a_machine_was_just_taken_is_tried_last_and_the_full_price_after_some_losses() -> None:
    inside = loaded(rendered("train")["launch.py"])
    names = list(dict.fromkeys(name for name, *_ in inside["ATTEMPTS"]))
    allowed = SimpleNamespace(or_on_demand=True)

    def lost(many: int) -> list[tuple[str, str, str]]:
        one = inside["Machine"]("i-1", 0, names[0], "spot", "a", None, "lost")
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
    one = loaded(rendered(example)["launch.py"])["machine"](told)
    assert (one.rank, one.fate) == (3, fate)


def test_only_spot_is_followed_without_being_asked() -> None:
    assert [constants(rendered(name)["launch.py"])["FOLLOWS"] for name in ("train", "serve")] == [True, False]


def test_a_machine_that_is_taken_waits_for_it_and_does_not_shut_itself_down(tmp_path: Path) -> None:
    """A shutdown of its own would look like the end of the job."""
    planned = replace(deployment("finetune", ON_AWS), purchase="spot", volumes=())
    body = start_script(planned)
    at = body.index("finish() {")
    finish = body[at : body.index("trap finish EXIT")]
    stubs = (
        'save() { :; }\nsleep() { echo "waits $1"; }\nshutdown() { echo shutdown; }\naws() { cat; }\nmetadata() { echo i-1; }\n'
    )
    for taken, said in (("", ["i-1 0", "shutdown"]), ("yes", ["waits 300", "i-1 0", "shutdown"])):
        flag = tmp_path / "taken"
        flag.touch() if taken else None
        script = f"{stubs}RANK=0 KEEP=s3://kept TAKEN={flag}\n{finish}true\nfinish\n"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[1:] == said


def test_both_launchers_want_a_private_subnet_for_efa() -> None:
    refusal = "machines with several network interfaces get no public address"
    assert refusal in rendered("train")["launch.sh"]
    assert "default-for-az" not in rendered("train")["launch.sh"]
    assert "default-for-az" in rendered("serve")["launch.sh"]


def test_secrets_are_read_on_the_machine_and_written_nowhere() -> None:
    planned = deployment("finetune", ON_AWS)
    with_secret = replace(planned, software=replace(planned.software, secrets=(("HF_TOKEN", "hub-token", "token"),)))
    files = {file.path: file.text for file in ec2.render(with_secret)}
    assert "get-secret-value --secret-id hub-token" in files["start.sh"]
    assert "--env HF_TOKEN \\" in files["start.sh"]
    assert constants(files["launch.py"])["NEEDS_ROLE"] is True


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
