"""Batches in shards: the rendered shell programs run for real, with a stand-in for vLLM that copies requests slowly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml

from booting import booted
from chipwise.planner.values.split import GenerationSplit
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.launch import shards
from chipwise.renderer.launch.starting import part_command
from chipwise.renderer.named_targets import files, target
from deployments import on_few_offers as deployment
from fixed_deployments import CASES, SERVE
from render_checks import program
from scripts import constants

# The stand-in: it answers line by line, as the real one opens its output at the start and writes on until the end.
STAND_IN = """\
#!/bin/sh
# A stand-in for vLLM: `vllm run-batch` that copies requests to answers, slowly.
printf '%s\\n' "$*" >> "$LOG/words"
while [ $# -gt 0 ]; do
  case $1 in --input-file) from=$2 ;; --output-file) to=$2 ;; esac
  shift
done
echo "${from##*/}" >> "$LOG/started"
trap 'echo "${from##*/}" >> "$LOG/told"; exit 0' TERM
case " $BAD " in *" ${from##*/} "*) exit 7 ;; esac
: > "$to"
while read -r line || [ -n "$line" ]; do
  printf '%s\\n' "$line" >> "$to"
  /bin/sleep "$SLOW"
done < "$from"
if [ "$SHORT" = "${from##*/}" ]; then sed -i '$d' "$to"; fi
"""


@dataclass
class Place:
    """A folder of data with a name that would break out of careless quotes, and the stand-in before everything else."""

    data: Path
    log: Path
    tools: Path

    def asked(self, many: int, shards_of: int = 0) -> list[str]:
        lines = [json.dumps({"custom_id": f"r-{number}", "body": "$(touch oops) 'x' \\n"}) for number in range(many)]
        (self.data / "requests.jsonl").write_text("\n".join(lines) + "\n")
        if shards_of:
            (self.data / "requests").mkdir()
            for number in range(shards_of):
                mine = lines[number::shards_of]
                (self.data / "requests" / f"{number:05d}.jsonl").write_text("\n".join(mine) + "\n")
        return lines

    def planned(self, replicas: int = 1, **changed: object) -> Deployment:
        batch = CASES["batch"]
        words = tuple(word.replace("/data", str(self.data)) for word in batch.software.command)
        made = replace(
            batch,
            software=replace(batch.software, command=(*words, "--served", "it's $HOME")),
            machines=replicas,
            chips_each=4,
            split=GenerationSplit(tp=4, pp=1, replicas=replicas),
        )
        return replace(made, **changed)  # type: ignore[arg-type]

    def start(self, words: list[str], **settings: str) -> subprocess.Popen[str]:
        env = {"PATH": f"{self.tools}:{os.environ['PATH']}", "LOG": str(self.log), "SLOW": "0", "BAD": "", "SHORT": ""}
        return subprocess.Popen(
            words, env=env | settings, cwd=self.data, start_new_session=True, text=True, stderr=subprocess.PIPE
        )

    def ran(self, words: list[str], **settings: str) -> int:
        running = self.start(words, **settings)
        running.communicate(timeout=60)
        return running.returncode

    def lines(self, name: str) -> list[str]:
        path = self.log / name
        return path.read_text().splitlines() if path.exists() else []

    def answered(self) -> list[str]:
        found = sorted((self.data / "answers").glob("*.jsonl"))
        return [line for path in found for line in path.read_text().splitlines()]

    def whole(self) -> bool:
        """Whether each answer under its final name has all of its shard."""
        for path in (self.data / "answers").glob("*.jsonl"):
            if path.read_text() != (self.data / "requests" / path.name).read_text():
                return False
        return not (self.data / "oops").exists()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "da ta'$(touch oops)", tmp_path / "log", tmp_path / "tools")
    for folder in (made.data, made.log, made.tools):
        folder.mkdir()
    for name, text in (("vllm", STAND_IN), ("sleep", "#!/bin/sh\n# A stand-in: nobody waits in a test.\n")):
        (made.tools / name).write_text(text)
        (made.tools / name).chmod(0o755)
    yield made
    assert not (tmp_path / "oops").exists()


def command(planned: Deployment) -> list[str]:
    """As systems with a shell start it: `exec` and the words."""
    return ["/bin/sh", "-c", "exec " + " ".join(part_command(planned))]


def until(what: Callable[[], bool]) -> None:
    for _ in range(1000):
        if what():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def test_shellcheck_has_nothing_to_say(tmp_path: Path) -> None:
    (tmp_path / "program.sh").write_text(shards.PROGRAM)
    words = [program("shellcheck"), "--shell=sh", "--exclude=SC2329", str(tmp_path / "program.sh")]  # `trap` calls `stop`
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_program_stands_between_single_quotes_and_in_templates() -> None:
    assert not {"'", "{{", "}}", "\t"} & {sign for sign in ("'", "{{", "}}", "\t") if sign in shards.PROGRAM}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_replica_goes_on_with_the_shard_that_it_was_at(place: Place, how: signal.Signals) -> None:
    asked = place.asked(40, shards_of=5)
    running = place.start(command(place.planned()), SLOW="0.02")
    until(lambda: len(place.lines("started")) == 3)
    if how is signal.SIGTERM:
        running.send_signal(how)  # to the shell alone, as a container's first process gets it
    else:
        os.killpg(running.pid, how)  # a machine that is gone: everything at once
    running.communicate(timeout=20)
    finished = {path.name for path in (place.data / "answers").glob("*.jsonl")}
    assert finished == {"00000.jsonl", "00001.jsonl"}
    assert place.whole()
    if how is signal.SIGTERM:
        assert running.returncode == 143
        assert place.lines("told") == ["00002.jsonl"]  # vLLM was told, and could end in order
        assert not list((place.data / "answers").glob(".now*"))
    assert place.ran(command(place.planned())) == 0
    assert place.lines("started")[3:] == ["00002.jsonl", "00003.jsonl", "00004.jsonl"]
    assert Counter(place.answered()) == Counter(asked)
    assert place.whole()
    assert not list((place.data / "answers").glob(".now*"))


def test_losses_at_any_moment_lose_no_request_and_answer_none_twice(place: Place) -> None:
    asked = place.asked(30, shards_of=6)
    for number in range(8):
        running = place.start(command(place.planned()), SLOW="0.01")
        time.sleep(0.03 + 0.021 * number)
        os.killpg(running.pid, signal.SIGKILL if number % 2 else signal.SIGTERM)
        running.communicate(timeout=20)
        assert place.whole()
    assert place.ran(command(place.planned())) == 0
    assert Counter(place.answered()) == Counter(asked)


def test_a_shard_that_fails_is_tried_three_times_and_stops_no_other(place: Place) -> None:
    asked = place.asked(20, shards_of=4)
    assert place.ran(command(place.planned()), BAD="00001.jsonl") == 7
    assert Counter(place.lines("started")) == {"00000.jsonl": 1, "00001.jsonl": 3, "00002.jsonl": 1, "00003.jsonl": 1}
    assert place.ran(command(place.planned())) == 0
    assert Counter(place.answered()) == Counter(asked)


def test_where_all_shards_fail_the_fault_is_not_theirs(place: Place) -> None:
    place.asked(20, shards_of=10)
    assert place.ran(command(place.planned()), BAD=" ".join(f"{number:05d}.jsonl" for number in range(10))) == 7
    assert len(place.lines("started")) == 3**2


def test_answers_that_are_fewer_than_the_requests_are_not_taken(place: Place) -> None:
    place.asked(20, shards_of=4)
    running = place.start(command(place.planned()), SHORT="00002.jsonl")
    _, said = running.communicate(timeout=20)
    assert running.returncode == 1
    assert "4 answers to 5 requests" in said
    assert place.whole()
    assert not (place.data / "answers" / "00002.jsonl").exists()


def test_replicas_share_the_shards_and_a_plan_with_fewer_of_them_goes_on(place: Place) -> None:
    asked = place.asked(60, shards_of=12)
    before = command(place.planned(3))
    assert [place.ran(before, PART=str(part), PARTS="3", BAD="00009.jsonl") for part in (0, 2)] == [7, 0]
    after = command(place.planned(2))
    running = [place.start(after, PART=str(part), PARTS="2") for part in range(2)]
    assert [(one.communicate(timeout=20), one.returncode)[1] for one in running] == [0, 0]
    assert Counter(place.answered()) == Counter(asked)


def test_a_single_replica_cuts_its_requests_itself(place: Place) -> None:
    asked = place.asked(50)
    planned = place.planned(checkpoint_s=3600.0)
    many = shards.shards(planned)
    assert place.ran(command(planned)) == 0
    assert Counter(place.answered()) == Counter(asked)
    assert len(list((place.data / "requests").glob("*.jsonl"))) == min(many, 50)
    assert place.ran(command(planned)) == 0
    assert len(place.lines("started")) == min(many, 50)


def test_other_requests_under_the_same_name_are_answered_the_next_night(place: Place) -> None:
    first, planned = place.asked(20), place.planned(checkpoint_s=3600.0)
    assert place.ran(command(planned)) == 0
    second = [line.replace("r-", "night-2-") for line in first[:3]]
    (place.data / "requests.jsonl").write_text("\n".join(second) + "\n")
    assert place.ran(command(planned)) == 0
    assert Counter(place.answered()) == Counter(second)
    before = [line for path in (place.data / "answers.before").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert Counter(before) == Counter(first)
    assert not list(place.data.glob("requests.*.old"))


def test_replicas_answer_shards_that_were_cut_anew(place: Place) -> None:
    place.asked(20, shards_of=4)
    both = command(place.planned(2))
    assert [place.ran(both, PART=str(part), PARTS="2") for part in range(2)] == [0, 0]
    changed = place.data / "requests" / "00001.jsonl"
    changed.write_text(changed.read_text().replace("r-", "night-2-"))
    assert [place.ran(both, PART=str(part), PARTS="2") for part in range(2)] == [0, 0]
    assert len(place.lines("started")) == 4 + 1
    assert place.whole()


def test_missing_shards_are_told(place: Place) -> None:
    running = place.start(command(place.planned(2)), PART="0", PARTS="2")
    assert "no shards" in running.communicate(timeout=20)[1]
    assert running.returncode == 2


# --- the same through what targets write ---


def _text(name: str, planned: Deployment, path: str) -> str:
    return next(file.text for file in files(name, target(name), planned) if file.path == path)


def _kubernetes(planned: Deployment) -> list[str]:
    objects = yaml.safe_load_all(_text("kubernetes", planned, "workload.yaml"))
    job = next(one for one in objects if one["kind"] == "Job")
    [main] = job["spec"]["template"]["spec"]["containers"]
    return [word.replace("$$", "$") for word in main["command"]]


def _compose(planned: Deployment) -> list[str]:
    main = yaml.safe_load(_text("compose", planned, "compose.yaml"))["services"]["main"]
    return [word.replace("$$", "$") for word in (*main["entrypoint"], *main["command"])]


def _ray(planned: Deployment) -> list[str]:
    objects = yaml.safe_load_all(_text("ray", planned, "namespace.yaml"))
    program_text = next(one for one in objects if one["kind"] == "ConfigMap")["data"]["launch.json"]
    return ["bash", "-c", constants(program_text)["COMMAND"]]


def _skypilot(planned: Deployment) -> list[str]:
    return ["bash", "-c", yaml.safe_load(_text("skypilot", planned, "task.yaml"))["run"]]


def _batch(planned: Deployment) -> list[str]:
    return list(constants(_text("batch", on_aws(planned), "batch_job.json"))["CONTAINER"]["command"])


def _ecs(planned: Deployment) -> list[str]:
    containers = json.loads(_text("ecs", on_aws(planned), "task-definition.json"))["containerDefinitions"]
    main = next(one for one in containers if one["name"] == "main")
    return [*main["entryPoint"], *main["command"]]


def _vllm(planned: Deployment) -> list[str]:
    volumes = (replace(planned.volumes[0], path=planned.software.command[3].removesuffix("/requests.jsonl")),)
    return ["bash", "-c", _text("vllm", replace(planned, volumes=volumes), "batch.sh")]


def _slurm(planned: Deployment) -> list[str]:
    text = _text("slurm", planned, "job.sbatch")
    body = text[text.index("here() {") : text.index("export -f here inside work")]
    return ["bash", "-c", f"IMAGE=\n{body}work\n"]


def _docker(text: str) -> list[str]:
    """The container of a start script: what docker would run, from its entry point on."""
    with TemporaryDirectory() as folder:
        return booted(text, Path(folder) / "machine", KEEP="s3://kept", LOG_GROUP="logs", ZONE="z").command()


def _ec2(planned: Deployment) -> list[str]:
    return _docker(_text("ec2", on_aws(planned), "start.sh"))


def _terraform(planned: Deployment) -> list[str]:
    return _docker(_text("terraform", planned, "start.sh"))


def on_aws(planned: Deployment) -> Deployment:
    aws = deployment("batch", "clouds=[aws]")
    each = aws.node.chips
    return replace(
        aws,
        software=planned.software,
        machines=planned.machines,
        chips_each=each,
        split=GenerationSplit(each, 1, planned.split.as_dict()["replicas"]),
        volumes=planned.volumes,
    )


WAYS: dict[str, Callable[[Deployment], list[str]]] = {
    "kubernetes": _kubernetes,
    "compose": _compose,
    "ray": _ray,
    "skypilot": _skypilot,
    "batch": _batch,
    "ecs": _ecs,
    "vllm": _vllm,
    "slurm": _slurm,
    "ec2": _ec2,
    "terraform": _terraform,
}


@pytest.mark.parametrize("way", WAYS)
def test_what_a_target_writes_answers_its_part_of_the_shards(place: Place, way: str) -> None:
    place.asked(12, shards_of=6)
    numbers = {"JOB_COMPLETION_INDEX", "AWS_BATCH_JOB_ARRAY_INDEX", "SLURM_ARRAY_TASK_ID", "MACHINE", "PART"}
    words = WAYS[way](place.planned(2))
    assert place.ran(words, PARTS="2", SHARD="00001", HOME="/nowhere", **dict.fromkeys(numbers, "1")) == 0
    names = sorted(path.name for path in (place.data / "answers").iterdir() if path.suffix != ".sum")
    assert names == ["00001.jsonl", "00003.jsonl", "00005.jsonl"]
    assert place.whole()
    assert way == "vllm" or all("--served it's $HOME" in line for line in place.lines("words"))


def test_sagemaker_hands_the_program_over_line_by_line(place: Place) -> None:
    asked = place.asked(12)
    planned = on_aws(place.planned(1))
    told = constants(_text("sagemaker", planned, "sagemaker_job.json"))
    entrypoint, arguments = told["ENTRYPOINT"], told["ARGUMENTS"]
    assert max(map(len, [*entrypoint, *arguments])) <= 256
    assert len(arguments) <= 100
    words = [*entrypoint[:2], entrypoint[2].partition("/data/; ")[2], entrypoint[3]]
    kept = [word.replace("/checkpoints/answers", str(place.data / "answers")) for word in arguments]
    assert kept != arguments  # what SageMaker sends away as it comes
    assert place.ran([*words, *kept]) == 0
    assert Counter(place.answered()) == Counter(asked)


# --- how many ---


def test_a_shard_is_half_a_checkpoint_interval_but_no_shorter_than_ten_starts() -> None:
    batch = CASES["batch"]
    assert shards.shard_seconds(replace(batch, checkpoint_s=7200.0)) == 3600.0
    assert shards.shard_seconds(replace(batch, checkpoint_s=60.0)) == pytest.approx(10 * shards.restart_seconds(batch))
    assert shards.shard_seconds(replace(batch, checkpoint_s=None)) == shards.USUAL_S


def test_every_replica_has_the_same_number_of_shards_and_names_have_room_for_all() -> None:
    batch = CASES["batch"]
    assert shards.shards(batch) == 16 * shards.shards_each(batch)
    long = replace(batch, predicted=replace(batch.predicted, seconds=1e9))
    assert shards.shards(long) <= shards.MOST_SHARDS
    assert shards.shards(replace(batch, predicted=replace(batch.predicted, seconds=1.0))) == 16


def test_answers_of_one_shard_fit_into_memory() -> None:
    """vLLM holds all of a file's answers until the last is there."""
    batch = CASES["batch"]
    many = replace(batch, answers_bytes=21e3 * 100e6)
    assert many.answers_bytes is not None
    assert many.answers_bytes / shards.shards(many) <= shards.MOST_ANSWERED_BYTES
    assert shards.shards(replace(batch, answers_bytes=1e6)) == shards.shards(batch)


def test_a_command_of_the_users_own_is_left_as_it_is() -> None:
    batch = CASES["batch"]
    own = replace(batch, software=replace(batch.software, is_custom=True))
    assert not shards.in_shards(own)
    assert not shards.in_shards(SERVE)
    assert not shards.in_shards(replace(batch, form=Form.SERVICE))
