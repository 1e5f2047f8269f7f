"""How many requests a second of one core the serving simulator passes at each level, beside a plain SimPy model of the same.

SimPy is only needed here (`pip install simpy`), numba for the compiled token level (`pip install chipwise[fast]`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from time import process_time

import numpy as np

from chipwise.scale.load import RequestLoad, load_of
from chipwise.scale.serving import Scale, ScaledService
from chipwise.scale.simulator.pooled import PooledQueue
from chipwise.scale.simulator.scaling import play
from chipwise.scale.simulator.servers import ServerQueue
from chipwise.scale.simulator.tokens import TokenLoad, TokenSpeed, answered
from figure import Figure

SERVERS, PER_S = 20, 1000.0


def figures() -> Iterator[Figure]:
    yield Figure("serve_pooled_requests_per_s", _rate(2_000_000, lambda load: _play(load, PooledQueue)), "1/s", {"min": 1e6})
    yield Figure("serve_servers_requests_per_s", _rate(500_000, lambda load: _play(load, ServerQueue)), "1/s", {})
    yield from _tokens()
    if find_spec("simpy") is None:
        print("serving_speed: SimPy is left out, since it is not installed", file=sys.stderr)
        return
    yield Figure("simpy_servers_requests_per_s", _rate(50_000, _simpy_mean_wait), "1/s", {})
    load = _load(50_000)
    difference = abs(_simpy_mean_wait(load) - float(_play(load, ServerQueue).mean()))
    yield Figure("serve_servers_mean_wait_from_simpy", difference, "s", {"max": 1e-9})


def _load(count: int) -> RequestLoad:
    """20 servers of 50 requests a second each, 80% busy."""
    chance = np.random.default_rng(1)
    times = np.cumsum(chance.exponential(1.0 / (0.8 * PER_S), count))
    return load_of("poisson", times, work=chance.exponential(1.0, count))


def _rate(count: int, work: Callable[[RequestLoad], object]) -> float:
    load = _load(count)
    begin = process_time()
    work(load)
    return count / (process_time() - begin)


def _constant(service: ScaledService) -> Scale:
    return lambda signals: float(SERVERS)


def _play(load: RequestLoad, queue: type[PooledQueue] | type[ServerQueue]) -> np.ndarray:
    service = ScaledService(replica_per_s=PER_S / SERVERS, least_replicas=SERVERS, most_replicas=SERVERS)
    return play(load, service, _constant, queue).waits_s


def _simpy_mean_wait(load: RequestLoad) -> float:
    """The same queue as people write it: a resource and a process for each request."""
    import simpy

    environment = simpy.Environment()
    servers = simpy.Resource(environment, SERVERS)
    waits = []
    takes = load.work / (PER_S / SERVERS)

    def request(seconds: float):  # type: ignore[no-untyped-def]
        came = environment.now
        with servers.request() as turn:
            yield turn
            waits.append(environment.now - came)
            yield environment.timeout(seconds)

    def arrivals():  # type: ignore[no-untyped-def]
        for time_s, seconds in zip(load.times_s.tolist(), takes.tolist(), strict=True):
            yield environment.timeout(time_s - environment.now)
            environment.process(request(seconds))

    environment.process(arrivals())  # type: ignore[no-untyped-call]
    environment.run()
    return float(np.mean(waits))


def _tokens() -> Iterator[Figure]:
    chance, compiled = np.random.default_rng(1), find_spec("numba") is not None
    count = 200_000 if compiled else 5_000
    load = TokenLoad(
        times_s=np.cumsum(chance.exponential(1.0 / 40.0, count)),
        prompts=chance.integers(50, 2000, count),
        answers=chance.integers(10, 400, count),
    )
    speed = TokenSpeed(steps_s=0.0066 + 1e-4 * np.arange(129.0), prompt_token_s=5e-5, kv_tokens=400_000)
    run = partial(answered, load, speed, 4)
    if compiled:
        answered(TokenLoad(times_s=load.times_s[:9], prompts=load.prompts[:9], answers=load.answers[:9]), speed, 4)  # compiles
    begin = process_time()
    run()
    name = "serve_tokens_compiled_requests_per_s" if compiled else "serve_tokens_plain_requests_per_s"
    yield Figure(name, count / (process_time() - begin), "1/s", {"min": 1e5} if compiled else {})


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
