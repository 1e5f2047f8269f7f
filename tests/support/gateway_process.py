"""A gateway as a process of its own, in front of replicas at known ports; prints its port.

python tests/support/gateway_process.py PORT... [--listen PORT] [--share] [--offer PATH] [--take PATH]
    [--certificate FILE --key FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from pathlib import Path

from chipwise.adapters.http.gateway import Door, Gateway
from chipwise.adapters.http.hand_over import HandOver, TakenOver
from chipwise.adapters.http.loops import run
from chipwise.adapters.http.state import Clocks, GatewayState
from chipwise.serving.breaker import BreakerRule
from chipwise.serving.keys import KeyRing
from chipwise.serving.replica import Address, Replica
from chipwise.serving.routing import ReplicaPool, policy_named
from chipwise.serving.settings import GatewaySettings, Timeouts

SETTINGS = GatewaySettings(
    timeouts=Timeouts(first_byte_s=1.0, between_bytes_s=2.0),
    breaker=BreakerRule(failures=3, open_s=0.2, longest_open_s=2.0),
)


async def serve(arguments: argparse.Namespace) -> None:
    replicas = tuple(Replica(f"replica-{port}", Address("127.0.0.1", port), most_requests=1000) for port in arguments.replicas)
    pool = ReplicaPool("main", replicas, policy_named("least-work", random.random))
    state = GatewayState([pool], KeyRing(), SETTINGS, Clocks(time.monotonic, time.time), random.random)
    gateway = Gateway(state)
    before = TakenOver(arguments.take) if arguments.take is not None else None
    door = Door(
        port=arguments.listen, shares_port=arguments.share, certificate=arguments.certificate, private_key=arguments.key
    )
    port = await gateway.start(door, before.listening if before is not None else None)
    over = asyncio.Event()
    if before is not None:
        before.confirm()
    if arguments.offer is not None:
        HandOver(arguments.offer, gateway.listening, over.set).start()
    print(port, flush=True)
    await over.wait()
    print("drained" if await gateway.drain(30.0, has_successor=True) else "not drained", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("replicas", type=int, nargs="+")
    parser.add_argument("--listen", type=int, default=0)
    parser.add_argument("--share", action="store_true")
    parser.add_argument("--offer", type=Path)
    parser.add_argument("--take", type=Path)
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--key", type=Path)
    run(serve(parser.parse_args()))
