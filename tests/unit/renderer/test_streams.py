"""Live streams: every one belongs to one group, and the program that keeps them going runs for real with a stand-in encoder."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch import streams
from chipwise.renderer.named_targets import files, target, target_names
from chipwise.renderer.quoting import shell
from chipwise.renderer.workflow.stages import check
from deployments import deployment
from fixed_deployments import SERVE
from hostile import TEXTS
from render_checks import program

# The stand-in: it says what it was given and works until it is told to end, or fails at once where its source is called gone.
STAND_IN = """\
#!/bin/sh
# A stand-in for ffmpeg.
trap 'echo "$STREAM" >> "$LOG/told"; exit 0' TERM
printf '%s\\n' "$STREAM|$SOURCE|$TARGETS|$*" >> "$LOG/started"
case $SOURCE in gone) exit 1 ;; crash) /bin/sleep 0.2; kill -9 $$ ;; esac
while :; do /bin/sleep 0.05; done
"""


def live(machines: int = 25, streams_of: int = 200) -> Deployment:
    return replace(deployment("transcode", "clouds=[aws]"), machines=machines, streams=streams_of)


def texts(name: str, planned: Deployment) -> dict[str, str]:
    return {file.path: file.text for file in files(name, target(name), planned)}


def objects(planned: Deployment, name: str = "kubernetes") -> dict[str, Any]:
    found = [one for path, text in texts(name, planned).items() if path != "devices.yaml" for one in yaml.safe_load_all(text)]
    return {one["kind"]: one for one in found}


@pytest.mark.parametrize(("machines", "chips", "many"), [(25, 1, 200), (23, 1, 200), (7, 4, 200), (2, 1, 1), (3, 0, 10)])
def test_every_stream_is_of_one_group_and_no_group_has_more_than_its_part(machines: int, chips: int, many: int) -> None:
    planned = live(machines, many)
    planned = replace(planned, node=replace(planned.node, chips=chips))
    each, groups = streams.streams_per_group(planned), streams.groups(planned)
    dealt = Counter(at // each for at in range(many))
    assert set(dealt) <= set(range(groups))
    assert groups <= machines * max(chips, 1)
    assert each == -(-many // groups)


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_the_plans_streams_a_chip_hold(cloud: str) -> None:
    planned = deployment("transcode", f"clouds=[{cloud}]")
    assert streams.streams_per_group(planned) <= planned.split.as_dict()["streams a chip"]
    assert planned.scaling is not None
    assert planned.scaling.usual == streams.groups(planned)


def test_a_cluster_gets_a_pod_with_a_number_for_each_chip() -> None:
    made = objects(live())
    work = made["StatefulSet"]
    assert "Deployment" not in made
    assert (work["spec"]["replicas"], work["spec"]["podManagementPolicy"]) == (25, "Parallel")
    [main] = work["spec"]["template"]["spec"]["containers"]
    assert main["resources"]["limits"]["nvidia.com/gpu"] == 1
    [group] = [one for one in main["env"] if one["name"] == "GROUP"]
    assert group["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['apps.kubernetes.io/pod-index']"
    lines = made["ConfigMap"]["data"]["streams.txt"].splitlines()
    assert len(lines) == 200
    assert {len(line.split()) for line in lines} == {4}  # a source and three sizes
    [listed] = [one for one in work["spec"]["template"]["spec"]["volumes"] if one["name"] == "streams"]
    assert listed["configMap"]["name"] == made["ConfigMap"]["metadata"]["name"]


def test_streams_may_leave_the_namespace_and_its_clock_scales_what_is_there() -> None:
    made = objects(live())
    ports = [port for one in made["NetworkPolicy"]["spec"]["egress"] for port in one["ports"]]
    assert {"protocol": "UDP", "port": 9000} in ports
    assert made["Role"]["rules"][0]["resources"] == ["statefulsets", "statefulsets/scale"]
    clock = made["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["command"]
    assert clock[:4] == ["kubectl", "scale", "statefulset", "league-live"]
    assert "PersistentVolumeClaim" not in made  # nothing of a live stream is kept


def test_a_queue_and_a_scaler_take_the_same_object() -> None:
    assert objects(live(), "kueue")["StatefulSet"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "media"
    assert objects(live(), "keda")["ScaledObject"]["spec"]["scaleTargetRef"]["kind"] == "StatefulSet"


def of_own_program() -> Deployment:
    return replace(live(), software=replace(live().software, command=("relay", "--all"), is_custom=True))


@pytest.mark.parametrize("name", ["ec2", "ecs"])
def test_a_target_that_tells_no_stream_its_source_starts_none_of_ours(name: str) -> None:
    """It would look for a file that is not there, and be started again for ever on machines that are paid for."""
    with pytest.raises(CannotRender, match="200 streams") as refused:
        texts(name, live())
    assert "--to kubernetes, kueue or compose" in str(refused.value.remedy)
    assert "program.command" in str(refused.value.remedy)


def test_machines_that_terraform_makes_for_streams_are_those_of_a_cluster() -> None:
    assert {path.partition("/")[0] for path in texts("terraform", live())} == {"eks"}
    assert "start.sh" in texts("terraform", of_own_program())


@pytest.mark.parametrize("name", ["ec2", "ecs", "terraform", "kubernetes", "kueue", "compose", "karpenter"])
def test_a_program_that_finds_its_streams_itself_is_told_by_some_targets_that_it_must(name: str) -> None:
    said = any("starts all of them" in text for text in texts(name, of_own_program()).values())
    assert said == (name in ("ec2", "ecs", "terraform"))


def test_a_workflow_leaves_live_streams_to_others() -> None:
    with pytest.raises(CannotRender, match="live streams"):
        check(live())


def test_what_ends_or_answers_requests_has_no_streams() -> None:
    assert not streams.live(SERVE)
    assert not streams.live(replace(live(), form=Form.JOB))


def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    (tmp_path / "program.sh").write_text(streams.PROGRAM)
    words = [program("shellcheck"), "--shell=sh", str(tmp_path / "program.sh")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "'" not in streams.PROGRAM


@pytest.mark.parametrize("many", [1, 1_000, 1_000_000, 1_000_000_000])
@pytest.mark.parametrize("name", target_names())
def test_files_do_not_grow_with_the_number_of_streams(name: str, many: int) -> None:
    planned = live(max(many // 8, 1), many)
    try:
        made = texts(name, planned)
    except CannotRender as refused:
        made = {}
        reason = str(refused)
        assert "bytes" not in reason  # whatever it is, it is not the number of streams
    assert sum(map(len, made.values())) < 500_000
    assert all(text.count("camera-") <= streams.MOST_ADDRESSES for text in made.values())


def test_a_list_of_many_streams_is_one_pattern_with_their_number() -> None:
    [line] = streams.stream_list(live(125_000, 1_000_000)).splitlines()
    assert line.startswith("* srt://source.example:9000?streamid=camera-{STREAM} ")
    assert len(line.split()) == 5  # the sign, a source and three sizes
    assert "1,000,000 streams" in streams.list_reason(live(125_000, 1_000_000))


def test_more_pods_than_kubernetes_counts_are_refused() -> None:
    with pytest.raises(CannotRender, match="2,147,483,647 pods"):
        texts("kubernetes", live(10**10, 10**11))


# --- the program itself ---


class Running:
    def __init__(self, folder: Path, words: tuple[str, ...] | list[str], lines: list[str], group: int) -> None:
        (folder / "tools").mkdir()
        for name in ("ffmpeg", "own"):
            (folder / "tools" / name).write_text(STAND_IN)
            (folder / "tools" / name).chmod(0o755)
        self.log, self.list = folder, folder / "streams.txt"
        self.list.write_text("\n".join(lines) + "\n")
        made = [word.replace("/streams/streams.txt", str(self.list)) for word in words]
        env = {"PATH": f"{folder / 'tools'}:{os.environ['PATH']}", "LOG": str(folder), "GROUP": str(group)}
        with (folder / "stderr").open("w") as said:
            self.process = subprocess.Popen(made, env=env, start_new_session=True, stderr=said, cwd=folder)

    def lines(self, name: str) -> list[str]:
        return (self.log / name).read_text().splitlines() if (self.log / name).exists() else []

    def until(self, what: Callable[[], bool]) -> None:
        for _ in range(1500):
            if what():
                return
            time.sleep(0.01)
        os.killpg(self.process.pid, signal.SIGKILL)
        raise AssertionError(self.lines("started"))

    def stopped(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise


def addresses(many: int) -> list[str]:
    return [f"srt://camera-{at}?a=*&b=x'y\\n out-{at}-0 out-{at}-1 out-{at}-2" for at in range(many)]


def test_a_group_starts_its_own_streams_with_their_addresses_and_ends_them_all(tmp_path: Path) -> None:
    running = Running(tmp_path, streams.stream_words(live()), addresses(200), group=3)
    running.until(lambda: len(running.lines("started")) == 8)
    assert running.stopped() == 0
    told = {line.split("|")[0]: line.split("|") for line in running.lines("started")}
    assert sorted(map(int, told)) == list(range(24, 32))
    for number, (_, source, _, words) in told.items():
        assert source == f"srt://camera-{number}?a=*&b=x'y\\n"
        assert f"-i {source} " in words
        assert [f"out-{number}-{at}" in words for at in range(3)] == [True] * 3
    assert sorted(map(int, running.lines("told"))) == list(range(24, 32))


def test_the_last_group_has_what_is_left(tmp_path: Path) -> None:
    running = Running(tmp_path, streams.stream_words(live(23)), addresses(200), group=22)
    running.until(lambda: len(running.lines("started")) == 2)
    running.stopped()
    assert sorted(line.split("|")[0] for line in running.lines("started")) == ["198", "199"]


def test_a_stream_that_dies_comes_back_alone_and_later_each_time(tmp_path: Path) -> None:
    lines = addresses(8)
    lines[2] = "crash out-a out-b out-c"
    running = Running(tmp_path, streams.stream_words(live()), lines, group=0)
    began = time.monotonic()
    running.until(lambda: sum(line.startswith("2|") for line in running.lines("started")) == 3)
    assert time.monotonic() - began >= 3.0  # one second, then two
    assert running.stopped() == 0
    started = Counter(line.split("|")[0] for line in running.lines("started"))
    assert {number: many for number, many in started.items() if number != "2"} == dict.fromkeys("0134567", 1)


def test_a_changed_line_holds_from_the_next_start(tmp_path: Path) -> None:
    lines = addresses(8)
    lines[5] = "gone out-a out-b out-c"
    running = Running(tmp_path, streams.stream_words(live()), lines, group=0)
    running.until(lambda: any(line.startswith("5|gone") for line in running.lines("started")))
    lines[5] = "there out-a out-b out-c"
    running.list.write_text("\n".join(lines) + "\n")
    running.until(lambda: any(line.startswith("5|there") for line in running.lines("started")))
    assert running.stopped() == 0
    assert "5" in running.lines("told")


def test_a_stream_without_a_line_is_told_and_stops_no_other(tmp_path: Path) -> None:
    running = Running(tmp_path, streams.stream_words(live()), addresses(7), group=0)
    running.until(lambda: any(line.startswith("stream 7:") and "no line" in line for line in running.lines("stderr")))
    running.until(lambda: len(running.lines("started")) == 7)
    assert running.stopped() == 0


def test_streams_without_a_line_take_the_pattern_with_their_number(tmp_path: Path) -> None:
    planned = live(125_000, 1_000_000)
    pattern = "* srt://camera-{STREAM}?a=*&b=x'y\\n out-{STREAM}-0 out-{STREAM}-1 out-{STREAM}-2"
    running = Running(tmp_path, streams.stream_words(planned), [*addresses(3)[:2], "own-2 a b c", pattern], group=0)
    running.until(lambda: len(running.lines("started")) == 8)
    assert running.stopped() == 0
    sources = {line.split("|")[0]: line.split("|")[1] for line in running.lines("started")}
    assert sources == {str(at): f"srt://camera-{at}?a=*&b=x'y\\n" for at in range(8)} | {"2": "own-2"}
    words = next(line.split("|")[3] for line in running.lines("started") if line.startswith("7|"))
    assert [f"out-7-{at}" in words for at in range(3)] == [True] * 3


@pytest.mark.parametrize("text", TEXTS)
def test_a_command_of_the_users_own_finds_its_stream_as_settings_and_stays_text(tmp_path: Path, text: str) -> None:
    own = live(1, 1)
    own = replace(own, software=replace(own.software, command=("own", text), is_custom=True))
    running = Running(tmp_path, ["/bin/sh", "-c", "exec " + shell(streams.stream_words(own))], ["here there"], 0)
    running.until(lambda: bool(running.lines("started")))
    running.stopped()
    assert (tmp_path / "started").read_bytes().decode() == f"0|here|there|{text}\n"
    assert {one.name for one in tmp_path.iterdir()} <= {"tools", "streams.txt", "started", "told", "stderr"}


def test_compose_starts_a_group_on_each_machine(tmp_path: Path) -> None:
    made = texts("compose", live())
    main = yaml.safe_load(made["compose.yaml"])["services"]["main"]
    assert main["environment"]["GROUP"].startswith("${GROUP:?")
    assert "GROUP=0 docker compose up" in made["compose.yaml"]
    [listed] = [one for one in main["volumes"] if one["target"] == "/streams/streams.txt"]
    assert listed["source"] == "./streams.txt"
    assert len(made["streams.txt"].splitlines()) == 200
    words = [word.replace("$$", "$") for word in main["command"]]
    running = Running(tmp_path, words, addresses(200), 1)
    running.until(lambda: len(running.lines("started")) == 8)
    assert running.stopped() == 0
    assert {line.split("|")[0] for line in running.lines("started")} == {str(at) for at in range(8, 16)}
