"""Deployments written down by hand: golden files of targets must not change when a price does."""

from __future__ import annotations

from dataclasses import replace

from chipwise.catalog.load import load
from chipwise.planner.values.split import DevicesPerPlace, GenerationSplit, Runs, Seats, TrainingSplit
from chipwise.renderer.boot_images import boot_images
from chipwise.renderer.deployment import Deployment, Form, HandOff, Model, Node, Predicted, Scaling, Software, Volume
from chipwise.renderer.joining import joining
from chipwise.renderer.platforms import platforms
from chipwise.renderer.software import images_for
from chipwise.units import GB, GIB, HOUR

_LABELS = {"owner": "mara.lindqvist", "team": "language", "project": "legal-assistant", "cost_center": "4711"}
_P5 = Node(
    "aws",
    "eu-north-1",
    "p5.48xlarge",
    "H100-SXM",
    "gpu",
    "NVIDIA",
    8,
    capability=9.0,
    vcpus=192,
    memory_bytes=2048 * GIB,
    disk_bytes=30_400 * GB,
    fabric="efa",
    interfaces=32,
)
_G6E = Node(
    "aws",
    "eu-central-1",
    "g6e.xlarge",
    "L40S",
    "gpu",
    "NVIDIA",
    1,
    capability=8.9,
    vcpus=4,
    memory_bytes=32 * GIB,
    disk_bytes=250 * GB,
)
_TRN1 = Node(
    "aws",
    "us-east-1",
    "trn1.32xlarge",
    "Trainium1",
    "neuron",
    "AWS",
    16,
    cores=2,
    vcpus=128,
    memory_bytes=512 * GIB,
    disk_bytes=7_600 * GB,
    fabric="efa",
    interfaces=8,
)
_TRAINER = Software(
    image="llama-8b-legal:1",
    base="pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime",
    built=True,
    purpose="pytorch",
    version="2.9.0",
    command=("python", "train.py", "--config", "legal.yaml"),
    is_custom=True,
    env=(("FI_PROVIDER", "efa"), ("HF_HOME", "/models/hub"), ("NCCL_DEBUG", "WARN")),
    secrets=(("HF_TOKEN", "hub-token", "token"),),
    requirements="requirements.txt",
    framework="pytorch",
    cuda="12.8",
    driver="525",
)
_MODEL = Model("llama-3.1-8b", "meta-llama/Llama-3.1-8B", "bf16", 8192, 16.1e9, False)

TRAIN = Deployment(
    name="llama-8b-legal",
    title="llama-8b-legal",
    kind="train",
    form=Form.JOB,
    node=_P5,
    machines=2,
    purchase="spot",
    software=_TRAINER,
    predicted=Predicted(40 * HOUR, 35 * HOUR, 52 * HOUR, 2481.5, "job", 62.0, 210.0, 17_600.0, price_of="2026-08-22"),
    labels=_LABELS,
    description="Llama 3.1 8B continued on 20 billion tokens",
    chips_each=8,
    model=_MODEL,
    split=TrainingSplit(tp=1, pp=1, cp=1, ep=1, dp=16, shard=3, recompute=1, micro_batch=2),
    volumes=(
        Volume("data", "/data", 80 * GB, True, "s3://legal-text/tokens/", "the data set, as the plan keeps it: object-store"),
        Volume("models", "/models", 35 * GB, True, None, "weights are fetched once, not at every start"),
        Volume("checkpoints", "/checkpoints", 340 * GB, True, None, "room for three checkpoints"),
    ),
    checkpoint_s=1800.0,
    deadline_s=5 * 24 * HOUR,
    budget_usd=5000.0,
    alternatives=(
        replace(_P5, machine="p5e.48xlarge", chip="H200-SXM"),
        replace(_P5, machine="p5en.48xlarge", chip="H200-SXM", interfaces=16),
    ),
    regions=("eu-north-1",),
)

SERVE = Deployment(
    name="chat-api",
    title="chat-api",
    kind="serve",
    form=Form.SERVICE,
    node=_G6E,
    machines=2,
    purchase="on-demand",
    software=Software(
        image="vllm/vllm-openai:v0.32.0",
        base="vllm/vllm-openai:v0.32.0",
        built=False,
        purpose="vllm",
        version="0.32.0",
        command=(
            "vllm",
            "serve",
            "meta-llama/Llama-3.1-8B",
            "--host",
            "0.0.0.0",
            "--port",
            "8000",
            "--quantization",
            "fp8",
            "--max-model-len",
            "8192",
            "--max-num-seqs",
            "128",
        ),
        is_custom=False,
        env=(("HF_HOME", "/models/hub"),),
        secrets=(("HF_TOKEN", "hub-token", "token"),),
        port=8000,
        health="/health",
        engine="vllm",
        cuda="13.0",
        driver="580",
    ),
    predicted=Predicted(
        391 * HOUR,
        391 * HOUR,
        391 * HOUR,
        1534.0,
        "month",
        3.92,
        55.0,
        840.0,
        {"ttft p95": 0.5, "tpot p95": 0.035, "latency p99": 8.9},
        always_usd=2862.88,
    ),
    labels={"owner": "priya.raman", "team": "assistants", "project": "shop-chat"},
    split=GenerationSplit(tp=1, pp=1, replicas=2),
    chips_each=1,
    model=replace(_MODEL, precision="fp8", weight_bytes=8e9, generates=True),
    volumes=(Volume("models", "/models", 18 * GB, True, None, "weights are fetched once, not at every start"),),
    scaling=Scaling(2, 2, 12, 6.9, 128),
    starts="0 7 * * 1,2,3,4,5,6",
    stops="0 22 * * 1,2,3,4,5,6",
    time_zone="Europe/Berlin",
    budget_usd=6000.0,
    regions=("eu-central-1",),
)

NEURON = replace(
    TRAIN,
    name="neuron-pretrain",
    title="neuron-pretrain",
    node=_TRN1,
    machines=4,
    purchase="on-demand",
    alternatives=(),
    software=replace(
        _TRAINER,
        image="neuron-pretrain:1",
        cuda="",
        driver="",
        requirements=None,
        secrets=(),
        base="public.ecr.aws/neuron/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.32.0-ubuntu24.04",
        env=(("FI_EFA_FORK_SAFE", "1"), ("FI_EFA_USE_DEVICE_RDMA", "1"), ("FI_PROVIDER", "efa")),
    ),
    chips_each=16,
    regions=("us-east-1",),
)

TPU = replace(
    TRAIN,
    name="tpu-pretrain",
    title="tpu-pretrain",
    machines=1,
    alternatives=(),
    regions=("europe-west4",),
    chips_each=32,
    node=Node("gcp", "europe-west4", "tpu-v6e-32", "TPU-v6e", "tpu", "Google", 32, vcpus=1440, memory_bytes=5760 * GIB),
    software=replace(
        _TRAINER,
        image="tpu-pretrain:1",
        base="python:3.12-slim-bookworm",
        purpose="jax",
        version="0.10.2",
        framework="jax",
        env=(),
        secrets=(),
        cuda="",
        driver="",
        requirements=None,
    ),
)

AZURE = replace(
    SERVE,
    name="embed-api",
    title="embed-api",
    purchase="spot",
    regions=("westeurope",),
    starts="",
    stops="",
    time_zone="UTC",
    node=Node(
        "azure",
        "westeurope",
        "Standard_NC24ads_A100_v4",
        "A100-80-PCIe",
        "gpu",
        "NVIDIA",
        1,
        capability=8.0,
        vcpus=24,
        memory_bytes=220 * GIB,
    ),
)

BATCH = Deployment(
    name="archive-summaries",
    title="archive-summaries",
    kind="batch",
    form=Form.JOB,
    machines=4,
    purchase="spot",
    node=Node(
        "gcp", "us-central1", "g2-standard-48", "L4", "gpu", "NVIDIA", 4, capability=8.9, vcpus=48, memory_bytes=192 * GIB
    ),
    software=Software(
        image="vllm/vllm-openai:v0.32.0",
        base="vllm/vllm-openai:v0.32.0",
        built=False,
        purpose="vllm",
        version="0.32.0",
        command=(
            "vllm",
            "run-batch",
            "--input-file",
            "/data/requests.jsonl",
            "--output-file",
            "/data/answers.jsonl",
            "--model",
            "Qwen/Qwen2.5-7B",
            "--quantization",
            "fp8",
        ),
        is_custom=False,
        env=(("HF_HOME", "/models/hub"),),
        engine="vllm",
        cuda="13.0",
        driver="580",
    ),
    predicted=Predicted(9 * 24 * HOUR, 7 * 24 * HOUR, 12 * 24 * HOUR, 3120.0, "job", 14.4, 480.0, 2600.0),
    labels={"team": "search"},
    split=GenerationSplit(tp=1, pp=1, replicas=16),
    chips_each=1,
    model=Model("qwen2.5-7b", "Qwen/Qwen2.5-7B", "fp8", 32768, 7.6e9, True),
    volumes=(
        Volume("data", "/data", 310 * GB, True, "gs://archive/documents/", "the data set, as the plan keeps it: object-store"),
        Volume("models", "/models", 17 * GB, True, None, "weights are fetched once, not at every start"),
        Volume("checkpoints", "/checkpoints", 50 * GB, True, None, "what is done must outlive a lost machine"),
    ),
    deadline_s=14 * 24 * HOUR,
    budget_usd=6000.0,
    regions=("us-central1",),
)

HPC = Deployment(
    name="wing-cfd",
    title="wing-cfd",
    kind="hpc",
    form=Form.JOB,
    machines=4,
    purchase="on-demand",
    node=Node(
        "aws",
        "us-east-2",
        "hpc7a.96xlarge",
        "EPYC-Genoa",
        "cpu",
        "AMD",
        0,
        vcpus=192,
        memory_bytes=768 * GIB,
        fabric="efa",
        interfaces=2,
    ),
    software=Software(
        image="wing-cfd:1",
        base="python:3.12-slim-bookworm",
        built=True,
        purpose="plain",
        version="3.12",
        command=("./solver", "--case", "wing"),
        is_custom=True,
        framework="mpi",
    ),
    predicted=Predicted(60 * HOUR, 40 * HOUR, 90 * HOUR, 1728.0, "job", 28.8, 95.0, 2800.0),
    labels={"team": "aerodynamics"},
    split=Runs(at_once=1, chips_each=4),
    deadline_s=72 * HOUR,
    regions=("us-east-2",),
)

NOTEBOOKS = Deployment(
    name="research-notebooks",
    title="research-notebooks",
    kind="interactive",
    form=Form.SESSIONS,
    machines=2,
    purchase="on-demand",
    node=Node(
        "aws",
        "eu-central-1",
        "p4d.24xlarge",
        "A100-40",
        "gpu",
        "NVIDIA",
        8,
        capability=8.0,
        profile="3g.20gb",
        sharing="slices",
        users_per_chip=2,
        vcpus=96,
        memory_bytes=1152 * GIB,
        fabric="efa",
        interfaces=4,
    ),
    software=Software(
        image="quay.io/jupyter/pytorch-notebook:cuda12-2025-10-06",
        base="quay.io/jupyter/pytorch-notebook:cuda12-2025-10-06",
        built=False,
        purpose="jupyter",
        version="2025-10-06",
        command=("start-notebook.py",),
        is_custom=False,
        cuda="12",
        driver="525",
    ),
    predicted=Predicted(240 * HOUR, 240 * HOUR, 240 * HOUR, 2100.0, "month", 8.75, 40.0, 3000.0),
    labels={"team": "research"},
    split=Seats(per_chip=2),
    chips_each=1,
    idle_s=2700.0,
    people=12,
    volumes=(Volume("data", "/data", 2000 * GB, True, None, "the data set, as the plan keeps it: nfs"),),
    starts="0 8 * * 1,2,3,4,5",
    stops="0 19 * * 1,2,3,4,5",
    time_zone="Europe/Berlin",
    regions=("eu-central-1",),
)

DEVICE = Deployment(
    name="belt-inspect",
    title="belt-inspect",
    kind="serve",
    form=Form.DEVICES,
    machines=40,
    purchase="owned",
    node=Node("edge", "on site", "Jetson Orin Nano", "Orin-Nano", "edge", "NVIDIA", 1, arch="arm64", memory_bytes=8 * GIB),
    software=Software(
        image="belt-inspect:1",
        base="python:3.12-slim-bookworm",
        built=True,
        purpose="plain",
        version="3.12",
        command=("python", "inspect.py"),
        is_custom=True,
        port=8000,
        health="/health",
    ),
    predicted=Predicted(730 * HOUR, 730 * HOUR, 730 * HOUR, 220.0, "month", 0.3, 12.0, 280.0, {"latency p99": 0.02}),
    labels={"team": "quality"},
    split=DevicesPerPlace(devices=1),
    chips_each=1,
    regions=("on site",),
)

PIPELINE = replace(
    SERVE,
    name="product-search",
    title="product-search",
    kind="pipeline",
    form=Form.PIPELINE,
    scaling=None,
    volumes=(),
    stages=(
        replace(TRAIN, name="product-search-train", title="train", namespace="product-search"),
        replace(SERVE, name="product-search-serve", title="serve", namespace="product-search"),
    ),
    hand_offs=(HandOff("train", "serve", 16.1e9, "safetensors"),),
    predicted=replace(SERVE.predicted, per="pipeline", usd=4015.5, latency={}),
)

SMALL = Deployment(
    name="tag-api",
    title="tag-api",
    kind="serve",
    form=Form.SERVICE,
    machines=1,
    purchase="on-demand",
    node=Node("aws", "eu-central-1", "c7i.large", "Xeon-Sapphire-Rapids", "cpu", "Intel", 0, vcpus=2, memory_bytes=4 * GIB),
    software=Software(
        image="tag-api:1",
        base="python:3.12-slim-bookworm",
        built=True,
        purpose="pytorch",
        version="2.9.0",
        command=("python", "serve.py"),
        is_custom=True,
        port=8000,
        health="/health",
        framework="pytorch",
    ),
    predicted=Predicted(730 * HOUR, 730 * HOUR, 730 * HOUR, 62.0, "month", 0.085, 4.0, 60.0, {"latency p95": 0.4}),
    labels={"team": "shop"},
    model=Model("minilm-l6", "sentence-transformers/all-MiniLM-L6-v2", "fp32", None, 0.09e9, False),
    volumes=(Volume("models", "/models", 10 * GB, True, None, "weights are fetched once, not at every start"),),
    scaling=Scaling(1, 1, 4, 20.0, 16),
    trigger="s3://uploads/texts/",
    regions=("eu-central-1",),
)


def _complete(what: Deployment) -> Deployment:
    """With what platforms offer for its node, as the catalog has it: names and limits, no prices."""
    catalog = load(prices=False)
    runtimes, node = catalog.rows("runtimes"), what.node
    found = platforms(runtimes, node) | joining(runtimes, node) | boot_images(runtimes, node)
    found |= {"Images": images_for(catalog.rows("images"), node)}
    goals = {goal: 2 * seconds for goal, seconds in what.predicted.latency.items()}
    return replace(what, platforms=found, goals=goals, stages=tuple(map(_complete, what.stages)))


_NAMED = {
    "train": TRAIN,
    "serve": SERVE,
    "neuron": NEURON,
    "tpu": TPU,
    "azure": AZURE,
    "batch": BATCH,
    "hpc": HPC,
    "notebooks": NOTEBOOKS,
    "device": DEVICE,
    "pipeline": PIPELINE,
    "small": SMALL,
}
CASES = {name: _complete(what) for name, what in _NAMED.items()}
