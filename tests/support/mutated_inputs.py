"""Inputs of commands, spoilt by chance: numbers that nothing can be, texts cut, doubled and mixed, options of any size.

`mutated(seed)` is the same input for the same seed. Files are written where FOLDER stands.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from chipwise.observe.recording import written
from chipwise.serving.engine import ReplicaRequest
from chipwise.serving.service import ReplicaRecord, ServiceDoor, ServiceRecord, ServiceVersion
from chipwise.serving.service import written as service_document
from command import ROOT
from played_recordings import H200, played

FOLDER = "FOLDER"
CONFIG, DATA = "config", "data"  # what a command takes as its own directories, if they are there
QUEUE = "patience: 1h\npolicy: backfill\nteams:\n  vision: {gpus: 8, cpus: 64, weight: 2}\nothers: {gpus: 2, weight: 1.5}\n"
WRITTEN = frozenset({"keys.yaml", "service.json"})  # by the commands that are for it
NUMBERS = (
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1e308",
    "-1e308",
    "1e-320",
    str(2**63),
    "9" * 400,
    "0x10",
    "\u0661",
    "",
    "1e99999",
)
WORDS = (
    "",
    " ",
    "\0",
    "-",
    "--",
    "\u202e",
    "é" * 40,
    "a" * 5000,
    "../../etc/passwd",
    "%s%n{}",
    "null",
    "~",
    "[]",
    "{}",
    "=",
    ",,,",
    ":",
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Input:
    """A command that works, and its files by name."""

    words: tuple[str, ...]
    files: Mapping[str, str]

    def __str__(self) -> str:
        texts = {name: text if len(text) < 200 else f"{text[:120]}...{text[-60:]}" for name, text in self.files.items()}
        return f"{self.words} {texts}"[:1500]

    def changed(self, folder: Path) -> list[str]:
        """Files that a command wrote into though they are not its own, and what it left behind half written."""
        texts = {folder / name: text for name, text in self.files.items() if Path(name).name not in WRITTEN}
        own = [str(path) for path, text in texts.items() if path.read_bytes() != text.encode("utf-8", "surrogatepass")]
        return own + [str(path) for path in folder.rglob("*.tmp")]

    def write(self, folder: Path) -> tuple[str, ...]:
        for name in (CONFIG, DATA):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return tuple(word.replace(FOLDER, str(folder)) for word in self.words)


def _recording() -> str:
    lines = written(played({"nvidia:0": H200["pcie"]}, program={}, usd_per_hour=3.5)).splitlines(keepends=True)
    return "".join(lines[:40])


def _service() -> str:
    version = ServiceVersion(1, "command", ReplicaRequest("m", "m", command=("true",)), 1e9)
    door = ServiceDoor(port=8080)
    return json.dumps(service_document(ServiceRecord("tiny", door, (version,), (ReplicaRecord("r1", "tiny-r1", 1, 8081),))))


def _throughputs() -> str:
    rates = {str((f"kind {gpus}", gpus)): {"null": 2.0} for gpus in (1, 2, 4, 8)}
    return json.dumps(dict.fromkeys(("v100", "p100", "k80"), rates))


def _nodes() -> str:
    status = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"nvidia.com/gpu": "8"}}
    return json.dumps({"items": [{"metadata": {"name": "n1", "labels": {"a": "b"}}, "status": status}]})


def inputs() -> tuple[Input, ...]:
    """One of each command that came last, small enough to be answered within a fraction of a second."""
    recording, spot = _recording(), json.dumps({"metadata": {"gap_seconds": 600}, "data": [1, 0, 1, 1] * 20})
    queue = "timestamp,num_gpus,duration,team\n" + "".join(f"{place * 10},{1 + place % 4},60,a\n" for place in range(20))
    load = "timestamp,input_tokens,output_tokens\n" + "".join(f"{place},100,20\n" for place in range(60))
    log = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n[1.5] mce: CPU0: Machine Check: 0 Bank 4\n"
    keys = "keys:\n  - name: mia\n    sha256: " + "a1" * 32 + "\n    team: x\n    priority: 3\n    requests_per_s: 60\n"
    manifest = (ROOT / "tests/golden/render/kubernetes/train/workload.yaml").read_text()
    sia = "name,time,application,num_replicas\na,0,cifar10,1\nb,60,bert,4\n"
    pods = "name,num_gpu,gpu_milli,creation_time,scheduled_time,deletion_time,qos\na,1,1000,0,5,60,LS\nb,2,1000,9,9,99,BE\n"
    tokens = "".join(
        json.dumps({"timestamp": place * 1000, "input_length": 9, "output_length": 5}) + "\n" for place in range(60)
    )
    queue_words = ("simulate", "queue", "--policy", "fifo", "--trace")
    terraform = (ROOT / "tests/golden/render/terraform/train/storage.tf").read_text()
    small = ("--job-hours", "3", "--deadline-hours", "5", "--restart-hours", "0.2", "--windows", "2")
    spot_words = ("simulate", "spot", "--policy", "greedy")
    return (
        Input((*spot_words, "--trace", f"{FOLDER}/t.json", *small), {"t.json": spot}),
        Input((*spot_words, "--trace", f"{FOLDER}/t.csv", "--tick", "600s", *small), {"t.csv": "1\n0\n" * 60}),
        Input((*spot_words, "--synthetic", "series=3,losses=1,returns=1,spread=2", "--seed", "3", *small), {}),
        Input(
            ("simulate", "queue", "--policy", "fifo,backfill", "--trace", f"{FOLDER}/q.csv", "--gpus", "8", "--restart", "5s"),
            {"q.csv": queue},
        ),
        Input(("simulate", "queue", "--synthetic", "jobs=20,rate=60,teams=4", "--failures-every", "6h", "--repair", "1h"), {}),
        Input(
            ("simulate", "serve", "--policy", "hpa:80", "--trace", f"{FOLDER}/l.csv", "--replica-rate", "1", "--wait", "10s"),
            {"l.csv": load},
        ),
        Input(("simulate", "serve", "--policy", "hpa", "--synthetic", "hours=1,rate=2,swing=0.5", "--cold-start", "60s"), {}),
        Input((*queue_words, f"{FOLDER}/workload-1.csv"), {"workload-1.csv": sia}),
        Input((*queue_words, f"{FOLDER}/pods.csv", "--gpus", "8"), {"pods.csv": pods}),
        Input((*queue_words, FOLDER), {"jobs.csv": queue, "node_list.csv": "sn,gpu,model\na,8,V100\nb,8,V100\n"}),
        Input((*queue_words, f"{FOLDER}/simulation_throughputs.json"), {"simulation_throughputs.json": _throughputs()}),
        Input(("simulate", "serve", "--policy", "hpa", "--trace", f"{FOLDER}/l.jsonl"), {"l.jsonl": tokens}),
        Input(("watch", "--replay", f"{FOLDER}/r.jsonl"), {"r.jsonl": recording}),
        Input(("doctor", f"{FOLDER}/r.jsonl"), {"r.jsonl": recording}),
        Input(("health", "--from", f"{FOLDER}/r.jsonl"), {"r.jsonl": recording}),
        Input(("health", "--from", f"{FOLDER}/kernel.log"), {"kernel.log": log}),
        Input(("health", "--from", f"{FOLDER}/nodes.json"), {"nodes.json": _nodes()}),
        Input(("audit", f"{FOLDER}/w.yaml"), {"w.yaml": manifest}),
        Input(("audit", FOLDER), {"storage.tf": terraform, "Dockerfile": "FROM python:3.11\nRUN pip install torch\nUSER 1\n"}),
        Input(
            ("serve", "--key-file", f"{FOLDER}/keys.yaml", "--certificate", "none", "--private-key", "none", "--", "true"),
            {"keys.yaml": keys},
        ),
        Input(("serve", "key", "leo", "--key-file", f"{FOLDER}/keys.yaml"), {"keys.yaml": keys}),
        Input(("serve", "status"), {f"{DATA}/run/services/tiny/service.json": _service()}),
        Input(("serve", "stop", "tiny"), {f"{DATA}/run/services/tiny/service.json": _service()}),
        Input(
            ("load", "http://127.0.0.1:9", "--trace", f"{FOLDER}/a.csv", "--speed", "50"),
            {"a.csv": "arrival,input_tokens,output_tokens\n10,3,2\n12,4,2\n11,5,2\n"},
        ),
        Input(("load", "http://127.0.0.1:9", "--rate", "20", "--for", "100ms", "--input", "5", "--burstiness", "2"), {}),
        Input(("accuracy", "train", "--since", "30d"), {}),
        Input(("characterize", "--for", "1s", "--threads", "1,2", "--steps", "10", "--", "true"), {}),
        Input(("calibrate", f"{FOLDER}/m.csv"), {"m.csv": "model,chip,chips,throughput\nllama-3.1-8b,h100,1,100\n"}),
        Input(("calibrate", "--from-runs"), {f"{CONFIG}/settings.yaml": "calibrate_from_runs: true\n"}),
        Input(("top", "--once"), {f"{CONFIG}/queue.yaml": QUEUE}),
    )


def mutated(seed: int) -> Input:
    chance = random.Random(seed)
    known = inputs()
    base = known[seed % len(known)]
    words, files = list(base.words), dict(base.files)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        settings = [place for place, word in enumerate(words) if place > 1 and FOLDER not in word and word != "--"]
        if files and (not settings or chance.random() < 0.75):
            name = chance.choice(sorted(files))
            files[name] = chance.choice(_OF_TEXT)(files[name], chance)
        elif settings:
            place = chance.choice(settings)
            words[place] = _spoilt_word(words[place], chance)
    return Input(tuple(words), files)


def _spoilt_word(word: str, chance: random.Random) -> str:
    if (match := _NUMBER.search(word)) and chance.random() < 0.8:
        return word[: match.start()] + chance.choice(NUMBERS) + word[match.end() :]
    return chance.choice(WORDS).replace("\0", "?")  # no process can be given that one


def _number(text: str, chance: random.Random) -> str:
    matches = list(_NUMBER.finditer(text))
    if not matches:
        return text
    match = chance.choice(matches)
    return text[: match.start()] + chance.choice(NUMBERS) + text[match.end() :]


def _piece(text: str, chance: random.Random) -> tuple[int, int]:
    begin = chance.randrange(len(text) + 1)
    return begin, min(len(text), begin + chance.choice((1, 3, 20, 400)))


def _cut(text: str, chance: random.Random) -> str:
    begin, end = _piece(text, chance)
    return text[:begin] + text[end:]


def _doubled(text: str, chance: random.Random) -> str:
    begin, end = _piece(text, chance)
    return text[:end] + text[begin:end] * chance.choice((1, 50)) + text[end:]


def _inserted(text: str, chance: random.Random) -> str:
    begin, _ = _piece(text, chance)
    return text[:begin] + chance.choice((*WORDS, *NUMBERS, "\ud800", "\n", '"', "'", "}", "[" * 900, "\r", "\t")) + text[begin:]


def _flipped(text: str, chance: random.Random) -> str:
    begin, end = _piece(text, chance)
    return text[:begin] + "".join(chr(ord(letter) ^ 1 << chance.randrange(7)) for letter in text[begin:end]) + text[end:]


def _ended(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _shuffled(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    chance.shuffle(lines)
    return "".join(lines)


_OF_TEXT: tuple[Callable[[str, random.Random], str], ...] = (
    _number,
    _number,
    _number,
    _cut,
    _doubled,
    _inserted,
    _flipped,
    _ended,
    _shuffled,
)
