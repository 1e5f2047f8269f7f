"""Scaling policies by name or from a user's file, and what each would have cost on loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.errors import BadInput, UnknownName
from chipwise.scale.load_traces import INPUT_WEIGHT, NotALoad, read_load
from chipwise.scale.own_scaling import own_scaling
from chipwise.scale.policy_files import names_of_file, policy_of
from chipwise.scale.questions.spot import content_of, named_policies, trace_files
from chipwise.scale.serving import ScaledService
from chipwise.scale.simulator.compared import ReplicaTimeline, ServeAnswer, timeline
from chipwise.scale.simulator.synthetic_load import SyntheticLoad, synthetic_load
from chipwise.spelling import nearest
from chipwise.units import parse_count

if TYPE_CHECKING:
    from chipwise.catalog.feed import Report
    from chipwise.scale.load import RequestLoad
    from chipwise.scale.serving import BeginScaling
    from chipwise.scale.simulator.scaling import MakeQueue
    from chipwise.scale.simulator.tokens import TokenSpeed

BARE_WORK, CLAIRVOYANT = "bare-work", "clairvoyant"  # bounds, which may be asked for like policies
ENDINGS = (".csv", ".jsonl", ".tar")
MEAN_REPLICAS = 20.0
LEVELS = ("pooled", "servers", "tokens")  # how replicas answer: as one fast server, one request after another, in batches


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeQuestion:
    policies: tuple[str, ...]
    trace: Path | None = None
    synthetic: str | None = None
    replica_rate: float | None = None  # requests per second; None: as the trace says, else the mean load keeps 20 busy
    concurrency: float = 16.0
    cold_start_s: float = 180.0
    wait_s: float = 10.0
    share: float = 0.99
    input_weight: float = INPUT_WEIGHT
    gaps: bool = False
    level: str = LEVELS[0]
    step_s: tuple[float, float] = (0.0066, 0.0412)  # of the level tokens: of one sequence, and of all slots
    slots: int = 256
    prompt_tokens_per_s: float = 19_000.0
    kv_tokens: int = 400_000
    seed: int = 0


def scaling_policy(name: str) -> BeginScaling:
    """By its name, with a setting after a colon where it takes one (hpa:80), or from a Python file."""
    if name.endswith(".py"):
        path = Path(name).expanduser()
        names = names_of_file(path, "decide(signals)", "begin(service)")
        return own_scaling(path.name, names.get("begin"), names.get("decide"))
    plain, colon, setting = name.partition(":")
    module = policy_of("serve", plain)
    begin: BeginScaling = module.begin
    if not colon:
        return begin
    try:
        target = float(setting)
    except ValueError:
        target = -1.0
    if not hasattr(module, "SETTING") or not (isfinite(target) and target > 0.0):
        raise BadInput(f"{name} is not a policy with a setting.", remedy="Write for example hpa:80, for a target of 80%.")
    return partial(module.begin, target=target)


def simulate_serve(question: ServeQuestion, report: Report) -> tuple[list[ServeAnswer], list[ReplicaTimeline]]:
    """One answer per policy, in the order asked for; and what replicas did, by load and policy."""
    from chipwise.scale.simulator.clairvoyant import bare_work_hours, clairvoyant
    from chipwise.scale.simulator.scaling import play

    make_queue = _queue_of(question)
    begins = {name: scaling_policy(name) for name in named_policies(question.policies) if name not in (BARE_WORK, CLAIRVOYANT)}
    report(0, None, "loads")
    loads = loads_of(question)
    services = [service_of(question, load) for load in loads]
    bounds = []
    for load, service in zip(loads, services, strict=True):
        report(0, None, f"bound of {load.name}")
        bounds.append(play(load, service, clairvoyant(load), make_queue))
    requests, bound = sum(load.requests for load in loads), sum(outcome.replica_hours for outcome in bounds)
    answers, timelines = [], []
    for name in question.policies:
        if name == BARE_WORK:
            hours = sum(bare_work_hours(load, service) for load, service in zip(loads, services, strict=True))
            answers.append(_answer(name, requests, None, hours, bound))
            continue
        punctual = hours = 0.0
        for place, (load, service) in enumerate(zip(loads, services, strict=True)):
            outcome = bounds[place]
            if name != CLAIRVOYANT:
                outcome = play(
                    load, service, begins[name], make_queue, each_tick=_share_of(report, name, place, loads, service)
                )
            punctual, hours = punctual + outcome.punctual, hours + outcome.replica_hours
            timelines.append(timeline(load, service, name, outcome))
        answers.append(_answer(name, requests, punctual / requests, hours, bound))
    return answers, timelines


def _answer(name: str, requests: float, share: float | None, hours: float, bound: float) -> ServeAnswer:
    return ServeAnswer(
        policy=name, requests=round(requests), within_goal=share, replica_hours=hours, ratio_to_bound=hours / bound
    )


def _share_of(
    report: Report, name: str, place: int, loads: Sequence[RequestLoad], service: ScaledService
) -> Callable[[int], None]:
    before, total = sum(load.duration_s for load in loads[:place]), sum(load.duration_s for load in loads)

    def each_tick(tick: int) -> None:
        if tick % 100 == 0:
            report(round(before + tick * service.tick_s), round(total), name)

    return each_tick


def _speed_of(question: ServeQuestion) -> TokenSpeed:
    import numpy as np

    from chipwise.scale.simulator.tokens import TokenSpeed

    steps_s = np.interp(np.arange(question.slots + 1), [1, question.slots], question.step_s)
    return TokenSpeed(steps_s=steps_s, prompt_token_s=1.0 / question.prompt_tokens_per_s, kv_tokens=question.kv_tokens)


def _queue_of(question: ServeQuestion) -> MakeQueue:
    from chipwise.scale.simulator.pooled import PooledQueue
    from chipwise.scale.simulator.servers import ServerQueue
    from chipwise.scale.simulator.token_queue import TokenQueue

    if question.level == "tokens":
        return partial(TokenQueue, speed=_speed_of(question))
    return ServerQueue if question.level == "servers" else PooledQueue


def service_of(question: ServeQuestion, load: RequestLoad) -> ScaledService:
    rate, concurrency = question.replica_rate, question.concurrency
    if question.level == "tokens":
        from chipwise.scale.simulator.token_queue import token_load

        tokens, speed = token_load(load), _speed_of(question)
        rate, concurrency = speed.capacity_per_s(float(tokens.prompts.mean()), float(tokens.answers.mean())), float(speed.slots)
    return ScaledService(
        replica_per_s=rate or (1.0 / load.mean_s if load.mean_s else load.mean_per_s / MEAN_REPLICAS),
        concurrency=concurrency,
        cold_start_s=question.cold_start_s,
        goal_wait_s=question.wait_s,
        goal_share=question.share,
    )


def loads_of(question: ServeQuestion) -> list[RequestLoad]:
    if (question.trace is None) == (question.synthetic is None):
        raise BadInput("Give either --trace or --synthetic.")
    if question.trace is None:
        return [synthetic_load(_shape(question.synthetic or ""), question.seed)]
    return _loads(trace_files(question.trace.expanduser(), ENDINGS), question)


def _loads(files: list[Path], question: ServeQuestion) -> list[RequestLoad]:
    """Of a folder: files of something else are passed over as long as there are loads."""
    loads, problems = [], []
    for file in files:
        try:
            loads.append(_load(file, question))
        except NotALoad as problem:
            problems.append(problem)
    if not loads:
        raise problems[0]
    return loads


def _load(path: Path, question: ServeQuestion) -> RequestLoad:
    return read_load(path.name, content_of(path), seed=question.seed, input_weight=question.input_weight, gaps=question.gaps)


def _shape(text: str) -> SyntheticLoad:
    """`hours=24,rate=50,...`, each with a default."""
    settings: dict[str, float] = {}
    known = [field.name for field in fields(SyntheticLoad)]
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if key.strip() not in known or not equals:
            raise UnknownName(
                "setting of --synthetic", key.strip(), nearest(key.strip(), known), remedy="Write hours=24,rate=50."
            )
        settings[key.strip()] = parse_count(value)
    return SyntheticLoad(**settings)
