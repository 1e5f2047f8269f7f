"""`prepare` as a verb: what an account must have before the first machine is rented."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from chipwise.api.running import engines
from chipwise.api.running.installed import package
from chipwise.errors import BadInput
from chipwise.runner.abilities import Prepared, Prepares

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session


def prepare(session: Session, name: str, options: Mapping[str, str], *, dry_run: bool) -> Prepared:
    """`options`: region and keep, where the file of engines does not say them yet."""
    kind = package(engines.kind_of(session, name))
    if not isinstance(kind, Prepares):
        raise BadInput(
            f"The engine {name} needs no preparation.",
            remedy="For a cluster, apply docs/running/kubernetes-role.yaml with kubectl.",
        )
    return kind.prepare(engines.reach(session, name, options).settings, dry_run=dry_run)
