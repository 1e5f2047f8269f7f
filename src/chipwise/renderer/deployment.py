"""What is to be deployed, as one value: everything that targets write down, and nothing that they must look up or reckon.

`describing` makes it from a workload, a plan and the catalog. A number that nobody knows is None, and targets leave it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from chipwise.planner.values.split import UNSPLIT, Split
from chipwise.renderer.open_hours import OpenHours
from chipwise.renderer.quoting import dns_name, file_name

TPU_HOST = 4  # chips of one host of a slice
JOINED = ("Trainium2", "Trainium3")  # two of their cores work as one unless somebody says otherwise
BUSY = 0.7  # of what is planned for one replica: above it one more is started, before goals are missed


class Form(StrEnum):
    """How something lives: until it is done, until somebody stops it, while a person sits at it, or on a device of its own."""

    JOB = "job"
    SERVICE = "service"
    SESSIONS = "sessions"
    DEVICES = "devices"
    PIPELINE = "pipeline"


# of one parameter; two in the formats that are not listed
FORMAT_BYTES = {"fp32": 4.0, "tf32": 4.0, "fp8": 1.0, "int8": 1.0, "fp4": 0.5, "int4": 0.5, "nf4": 0.5}


@dataclass(frozen=True, slots=True)
class Node:
    """One machine of the plan."""

    provider: str
    region: str
    machine: str
    chip: str  # as the catalog names it
    kind: str  # gpu, neuron, tpu, fpga, gaudi, npu, edge, cpu
    vendor: str
    chips: int  # 0 on machines without an accelerator
    capability: float | None = None  # compute capability of NVIDIA chips
    cores: int | None = None  # NeuronCores of one chip
    profile: str = ""  # slice of a chip that each takes, such as 1g.10gb
    sharing: str = ""  # "", slices or turns
    users_per_chip: int = 1  # users of one chip, where it is shared
    vcpus: int | None = None
    memory_bytes: float | None = None
    disk_bytes: float | None = None  # local and fast, lost with the machine
    arch: str = "amd64"
    fabric: str = ""  # efa, infiniband, ...; empty: an ordinary network
    interfaces: int = 0  # of the fabric that a pod may take: EFA devices
    first_card: int = 0  # the first network card that carries the fabric
    chip_memory_bytes: float | None = None
    share: float = 1.0  # of a chip that the machine has, where that is a part of one: a quarter of an L4

    @property
    def accelerated(self) -> bool:
        return self.chips > 0

    @property
    def ways(self) -> int:
        """What engines and process groups count for one chip: its cores on Neuron, of which two may work as one; else one."""
        if self.kind != "neuron":
            return 1
        cores = self.cores or (8 if self.chip in JOINED else 2)
        return cores // 2 if self.chip in JOINED else cores

    @property
    def parts(self) -> int:
        """What one copy may take of it: its chips, or slices of them."""
        return self.chips * self.users_per_chip if self.profile else self.chips

    @property
    def hosts(self) -> int:
        """Machines that a system sees where the plan sees one: a TPU slice is made of hosts."""
        return max(self.chips // TPU_HOST, 1) if self.kind == "tpu" else 1


@dataclass(frozen=True, slots=True)
class Software:
    """What runs in the container."""

    image: str  # what the machine pulls
    base: str  # what it is built from, where it is built
    built: bool  # True: from the rendered Dockerfile
    purpose: str  # vllm, tgi, pytorch, triton, ...: the row of the image table
    version: str  # of it
    command: tuple[str, ...]
    is_custom: bool  # the command is the user's own; False: the usual one of the kind, to be looked at
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[tuple[str, str, str], ...] = ()  # setting, name of the stored secret, its key
    port: int | None = None
    health: str | None = None
    requirements: str | None = None
    framework: str = "none"
    engine: str = ""
    cuda: str = ""  # of the image; empty: it has none
    driver: str = ""  # the oldest that runs it
    pull_secret: str = ""  # by which a cluster pulls the image; empty: anybody may, or the machine's own rights do
    unverified: str = ""  # how its tag is known, where nobody saw it published; empty: it was seen, or is the user's own


@dataclass(frozen=True, slots=True)
class Volume:
    """A directory that outlives a container."""

    name: str  # data, models, checkpoints
    path: str
    size_bytes: float
    shared: bool = False  # written or read by several machines at once
    url: str | None = None  # where its contents lie already
    reason: str = ""
    on_machine: bool = False  # on the disk of the machine, empty for each new pod; nothing is claimed for it
    storage_class: str = ""  # in a cluster, where the workload names one


@dataclass(frozen=True, slots=True)
class Scaling:
    """How many copies of a service."""

    minimum: int
    usual: int
    maximum: int
    per_replica: float | None = None  # requests per second that one answers within the goals
    slots: int | None = None  # requests that one works on at a time
    reason: str = ""  # of `minimum`, where it is not the plan's mean load
    concurrency: float | None = None  # requests that one has in work at its planned rate: rate times answer time
    token_s: float | None = None  # of an answer, where `concurrency` is by an assumed one: the plan predicts none

    @property
    def busy(self) -> int | None:
        """Requests in work on one replica above which one more is started; None: nobody knows how long an answer takes."""
        return max(int(BUSY * self.concurrency), 1) if self.concurrency is not None else None

    @property
    def busy_per_minute(self) -> float | None:
        """The same as requests that arrive for one replica in a minute."""
        return BUSY * self.per_replica * 60 if self.per_replica is not None else None

    @property
    def busy_reason(self) -> str:
        rate = f"{self.per_replica:.3g} requests a second" if self.per_replica else "the planned rate"
        assumed = f", at an assumed {self.token_s:g} s for a token: no goal asks for it" if self.token_s is not None else ""
        return f"{BUSY:.0%} of the plan's for one ({rate} times their answer time{assumed})"

    @property
    def minimum_reason(self) -> str:
        why = self.reason or "The plan's mean load"
        return f"{why}; its peak takes {self.usual}."


@dataclass(frozen=True, slots=True)
class Predicted:
    """What the plan says of it. Targets print it; nothing else depends on it."""

    seconds: float
    low_s: float
    high_s: float
    usd: float
    per: str  # job or month
    usd_per_hour: float  # of all machines
    kg: float
    watts: float
    latency: Mapping[str, float] = field(default_factory=dict)
    sentence: str = ""  # the plan's own answer
    price_of: str = ""
    followed_usd: float | None = None  # a month of machines that follow the load, each layer bought its own way
    always_usd: float | None = None  # a month of the same machines around the clock; None: the plan is of no month
    longest_s: float | None = None  # of the longest answer, from the request to its end; None: nothing says how long it takes


@dataclass(frozen=True, slots=True)
class Model:
    """What a service or job computes with."""

    name: str
    hub: str | None  # its id on the hub
    precision: str
    context: int | None
    weight_bytes: float | None
    generates: bool
    fetched_bytes: float | None = None  # as the hub has them, which need not be the planned precision
    weights: str = ""  # where they come from: an id of the hub or a path; empty: by `hub`, or a path by name
    pooled: tuple[str, ...] = ()  # engines that pool what it computes, where it writes no text
    alias: str = ""  # of the hub's, the one that the workload names: others of its shape share `name`; empty: none of them

    @property
    def served(self) -> str:
        """What clients ask for, wherever it is served: it stays when the weights move."""
        return dns_name(self.alias or self.name, 60)

    @property
    def source(self) -> str:
        return self.weights or self.hub or f"/models/{file_name(self.name)}"


@dataclass(frozen=True, slots=True)
class FineTuning:
    """What a model is adapted by, as the workload says it."""

    method: str  # lora, qlora, full
    rank: int
    targets: str
    epochs: float
    sequence_length: int
    batch_samples: int
    optimizer: str


@dataclass(frozen=True, slots=True)
class HandOff:
    source: str
    target: str
    size_bytes: float | None
    format: str = ""


@dataclass(frozen=True, slots=True)
class Stand:
    """One of several regions in which a service stands."""

    provider: str
    region: str
    machine: str
    machines: int
    share: float  # of the traffic, while all regions are up


@dataclass(frozen=True, slots=True)
class Reservation:
    """Capacity of AWS that is held already, for one machine type in one zone."""

    id: str
    block: bool  # for a stated time, paid at once

    @property
    def title(self) -> str:
        return f"the {'capacity block' if self.block else 'capacity reservation'} {self.id}"


@dataclass(frozen=True, slots=True)
class MachineLayer:
    """Machines that carry a part of a load over time and are bought one way."""

    purchase: str  # spot, on-demand, owned, or the promise that is made for them
    machines: int
    location: str = ""  # owned ones, which stand apart from what is rented; empty: the plan's node

    @property
    def committed(self) -> bool:
        """Paid for every hour, whether they work or not: a term is promised for them."""
        return self.purchase not in ("spot", "on-demand", "owned")

    @property
    def title(self) -> str:
        return f"{self.machines} {self.purchase}{f' ({self.location})' if self.location else ''}"


@dataclass(frozen=True, slots=True)
class Service:
    """What is paid per use, as the plan reckoned it for a month of this traffic."""

    kind: str  # serverless, per token
    provider: str
    name: str
    hardware: str
    usd: float | None  # None: not reckoned
    cold_share: float | None = None  # of the requests that wait for a start
    cold_start_s: tuple[float, float, float] | None = None  # low, middle, high
    refused: tuple[str, ...] = ()  # limits and goals of the workload that it does not keep
    chips: tuple[str, ...] = ()  # of which one comes
    warm: int = 0  # instances that the price keeps running
    at_once: int | None = None  # requests that the price reckons with on one instance
    instances: float | None = None  # up on average

    @property
    def title(self) -> str:
        name = self.name if self.name.startswith(self.provider) else f"{self.provider} {self.name}"
        return f"{name} ({self.hardware})" if self.hardware else name


@dataclass(frozen=True, slots=True)
class Deployment:
    name: str  # made for DNS, clouds and labels
    title: str  # as the user wrote it
    kind: str
    form: Form
    node: Node
    machines: int
    purchase: str  # on-demand, spot, reserved-1y, ...
    software: Software
    predicted: Predicted
    labels: Mapping[str, str] = field(default_factory=dict)  # owner, team, project and others, as the user wrote them
    description: str = ""
    namespace: str = ""  # in a cluster; empty: its name
    split: Split = UNSPLIT
    chips_each: int = 0  # of one replica or of a job's process group on one machine
    model: Model | None = None
    volumes: tuple[Volume, ...] = ()
    scaling: Scaling | None = None
    checkpoint_s: float | None = None
    deadline_s: float | None = None
    budget_usd: float | None = None
    starts: str = ""  # cron expression: when a job is started, or a service is scaled up; empty: by hand, or always on
    stops: str = ""  # when a service is scaled down again
    time_zone: str = "UTC"  # of both
    idle_s: float | None = None
    people: int | None = None
    trigger: str | None = None
    alternatives: tuple[Node, ...] = ()  # next best machines of the same place and chip kind: what a fleet may take instead
    regions: tuple[str, ...] = ()  # all in which it stands, where there are several
    stages: tuple[Deployment, ...] = ()
    hand_offs: tuple[HandOff, ...] = ()
    notes: tuple[str, ...] = ()
    platforms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # what each offers for the node: see `platforms`
    runs: int = 1  # of a simulation, one after the other or beside each other (`runs at once` of the split)
    goals: Mapping[str, float] = field(default_factory=dict)  # seconds that are wanted: "latency p99", "ttft p95"
    traffic: Mapping[str, float] = field(default_factory=dict)  # share of the requests by where they come from
    stands: tuple[Stand, ...] = ()  # where a service stands, in several regions; empty: in its node's alone
    hours: OpenHours | None = None  # of a job that pauses outside them; None: it may always run
    layers: tuple[
        MachineLayer, ...
    ] = ()  # from the base of the load up, where it is carried by machines bought in several ways
    services: tuple[Service, ...] = ()  # paid per use, that the plan reckoned for the same traffic; those it may use first
    service: Service | None = None  # of them, what is cheaper than the plan's machines
    streams: int = 0  # live ones, of video: the command is that of one
    host_service: Service | None = None  # what runs it instead of the node, in files of a service; see `sold`
    written_usd: float | None = None  # a month of files that do not keep the plan's hours; None: they do, or there are none
    finetuning: FineTuning | None = None
    reservation: Reservation | None = None  # machines start in it and nowhere else
    answers_bytes: float | None = None  # of a batch of embeddings, as JSON; None: of other work
    claims: bool = False  # in a cluster chips are handed out by claims, not by a device plugin
    best: str = ""  # the plan's first machines and their price, where they are not the node's

    @property
    def spot(self) -> bool:
        return self.purchase == "spot"

    @property
    def rented(self) -> tuple[MachineLayer, ...]:
        """Layers that these files buy; owned machines are there already."""
        return tuple(one for one in self.layers if one.purchase != "owned")

    @property
    def losable(self) -> bool:
        """Some of its machines may be taken away."""
        return self.spot if not self.layers else any(one.purchase == "spot" for one in self.layers)

    @property
    def replicas(self) -> int:
        return self.scaling.usual if self.scaling is not None else self.machines

    @property
    def per_machine(self) -> int:
        """Replicas that one machine holds."""
        room = self.node.parts if self.form is Form.SERVICE else self.node.chips
        return max(room // self.chips_each, 1) if self.chips_each else 1

    def volume(self, name: str) -> Volume | None:
        return next((one for one in self.volumes if one.name == name), None)
