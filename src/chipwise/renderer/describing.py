"""From a workload, its plan and the catalog to what is deployed: the one place where a plan is read for rendering."""

from __future__ import annotations

import math
from dataclasses import replace

from chipwise.catalog.catalog import Catalog
from chipwise.planner.defaults import SEQUENCE_TOKENS, training_batch
from chipwise.planner.explain.words import sentence
from chipwise.planner.values.choice import Choice
from chipwise.planner.values.plan import Plan
from chipwise.planner.values.split import Copies, GenerationSplit, Split, width
from chipwise.renderer.answer_times import TOKEN_S, answer_s, longest_context, longest_s, token_assumed, usual_answer_s
from chipwise.renderer.boot_images import boot_images
from chipwise.renderer.cluster.storage import storage_rates
from chipwise.renderer.deployment import (
    FORMAT_BYTES,
    Deployment,
    FineTuning,
    Form,
    Model,
    Node,
    Predicted,
    Scaling,
    Stand,
)
from chipwise.renderer.encoders import poolers
from chipwise.renderer.hardware import node_of
from chipwise.renderer.hub_ids import closest_id, named_id
from chipwise.renderer.images import images_for, unverified_for
from chipwise.renderer.joining import joining
from chipwise.renderer.launch.caching import cache_notes, with_cache
from chipwise.renderer.launch.handing import arrives_at
from chipwise.renderer.launch.weights import patient, weight_notes
from chipwise.renderer.layout import copies_each
from chipwise.renderer.paying import (
    around_the_clock_usd,
    best_of,
    followed,
    followed_usd,
    layers_of,
    load_of,
    notes_of,
    purchase_of,
    reservation_of,
    service_of,
    services_of,
)
from chipwise.renderer.platforms import platforms
from chipwise.renderer.quoting import dns_name, file_name, is_hub_id
from chipwise.renderer.slicing import slice_notes, sliced
from chipwise.renderer.software import QUANTIZED, SoftwareRequest, software_of
from chipwise.renderer.standing_in import similar_nodes, with_its_image
from chipwise.renderer.volumes import answers_bytes, volumes_of
from chipwise.renderer.windows import open_hours, paused, window
from chipwise.text import duration
from chipwise.units import GIB, HOUR
from chipwise.workload.common import Common
from chipwise.workload.kinds import Finetune, Interactive, Learning, Serve, Stream, Transcode
from chipwise.workload.model.decoder import DecoderShape
from chipwise.workload.model.registry import Model as Known
from chipwise.workload.model.shape import EncoderDecoderShape
from chipwise.workload.model.spelled import without_owner
from chipwise.workload.program import Devices
from chipwise.workload.volume import sized


def describe(
    work: Common,
    plan: Plan,
    catalog: Catalog,
    model: Known | None,
    choice: Choice | None = None,
    name: str | None = None,
    teacher: Learning | None = None,
) -> Deployment:
    """`choice`: another of the plan's than its winner; `name`: another than the workload's; `teacher`: the stage before it that
    trained what it serves."""
    chosen = choice or plan.winner
    assert chosen is not None
    work = sized(work, model.shape if model is not None else None)
    name, form = name or dns_name(work.name), _form(work, chosen)
    node = node_of(catalog, chosen, work)
    split = _split(work, chosen, node)
    per_replica = _chips_each(split, node, form)
    loaded = _model(work, chosen, model, teacher)
    node = sliced(node, work.program, form, per_replica, loaded, catalog)
    load = load_of(plan, chosen) if form in (Form.SERVICE, Form.SESSIONS) else None
    scaling = followed(
        _scaling(work, plan, chosen, form, node.chips),
        load,
        copies_each(form, node, split, per_replica),
        _stated(work),
    )
    longest = longest_s(work, chosen) if form is Form.SERVICE else None
    request = SoftwareRequest(
        work=work,
        form=form,
        node=node,
        model=loaded,
        machines=chosen.machines,
        split=split,
        slots=scaling.slots if scaling else None,
        longest_s=longest,
        name=name,
        precision=_format(chosen),
        taught_by=teacher.name if teacher is not None else "",
        adapters=getattr(teacher, "method", "full") != "full",
    )
    starts, stops, zone = window(work)
    hours = open_hours(work) if form is Form.JOB else None  # only a cron expression begins a job anew
    starts, stops = ("", "") if hours else (starts, stops)
    goals, budget = work.goals, work.goals.budget
    software = patient(software_of(request, catalog.rows("images")), loaded, request.node.kind)
    answered = answers_bytes(work, model, loaded) if software.command[:2] == ("vllm", "run-batch") else None
    volumes = tuple(volumes_of(work, chosen, loaded, form, chosen.machines * node.hosts, answered, bool(starts)))
    deployment = Deployment(
        name=name,
        title=work.name,
        kind=plan.kind,
        form=form,
        node=node,
        machines=chosen.machines,
        purchase=purchase_of(load, chosen),
        software=software,
        predicted=replace(_predicted(plan, chosen), followed_usd=followed_usd(load, chosen), longest_s=longest),
        labels=labels_of(work),
        description=work.description or "",
        split=split,
        chips_each=per_replica,
        model=loaded,
        volumes=volumes,
        scaling=scaling,
        checkpoint_s=_checkpoint(work, chosen),
        deadline_s=goals.deadline,
        budget_usd=budget.usd if budget else None,
        starts=starts,
        stops=stops,
        time_zone=zone,
        idle_s=getattr(work, "idle_after", None),
        people=work.people if isinstance(work, Interactive) else None,
        trigger=work.program.trigger if work.program else None,
        alternatives=with_its_image(similar_nodes(catalog, plan, chosen, work), node, software.purpose, catalog.rows("images")),
        regions=_regions(plan, chosen),
        notes=(
            *_notes(work, chosen, node),
            *slice_notes(node, work.program),
            *weight_notes(software, loaded, form),
            *cache_notes(software.engine, loaded, form, volumes),
            *_taught(teacher),
            *paused(hours),
            *notes_of(plan, chosen),
        ),
        platforms=platforms(catalog.rows("runtimes"), node)
        | joining(catalog.rows("runtimes"), node)
        | boot_images(catalog.rows("runtimes"), node)
        | {"Images": images_for(catalog.rows("images"), node)}
        | {"Storage": storage_rates(catalog.rows("storage"), node)}
        | {"Unverified": unverified_for(catalog.rows("images"), node)},
        runs=int(getattr(work, "runs", 1) or 1),
        goals=goals_of(work),
        traffic=dict(work.traffic),
        stands=_stands(plan, chosen),
        hours=hours,
        layers=layers_of(load),
        services=services_of(plan),
        service=service_of(plan),
        best=best_of(plan, chosen),
        streams=(work.streams or 0) if isinstance(work, Transcode) else 0,
        finetuning=_finetuning(work, model),
        reservation=reservation_of(work),
        answers_bytes=answered,
        claims=work.program is not None and work.program.devices is Devices.CLAIMS,
    )
    return with_cache(deployment)


def _taught(teacher: Learning | None) -> tuple[str, ...]:
    if teacher is None:
        return ()
    return (f"It runs what stage {teacher.name} hands over, which it looks for in {arrives_at(teacher.name)}.",)


def _form(work: Common, choice: Choice) -> Form:
    if choice.family.startswith("edge") or getattr(work, "devices", None):
        return Form.DEVICES
    if isinstance(work, Interactive):
        return Form.SESSIONS
    lasting = isinstance(work, Serve | Stream) or (isinstance(work, Transcode) and work.streams is not None)
    return Form.SERVICE if lasting else Form.JOB


def _split(work: Common, choice: Choice, node: Node) -> Split:
    """An archive of video falls into parts that never speak to each other: one for each chip, or each machine without any."""
    if isinstance(work, Transcode) and work.streams is None:
        return Copies(choice.machines * max(node.chips, 1))
    return choice.split


def _chips_each(split: Split, node: Node, form: Form) -> int:
    if not node.chips:
        return 0
    if form is Form.SERVICE or isinstance(split, GenerationSplit | Copies):
        return min(width(split), node.chips)
    return 1 if form is Form.SESSIONS else node.chips


def _scaling(work: Common, plan: Plan, choice: Choice, form: Form, chips: int) -> Scaling | None:
    if form is not Form.SERVICE:
        return None
    usual = choice.replicas or choice.machines
    if isinstance(work, Transcode) and work.streams is not None:  # a group of streams for each chip
        usual = max(min(choice.machines * max(chips, 1), work.streams), 1)
    replicas = work.replicas if isinstance(work, Serve) else None
    load = plan.load
    mean = load.replicas_mean if load is not None and choice == plan.winner else usual
    minimum = max((replicas.min if replicas is not None and replicas.min else min(mean, usual)), 1)
    if replicas is None:  # streams of data do not come and go as requests do
        return Scaling(usual, usual, usual, choice.planned / usual if choice.planned else None)
    maximum = replicas.max if replicas.max else max(2 * usual, usual + 1)
    rate = choice.planned / usual if choice.planned else None
    answer, slots = answer_s(work, choice), None
    usual_answer = usual_answer_s(work, choice)
    if rate is not None and answer is not None:
        capacity = (choice.rate or 0.0) / usual
        slots = 1 << max(math.ceil(math.log2(max(capacity * answer, 1.0) * 1.5)), 4)  # Little's law with room for bursts
    return Scaling(
        minimum=min(minimum, maximum),
        usual=max(usual, minimum),
        maximum=max(maximum, usual),
        per_replica=rate,
        slots=slots,
        concurrency=rate * usual_answer if rate is not None and usual_answer is not None else None,
        token_s=TOKEN_S if token_assumed(work, choice) else None,
    )


def _stated(work: Common) -> tuple[int | None, int | None]:
    asked = work.replicas if isinstance(work, Serve) else None
    return (asked.min, asked.max) if asked is not None else (None, None)


def _model(work: Common, choice: Choice, known: Known | None, teacher: Learning | None = None) -> Model | None:
    if known is None:
        return None
    written = getattr(work, "model", None)
    hub_id = named_id(written, known) if isinstance(written, str) and not known.local else None
    hub = hub_id or closest_id(written if isinstance(written, str) else known.name, known)
    if known.local and isinstance(written, str) and is_hub_id(written) and not written.endswith(".json"):
        hub = None  # a directory here may look like one
    generates = isinstance(known.shape, DecoderShape | EncoderDecoderShape) and bool(getattr(work, "output_tokens", None))
    bytes_each = FORMAT_BYTES.get(choice.precision, 2.0)
    return Model(
        name=known.name,
        hub=hub,
        precision=choice.precision,
        context=longest_context(work, known) if generates else None,
        weight_bytes=known.shape.parameters * bytes_each,
        generates=generates,
        fetched_bytes=known.shape.parameters * 2.0,
        weights=_weights(known, choice, teacher),
        pooled=() if generates or isinstance(work, Learning) else poolers(known.shape),
        alias=without_owner(hub_id) if hub_id is not None else "",
    )


def _weights(known: Known, choice: Choice, teacher: Learning | None) -> str:
    """Where the hub's own will not do: what another stage trained, or what must be quantised before it is loaded."""
    if teacher is not None and getattr(teacher, "method", "full") == "full":
        return arrives_at(teacher.name)
    return f"/models/{file_name(known.name)}-{choice.precision}" if choice.precision in QUANTIZED else ""


def _checkpoint(work: Common, choice: Choice) -> float | None:
    return getattr(work, "checkpoint_every", None) or choice.checkpoint_s or None


def _finetuning(work: Common, known: Known | None) -> FineTuning | None:
    if not isinstance(work, Finetune) or known is None:
        return None
    length = int(work.sequence_length or min(SEQUENCE_TOKENS, known.context or SEQUENCE_TOKENS))
    return FineTuning(
        method=str(work.method),
        rank=work.rank or 0,
        targets=work.targets,
        epochs=work.epochs,
        sequence_length=length,
        batch_samples=int(work.batch_samples or (work.batch_tokens or 0) // length)
        or training_batch(work, known.shape.parameters, length),
        optimizer=str(work.optimizer),
    )


def labels_of(work: Common) -> dict[str, str]:
    return {key: str(value) for key, value in work.labels.model_dump(exclude_none=True).items()}


def _regions(plan: Plan, chosen: Choice) -> tuple[str, ...]:
    if plan.placement is None or chosen != plan.winner:
        return (chosen.region,)
    return tuple(dict.fromkeys((chosen.region, *(stand.region for stand in plan.placement.stands))))


def goals_of(work: Common) -> dict[str, float]:
    """As predicted latencies are named: the goal, then the percentile."""
    limits: dict[str, float] = {}
    for name in ("ttft", "tpot", "latency"):
        goal = getattr(work.goals, name)
        limits |= {f"{name} p{percentile:g}": seconds for percentile, seconds in (goal.limits if goal is not None else ())}
    return limits


def _stands(plan: Plan, chosen: Choice) -> tuple[Stand, ...]:
    if plan.placement is None or chosen != plan.winner or len(plan.placement.stands) < 2:
        return ()
    return tuple(
        Stand(provider=stand.provider, region=stand.region, machine=stand.machine, machines=stand.machines, share=stand.share)
        for stand in plan.placement.stands
    )


def _format(choice: Choice) -> str:
    """The number format; of notebooks, that column holds the slice."""
    return "" if "g." in choice.precision else choice.precision


def _predicted(plan: Plan, choice: Choice) -> Predicted:
    always = choice.over_time  # files that do not follow the load run the machines for its peak
    cost, kg = (choice.cost, choice.kg) if always is None else (always.always_cost, always.always_kg)
    compute = sum(line.usd for line in cost.lines if line.name == "compute")
    hours = choice.seconds / HOUR
    per_hour = compute / hours if hours else 0.0
    return Predicted(
        seconds=choice.seconds,
        low_s=choice.low_s,
        high_s=choice.high_s,
        usd=cost.usd,
        per=plan.per,
        usd_per_hour=per_hour,
        kg=kg,
        watts=choice.watts,
        latency=dict(choice.latency),
        sentence=sentence(plan) if choice == plan.winner else "",
        price_of=choice.price_of,
        always_usd=around_the_clock_usd(choice.purchase, cost.usd, per_hour, choice.seconds) if plan.per == "month" else None,
    )


def _notes(work: Common, choice: Choice, node: Node) -> tuple[str, ...]:
    notes = []
    if choice.precision in QUANTIZED and getattr(work, "output_tokens", None):
        notes.append(
            f"Weights in {choice.precision} are not made while they load: quantise them once, into the path of the command."
        )
    if isinstance(work, Serve) and work.idle_after is not None:
        notes.append(
            f"On demand: no copy after {duration(work.idle_after)} without a request. --to keda with --to gateway does so;"
            " other files keep one. The plan's price is of machines that stay."
        )
    if choice.quantum is not None:
        place = "this machine, simulated" if not choice.quantum.managed else choice.quantum.title
        notes.append(f"The circuits run on {place}; these files are for the machine between them.")
    if node.memory_bytes is not None and node.memory_bytes < GIB:
        notes.append("The machine has less than 1 GiB of memory.")
    return tuple(notes)
