"""What stages hand to each other, looked for where it lies: in pods that really run, on this machine, and at a URL.

`kube.process_kubelet` stands in for the kubelet: each container is a process of this machine, without images and mounts, so
what a pod writes lies on this machine too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from command import Chipwise
from ftp_store import ftp_store
from kube.control_plane import Cluster
from kube.process import wait_for
from kube.process_kubelet import ProcessKubelet
from kube.user import User

pytestmark = pytest.mark.e2e
PIPELINE = """
kind: pipeline
name: p
limits: {{clouds: [aws], regions: [eu-west-1], chips: [a10g]}}
stages:
- kind: hpc
  name: prepare
  steps: 10
  flop_per_step: 1e15
  precision: fp32
  program: {{command: [sh, -c, "echo data > {here}/data.txt"], produces: ["{here}/data.txt"]}}
- kind: finetune
  name: tune
  model: llama-3.1-8b
  method: lora
  tokens: 20M
  program:
    image: registry.example.com/team/tune:1.4
    command: [sh, "{here}/tune.sh"]
    produces: ["{here}/tuned/adapter.bin"]
- kind: batch
  name: score
  model: llama-3.1-8b
  items: 1000
  input_tokens: 100
  output_tokens: 10
  program: {{command: [cat, "{here}/tuned/adapter.bin"]}}
"""


def test_a_stage_on_a_cluster_that_leaves_nothing_behind_ends_the_pipeline_and_one_that_does_hands_it_on(
    user: User, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    work, program = tmp_path / "p.yaml", tmp_path / "tune.sh"
    work.write_text(PIPELINE.format(here=tmp_path))
    program.write_text("echo tunes; mkdir -p tuned\n")  # in the pod's own folder, where nobody finds it
    done = user.run("run", "-d", "--stage-engine", "tune=cluster", "--retries", "0", str(work))
    assert done.code == 0, done.err
    prepare, tune, score = done.out.split()
    user.bring_what_it_waits_for(tune, kubelet)
    failed = user.wait(tune, "failed")
    assert failed["reason"] == f"it ended well, but {tmp_path}/tuned/adapter.bin is not there", kubelet.output()
    assert failed["attempts"][0]["code"] == 66
    assert "failed before it" in user.wait(score, "failed")["reason"]
    program.write_text(f"mkdir -p {tmp_path}/tuned; cat {tmp_path}/data.txt > {tmp_path}/tuned/adapter.bin\n")
    assert user.run("retry", tune, score).code == 0
    user.wait(score, "done")
    assert user.shown("logs", score).out == "data\n"
    assert user.look(prepare)["phase"] == "done"
    user.must_leave_nothing()


def test_of_pods_that_work_together_the_first_must_leave_it_and_a_stop_reaches_the_program(
    namespace: str, user: User, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    kubelet.node(f"{namespace}-a")
    made = tmp_path / "made.bin"
    words = ("--image", "team/trainer:1.4", "--machines", "2", "--produces", str(made), "--retries", "0", "--")
    first = f'[ "$RANK" = 1 ] || echo weights > {made}'
    done = user.submit(*words, "sh", "-c", first)["id"]
    assert [one["outcome"] for one in user.wait(done, "done")["attempts"]] == ["done"], kubelet.output()
    made.write_text("")
    empty = user.submit(*words, "sh", "-c", "true")["id"]
    assert user.wait(empty, "failed")["reason"] == f"it ended well, but {made} is empty"
    saves = (
        f"trap 'echo saved > {tmp_path}/saved-$RANK; exit 75' TERM; touch {tmp_path}/began-$RANK; while :; do sleep 0.1; done"
    )
    long = user.submit(*words, "sh", "-c", saves)["id"]
    wait_for("both to begin", lambda: len(list(tmp_path.glob("began-*"))) == 2, 60)
    user.wait(long, "running")
    assert user.run("stop", "--wait", long).err.endswith("stopped\n")
    assert sorted(one.name for one in tmp_path.glob("saved-*")) == ["saved-0", "saved-1"]
    user.must_leave_nothing()


def test_an_image_without_a_shell_is_told(cluster: Cluster, namespace: str, user: User) -> None:
    cluster.fake_node(f"{namespace}-a", {})
    id = user.submit("--image", "a:1", "--produces", "/out/x", "--retries", "0", "--", "train")["id"]
    user.wait(id, "running")
    [pod] = user.pods()
    assert pod["spec"]["containers"][0]["command"][0] == "/bin/sh"
    said = 'failed to create containerd task: exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown'
    ended = {"exitCode": 128, "reason": "StartError", "message": said, "startedAt": None, "finishedAt": "2026-11-15T00:00:05Z"}
    container = {
        "name": "main",
        "image": "a:1",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    status = {"phase": "Failed", "containerStatuses": [container]}
    cluster.api.merge("v1", "Pod", pod["metadata"]["name"], {"status": status}, namespace, status=True).must()
    assert "its image has no /bin/sh, which would look for /out/x" in user.wait(id, "failed")["reason"]
    user.must_leave_nothing()


def test_what_lies_at_a_url_is_looked_for_from_here_whatever_engine_made_it(
    namespace: str, user: User, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    kubelet.node(f"{namespace}-a")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a.bin").write_text("weights")
    with ftp_store(tmp_path / "store") as store:
        there, missing = f"{store.url}/a.bin", f"{store.url}/b.bin"
        for engine in (("--image", "a:1"), ("--engine", "local")):
            words = ("--retries", "0", *engine, "--")
            assert user.wait(user.submit("--produces", there, *words, "true")["id"], "done")
            lost = user.wait(user.submit("--produces", there, "--produces", missing, *words, "true")["id"], "failed")
            assert lost["reason"] == f"it ended well, but {missing} is not there"
            assert lost["attempts"][0]["code"] == 66
    for url, why in (
        ("s3://bucket/key", "chipwise[checkpoint]"),
        (there, "cannot be opened"),  # the store is gone by now
        ("nonsense://a/b", "no store that others could read"),
        ("file:///a/b", "Write its path, without file://"),
        ("s3://me:word@bucket/key", "would be recorded with it"),
    ):
        done = user.run("run", "--engine", "cluster", "--image", "a:1", "--produces", url, "--", "true")
        assert done.code != 0
        assert why in " ".join(done.err.split())
        assert "Traceback" not in done.err
        assert "me:word" not in done.err
    user.must_leave_nothing()


def test_a_store_that_hangs_holds_up_no_other_job_and_whoever_waits_for_it_can_be_stopped(user: User, tmp_path: Path) -> None:
    user.chipwise = Chipwise(tmp_path, {"CHIPWISE_GPUS": "", "CHIPWISE_CPUS": "0,1"})
    with ftp_store(tmp_path) as store:
        waits = ("sh", "-c", f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done")
        id = user.submit("--engine", "local", "--produces", f"{store.url}/x", "--", *waits)["id"]
        store.hangs.set()
        (tmp_path / "go").touch()
        user.told(id, "waits: it ended well; looks for what it made")
        assert "it ended well; looks for what it made" in user.shown("describe", id).out
        assert user.run("run", "--engine", "local", "--", "true").code == 0
        assert user.run("stop", "--wait", id).err.endswith("stopped\n")
        assert "its store does not answer" in user.story(id)
