"""The verbs that compare policies on traces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from chipwise.public.calling import verbs
from chipwise.public.opened import Opened
from chipwise.public.records import Table

if TYPE_CHECKING:
    from chipwise.api import ServeQuestion


def _quiet(done: int, total: int | None, what: str) -> None:
    """The library prints nothing."""


@verbs
class SimulateVerbs(Opened):
    """Rules that spend money, and what each would have cost."""

    __slots__ = ()

    def policies(self) -> Table:
        """The policies that there are: what each decides, and what it needs to know.

        >>> cw.policies()[0].name
        """
        from chipwise.api import policies as listed

        return Table([asdict(entry) for entry in listed()])

    def simulate_spot(
        self,
        *,
        policy: str | Sequence[str] = ("greedy", "slack", "uniform-progress", "learned-survival"),
        trace: str | Path | None = None,
        synthetic: str | None = None,
        tick: str | float | None = None,
        available_is: int | None = None,
        windows: int = 1,
        job_hours: float | None = None,
        deadline_hours: float | Sequence[float] | None = None,
        restart_hours: float | Sequence[float] = (0.02, 0.05, 0.1),
        spot_price: float = 0.9731,
        on_demand_price: float = 3.06,
        seed: int = 0,
    ) -> Table:
        """Simulate a job with a deadline on spot machines: the mean cost of each policy, and that of perfect foresight.

        `trace` is a file or a folder of files with one flag per tick; `synthetic` invents series. A policy is a name, or a
        Python file that defines `decide(state)`. The job has 48 hours of work until 52 and 70 hours, or less for short traces.

        >>> cw.simulate_spot(synthetic="series=20", job_hours=10, deadline_hours=15, restart_hours=0.1)
        """
        from chipwise.api import SpotQuestion, simulate_spot
        from chipwise.units import parse_seconds

        question = SpotQuestion(
            policies=_names(policy),
            trace=None if trace is None else Path(trace),
            synthetic=synthetic,
            tick_s=None if tick is None else parse_seconds(tick),
            available_is=available_is,
            windows=windows,
            job_hours=job_hours,
            deadline_hours=None if deadline_hours is None else _hours(deadline_hours),
            restart_hours=_hours(restart_hours),
            spot_price=spot_price,
            on_demand_price=on_demand_price,
            seed=seed,
        )
        return Table([asdict(answer) for answer in simulate_spot(question, _quiet)])

    def simulate_queue(
        self,
        *,
        policy: str | Sequence[str] = ("fifo", "backfill", "shortest-estimate", "least-attained", "fair-share"),
        trace: str | Path | None = None,
        synthetic: str | None = None,
        gpus: int | None = None,
        gpus_per_machine: int = 8,
        placement: str = "pack",
        restart: str | float = 60.0,
        checkpoint_every: str | float = 0.0,
        failures_every: str | float | None = None,
        repair: str | float = 3600.0,
        estimate_error: float = 0.0,
        deadline_factor: float = 5.0,
        quota: Mapping[str, float] | None = None,
        seed: int = 0,
    ) -> Table:
        """Jobs in a queue for GPUs: how long they take by each policy, against shortest remaining work with free preemption.

        `trace` is a CSV file with a time of arrival, GPUs and a duration for each job, or a folder of them. A policy is a name,
        or a Python file that defines `rank(job)`.

        >>> cw.simulate_queue(synthetic="jobs=200", gpus=16)
        """
        from chipwise.api import QueueQuestion, simulate_queue
        from chipwise.units import parse_seconds

        question = QueueQuestion(
            policies=_names(policy),
            trace=None if trace is None else Path(trace),
            synthetic=synthetic,
            gpus=gpus,
            gpus_per_machine=gpus_per_machine,
            placement=placement,
            restart_s=parse_seconds(restart),
            checkpoint_s=parse_seconds(checkpoint_every),
            failure_s=None if failures_every is None else parse_seconds(failures_every),
            repair_s=parse_seconds(repair),
            estimate_error=estimate_error,
            deadline_factor=deadline_factor,
            quotas=dict(quota or {}),
            seed=seed,
        )
        return Table([asdict(answer) for answer in simulate_queue(question, _quiet)])

    def simulate_serve(
        self,
        *,
        policy: str | Sequence[str] = (
            "hpa",
            "queue-depth",
            "knative",
            "keda",
            "target-tracking",
            "seasonal",
            "learned-headroom",
        ),
        trace: str | Path | None = None,
        synthetic: str | None = None,
        replica_rate: float | None = None,
        concurrency: float = 16.0,
        cold_start: str | float = 180.0,
        wait: str | float = 10.0,
        share: float = 0.99,
        input_weight: float = 0.25,
        level: str = "pooled",
        step: tuple[float, float] = (0.0066, 0.0412),
        slots: int = 256,
        prompt_rate: float = 19_000.0,
        kv_tokens: int = 400_000,
        gaps: bool = False,
        machine: Mapping[str, Sequence[float]] | None = None,
        spot: str | Path | None = None,
        tick: str | float | None = None,
        available_is: int | None = None,
        purchase: str | Sequence[str] | None = None,
        seed: int = 0,
    ) -> Table:
        """A service scaled by each policy: the share of requests that wait no longer than `wait`, and replica-hours.

        `trace` is a CSV of requests (or a folder of them); `synthetic` invents a load. A policy is a name (`hpa:80` sets its
        target), or a Python file that defines `decide(signals)`. The bound is a plan that knows the whole load.

        With `machine` (requests per second, USD an hour and that of spot by name) the answer is in dollars for each policy and
        rule of `purchase`; `spot` is a folder of traces of zones, or invents them (`series=3`).

        >>> cw.simulate_serve(synthetic="hours=2,rate=20", policy="hpa:80,learned-headroom")
        """
        from chipwise.api import ServeQuestion, simulate_serve
        from chipwise.units import parse_seconds

        question = ServeQuestion(
            policies=_names(policy),
            trace=None if trace is None else Path(trace),
            synthetic=synthetic,
            replica_rate=replica_rate,
            concurrency=concurrency,
            cold_start_s=parse_seconds(cold_start),
            wait_s=parse_seconds(wait),
            share=share,
            input_weight=input_weight,
            level=level,
            step_s=step,
            slots=slots,
            prompt_tokens_per_s=prompt_rate,
            kv_tokens=kv_tokens,
            gaps=gaps,
            seed=seed,
        )
        if machine or spot or purchase:
            return _mixed(question, machine or {}, spot, tick, available_is, purchase)
        answers, _ = simulate_serve(question, _quiet)
        return Table([asdict(answer) for answer in answers])


def _mixed(
    serve: ServeQuestion,
    machines: Mapping[str, Sequence[float]],
    spot: str | Path | None,
    tick: str | float | None,
    available_is: int | None,
    purchase: str | Sequence[str] | None,
) -> Table:
    from chipwise.api import mixed_question, simulate_mixed
    from chipwise.units import parse_seconds

    question = mixed_question(
        serve,
        machines.items(),
        spot=None if spot is None else str(spot),
        purchases=None if purchase is None else _names(purchase),
        tick_s=None if tick is None else parse_seconds(tick),
        available_is=available_is,
    )
    answers, _ = simulate_mixed(question, _quiet)
    return Table([asdict(answer) for answer in answers])


def _names(text: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(text.split(",") if isinstance(text, str) else text)


def _hours(hours: float | Sequence[float]) -> tuple[float, ...]:
    return tuple(hours) if isinstance(hours, Sequence) else (float(hours),)
