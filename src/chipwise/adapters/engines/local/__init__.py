"""This machine: a folder and a supervisor for each attempt, devices by id.

A supervisor is a process that imports little, so that it is small and starts at once: there may be one for every GPU. It comes
by here too (`python -m`), so nothing is imported before it is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chipwise.runner.abilities import Machine, Traits

if TYPE_CHECKING:
    from .engine import Config, Local

NAME = __name__.rpartition(".")[2].replace("_", "-")
SECRETS = "CHIPWISE_JOB_SECRETS"  # of a supervisor's private environment: those of its job, as JSON
TRAITS = Traits(turn_s=0.2, detail="devices")


def connect(config: Config) -> Local:
    from .engine import connect

    return connect(config)


def on_machine(machine: Machine) -> Config:
    from .engine import Config

    return Config(
        root=machine.root,
        place=machine.place,
        gpus=machine.gpus,
        cpus=machine.cpus,
        secrets=machine.secrets,
        passing=machine.passing,
        controller=machine.controller,
        run_as=machine.run_as,
    )
