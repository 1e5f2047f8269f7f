"""What a rendered file would do when it is run, in every target that can render the workload: one law for each test.

The deployments are written by hand (`fixed_deployments`), changed to what a law is about, so that none of it takes a plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import yaml

from chipwise.renderer.deployment import Deployment, HandOff
from chipwise.renderer.file import CannotRender
from chipwise.renderer.launch.archive import archive_words
from chipwise.renderer.launch.handing import arrives_at, written_by
from chipwise.renderer.launch.health import start_seconds
from chipwise.renderer.launch.nodes import NAMES as PLACE_NAMES
from chipwise.renderer.launch.starting import parts, processes
from chipwise.renderer.launch.timing import drain_seconds
from chipwise.renderer.named_targets import files, target, target_names
from chipwise.units import GIB
from fixed_deployments import CASES

SERVE, WIDE, TRAIN, NEURON, TPU = (CASES[name] for name in ("serve", "wide", "train", "neuron", "tpu"))
LONGEST_S = 2048 * 0.114
_CONTINUED = re.compile(r"\\\n\s*")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _slow() -> Deployment:
    """A service that starts for almost two hours, and whose longest answer takes four minutes."""
    command = SERVE.software.command
    words = (*command[: command.index("--shutdown-timeout")], "--shutdown-timeout", str(drain_seconds(LONGEST_S)))
    assert SERVE.model is not None
    return replace(
        SERVE,
        software=replace(SERVE.software, command=words),
        model=replace(SERVE.model, fetched_bytes=800e9),
        predicted=replace(SERVE.predicted, longest_s=LONGEST_S),
    )


SLOW = _slow()
AMD = replace(
    SERVE,
    node=replace(
        SERVE.node,
        provider="azure",
        region="westeurope",
        machine="Standard_ND96isr_MI300X_v5",
        chip="MI300X",
        vendor="AMD",
        chips=8,
        capability=None,
        vcpus=96,
        memory_bytes=1850 * GIB,
    ),
)
OWN = replace(TRAIN, purchase="on-demand", software=replace(TRAIN.software, command=("./run.sh", "--go"), framework="none"))
UNSURE = replace(SERVE, software=replace(SERVE.software, unverified="inferred from the tags before it"))
SUMMARIES = replace(CASES["batch"], name="news-summarise", title="Summarise all", namespace="news", purchase="on-demand")
LEARN = replace(TRAIN, name="news-learn", title="Learn", namespace="news", node=SUMMARIES.node, alternatives=())
STAGES = replace(
    CASES["pipeline"], name="news", stages=(SUMMARIES, LEARN), hand_offs=(HandOff("Summarise all", "Learn", 2e9, "jsonl"),)
)
ARCHIVE = replace(
    CASES["batch"],
    kind="transcode",
    model=None,
    software=replace(
        CASES["batch"].software,
        image="jrottenberg/ffmpeg:7.1-nvidia2204",
        base="jrottenberg/ffmpeg:7.1-nvidia2204",
        purpose="ffmpeg",
        engine="",
        command=archive_words(("ffmpeg", "-i", "/data/in.ts", "/data/out-0.ts")),
    ),
)


@cache
def rendered(name: str, what: str) -> dict[str, str]:
    """Texts by path; none where the target refuses it."""
    try:
        return {file.path: file.text for file in files(name, target(name), _WORK[what])}
    except CannotRender:
        return {}


_WORK = {
    "serve": SERVE,
    "slow": SLOW,
    "wide": WIDE,
    "train": TRAIN,
    "neuron": NEURON,
    "tpu": TPU,
    "amd": AMD,
    "own": OWN,
    "unsure": UNSURE,
    "stages": STAGES,
    "archive": ARCHIVE,
}


def text_of(name: str, what: str) -> str:
    return _CONTINUED.sub(" ", "\n".join(rendered(name, what).values()))


def documents(name: str, what: str) -> Iterator[Any]:
    for path, text in rendered(name, what).items():
        if path.endswith((".yaml", ".yml")):
            yield from yaml.load_all(text, _LOADER)
        elif path.endswith(".json"):
            yield json.loads(text)


def fields(value: Any, names: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """Every field of one of these names, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in names:
                yield key, inner
            yield from fields(inner, names)
    elif isinstance(value, list):
        for inner in value:
            yield from fields(inner, names)


def read(name: str, what: str, *names: str) -> list[tuple[str, Any]]:
    return [pair for document in documents(name, what) for pair in fields(document, frozenset(names))]


def seconds(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    number, unit = re.fullmatch(r"([\d.]+)([smh]?)", str(value)).groups()  # type: ignore[union-attr]
    return float(number) * {"": 1, "s": 1, "m": 60, "h": 3600}[unit]


def renders(what: str, least: int) -> list[str]:
    """Targets that render it: a law over none of them would hold for nothing."""
    names = [name for name in target_names() if rendered(name, what)]
    assert len(names) >= least, names
    return names


def fails(what: str, least: int, law: Any) -> dict[str, Any]:
    return {name: wrong for name in renders(what, least) if (wrong := law(name))}


def test_an_image_whose_tag_is_inferred_carries_its_check() -> None:
    image = UNSURE.software.image

    def silent(name: str) -> bool:
        text = text_of(name, "unsure")
        return image in text and "verify" not in text and name not in ("diagram", "mlflow")

    assert fails("unsure", 12, silent) == {}


def test_no_machine_gets_a_service_that_is_wider_than_it() -> None:
    def alone(name: str) -> str | None:
        text = text_of(name, "wide")
        limits = [inner for _, inner in read(name, "wide", "resources") if isinstance(inner, dict)]
        devices = [int(count) for _, count in fields(limits, frozenset({"nvidia.com/gpu"}))]
        if any(count > WIDE.node.chips for count in devices):
            return f"{devices} devices in a pod"
        if "pipeline-parallel-size" not in text and "pipeline_parallel_size" not in text:
            return None
        joined = "--nnodes" in text or "RayService" in text or "takes several machines" in text
        return None if joined or name == "mlflow" else "nothing joins its machines"

    assert fails("wide", 8, alone) == {}


def test_parts_of_an_archive_write_no_file_that_another_writes() -> None:
    """Each takes its own items, and gives a result its name when it is whole."""

    def clashing(name: str) -> list[str]:
        text = text_of(name, "archive")
        if "ffmpeg" not in text or name in ("dockerfile", "mlflow", "diagram", "github-actions"):
            return []
        told = re.search(rf"(?:PARTS|WORKERS)\W+(?:\w+\W+){{0,3}}{parts(ARCHIVE)}\b", text)
        return [*([] if told else ["PARTS"]), *([] if re.search(r"mv \W*\$now", text) else ["mv"])]

    assert fails("archive", 6, clashing) == {}


def test_volumes_and_buckets_of_a_cluster_can_be_had() -> None:
    """Claims are of classes that are written or named as required, and pods that read a bucket have an account of their own."""

    def missing(name: str) -> list[str]:
        written = {one["metadata"]["name"] for one in documents(name, "train") if _kind(one) == "StorageClass"}
        text = text_of(name, "train")
        claims = [one for one in documents(name, "train") if _kind(one) == "PersistentVolumeClaim"]
        classes = {one["spec"].get("storageClassName") for one in claims} - written - {None}
        unknown = [one for one in classes if len(re.findall(rf"\b{re.escape(one)}\b", text)) < 2]
        accounts = {value for _, value in read(name, "train", "serviceAccountName")}
        reads = any(
            "s3://legal-text" in text and _kind(one) in ("Job", "JobSet", "TrainJob") for one in documents(name, "train")
        )
        return [*unknown, *(["no service account"] if reads and not accounts else [])]

    assert fails("train", 10, missing) == {}


def _kind(document: Any) -> str:
    return str(document.get("kind")) if isinstance(document, dict) else ""


def test_nothing_gives_up_before_a_slow_start_is_over() -> None:
    needed = start_seconds(SLOW)
    assert needed > 6000
    waits = ("progressDeadlineSeconds", "start_period", "STARTUP_SECONDS", "initial_delay_seconds", "timeout-minutes")
    given_up = re.compile(r"(?:--timeout=|--start-period=|health_check_grace_period\s*=\s*)(\d+)s?")

    def early(name: str) -> list[str]:
        found = [(key, seconds(value) * (60 if key == "timeout-minutes" else 1)) for key, value in read(name, "slow", *waits)]
        found = [pair for pair in found if pair != ("timeout-minutes", 600.0)]  # of the job that builds and waits for nothing
        for _, probe in read(name, "slow", "startupProbe"):
            found.append(("startupProbe", probe["periodSeconds"] * probe["failureThreshold"]))
        for wait in given_up.findall(text_of(name, "slow")):
            if int(wait) > 60:  # of a probe's single try
                found.append(("wait", float(wait)))
        return [f"{key} of {value:.0f} s" for key, value in found if value < needed]

    assert fails("slow", 15, early) == {}


def test_whatever_ends_a_service_waits_for_its_longest_answer() -> None:
    graces = (
        "terminationGracePeriodSeconds",
        "stop_grace_period",
        "stopTimeout",
        "graceful_shutdown_timeout_s",
        "terminationGracePeriod",
        "shutdown-timeout",
    )
    told = re.compile(r"--(?:stop-timeout|shutdown-timeout|exit-timeout-secs)[\s\"',=]+(\d+)")

    def hasty(name: str) -> list[str]:
        found = [(key, seconds(value)) for key, value in read(name, "slow", *graces)]
        for text in [value for _, value in read(name, "slow", "serveConfigV2")]:
            found += [(key, seconds(value)) for key, value in fields(yaml.safe_load(text), frozenset(graces))]
        found += [("option", float(value)) for value in told.findall(text_of(name, "slow"))]
        return [f"{key} of {value:.0f} s" for key, value in found if value < LONGEST_S]

    assert fails("slow", 15, hasty) == {}
    ending = {"kubernetes", "kueue", "kserve", "argo-rollouts", "compose", "ecs", "ec2", "terraform", "ray", "triton", "vllm"}
    silent = [
        name
        for name in sorted(ending)
        if not (read(name, "slow", *graces) or told.search(text_of(name, "slow")) or "graceful" in text_of(name, "slow"))
    ]
    assert silent == []


def test_services_are_scaled_by_planned_concurrency_and_never_by_processors() -> None:
    scaling = SERVE.scaling
    assert scaling is not None
    assert scaling.slots is not None
    targets = ("target_ongoing_requests", "threshold", "averageValue", "scaleTarget")

    def wrong(name: str) -> list[str]:
        numbers = [(key, str(value)) for key, value in read(name, "serve", *targets)]
        too_many = [f"{key} of {value}" for key, value in numbers if value.isdigit() and int(value) >= (scaling.slots or 0)]
        watched = [value for _, value in read(name, "serve", "metric", "metricName") if "CPU" in str(value)]
        processors = [
            inner for _, inner in read(name, "serve", "resource") if isinstance(inner, dict) and inner.get("name") == "cpu"
        ]
        return [*too_many, *map(str, watched), *map(str, processors)]

    assert fails("serve", 15, wrong) == {}


def test_nodes_of_a_service_do_not_expire_and_its_pods_are_not_counted() -> None:
    def wrong(name: str) -> list[str]:
        expiry = [str(value) for _, value in read(name, "serve", "expireAfter") if value != "Never"]
        queries = [
            value
            for _, value in read(name, "serve", "query")
            if re.search(r"kube_pod_status|count\((?:up|kube_pod)", str(value))
        ]
        return [*expiry, *map(str, queries)]

    assert fails("serve", 15, wrong) == {}


def test_a_stage_hands_over_what_its_command_writes() -> None:
    def lost(name: str) -> list[str]:
        text = text_of(name, "stages")
        places = [written_by(SUMMARIES), arrives_at("Summarise all")]
        return [str(place) for place in places if "hand-offs" in text and str(place) not in text]

    assert fails("stages", 4, lost) == {}
    assert {name for name in renders("stages", 4) if "hand-offs" in text_of(name, "stages")} >= {"argo", "slurm"}


def test_neuron_training_has_a_rank_for_each_core() -> None:
    each = processes(NEURON)
    assert each == NEURON.node.chips * (NEURON.node.cores or 0)
    counted = re.compile(r"--nproc[-_]per[-_]node[=\s\"',]+(\d+)|numProcPerNode: (\d+)|slotsPerWorker: (\d+)")

    def wrong(name: str) -> list[str]:
        text = text_of(name, "neuron")
        counts = [next(filter(None, match)) for match in counted.findall(text)]
        if "train.py" in text and not counts and name not in ("mlflow", "dockerfile", "diagram", "github-actions"):
            return ["no ranks"]
        return [count for count in counts if int(count) != each]

    assert fails("neuron", 12, wrong) == {}


def test_chips_of_amd_and_google_are_reached_with_the_rights_they_need() -> None:
    def closed(name: str) -> bool:
        text = text_of(name, "amd")
        runs = "vllm serve" in text.replace('", "', " ").replace("\n", " ") or "amd.com/gpu" in text or "--device" in text
        rights = "supplementalGroups" in text or "group_add" in text or "group-add" in text
        return bool(runs) and not rights and name not in ("vllm", "mlflow", "dockerfile", "monitoring", "diagram")

    assert fails("amd", 10, closed) == {}

    def shut(name: str) -> bool:
        text = text_of(name, "tpu")
        return "google.com/tpu" in text and "privileged" not in text and name not in ("eksctl", "monitoring")

    assert fails("tpu", 8, shut) == {}


def test_a_command_on_several_machines_finds_one_set_of_names_and_a_warning() -> None:
    def wrong(name: str) -> list[str]:
        text = text_of(name, "own")
        if "run.sh" not in text or name in ("dockerfile", "mlflow"):
            return []
        missing = [one for one in PLACE_NAMES if not re.search(rf"\b{one}\b", text)]
        warned = "names none of" in re.sub(r"\s*\n[#\s]*", " ", text)
        return missing if warned else [*missing, "no warning"]

    assert fails("own", 10, wrong) == {}


@pytest.mark.parametrize(
    ("flag", "value"), [("max.model.len", "8192"), ("max.num.seqs", "128"), ("quantization", "fp8"), ("served.model.name", "")]
)
def test_engine_flags_are_the_same_wherever_it_starts(flag: str, value: str) -> None:
    assert SERVE.model is not None
    wanted = value or SERVE.model.served
    pattern = re.compile(rf"{flag}[\"',=:\s-]+\[?[\"']?([\w.-]+)")

    def other(name: str) -> list[str]:
        return [seen for seen in pattern.findall(text_of(name, "serve")) if seen != wanted]

    assert fails("serve", 15, other) == {}


def test_containers_of_a_service_run_as_one_user() -> None:
    """Ray's image has its own user, who owns its folders."""
    user = re.compile(r"(?:runAsUser: |\"?user\"?: \"?|--user[ =']+|^USER )(\d+)", re.MULTILINE)
    own = {"ray": {"1000"}}
    outside = {"diagram", "eksctl", "external-secrets", "github-actions", "karpenter", "keda", "mlflow", "monitoring"}
    scripts = {"skypilot", "tgi", "triton", "vllm"}  # run in a shell, by whoever starts it

    def other(name: str) -> list[str]:
        users = set(user.findall(text_of(name, "serve"))) - {"0"}  # who builds, or gives folders away
        if name in outside | scripts:
            return []
        return [] if users == own.get(name, {"10001"}) else [str(users)]

    assert fails("serve", 15, other) == {}
