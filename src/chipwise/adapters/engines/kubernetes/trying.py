"""What the cluster would say to a job, asked before it is recorded: nothing is made, and whoever asks hears it at once.

The server checks names, fields, rights and webhooks as if it were in earnest. Kueue would hold for ever what is more than its
queue may ever give; where the queue may be read, that is told as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from chipwise.errors import BadInput, NotAllowed, NotFound
from chipwise.renderer.cluster.pod import QUEUE_LABEL
from chipwise.renderer.quoting import dns_name
from chipwise.spelling import nearest

from .connection import Connection, Exists
from .kinds import CLUSTER_QUEUE, LOCAL_QUEUE, Object
from .objects import AttemptObjects
from .story import amount, quantity_text, resource_title


def queue_for(connection: Connection, team: str, queue: str = "") -> str:
    """The queue of Kueue that a job goes to: the one asked for, its team's, or the only one; empty where there is none."""
    try:
        names = sorted(str(one["metadata"]["name"]) for one in connection.list(LOCAL_QUEUE)[0])
    except NotFound:
        if queue:
            raise BadInput(f"There is no Kueue at {connection.server}, so no queue {queue}.", remedy="Leave it out.") from None
        return ""
    except NotAllowed:  # its queues are not for us to see: then who asks must know
        return queue
    if queue and queue not in names:
        choices = f"There is: {', '.join(names)}." if names else f"Namespace {connection.namespace} has none."
        close = nearest(queue, names)
        raise BadInput(
            f"There is no queue {queue} in namespace {connection.namespace}.",
            remedy=f"Did you mean {close[0]}? {choices}" if close else choices,
        )
    if queue or not names:
        return queue
    if team and dns_name(team) in names:
        return dns_name(team)
    if len(names) > 1:
        raise BadInput(
            f"Namespace {connection.namespace} has several queues: {', '.join(names)}.",
            remedy="Name one with --queue, or the team that it is of with --team.",
        )
    return names[0]


def try_out(connection: Connection, name: str, objects: AttemptObjects) -> None:
    """Raises what the cluster would refuse it for."""
    for kind, body in objects.persistent:
        with suppress(Exists):
            connection.create(kind, body, dry_run=True)
    for kind, body in (*objects.owned, objects.main):
        connection.apply(kind, body, dry_run=True)
    _, main = objects.main
    queue = str((main["metadata"].get("labels") or {}).get(QUEUE_LABEL, ""))
    if queue:  # of a service one replica at least
        _check_quota(connection, name, queue, dict(_wanted(main["spec"])))


def _wanted(spec: Mapping[str, Any]) -> Iterator[tuple[str, Decimal]]:
    """What its pods ask for together."""
    pods = int(spec.get("parallelism") or 1)
    total: dict[str, Decimal] = {}
    for container in spec["template"]["spec"]["containers"]:
        resources = container.get("resources") or {}
        for resource, value in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            total[resource] = total.get(resource, Decimal(0)) + amount(value)
    yield from ((resource, each * pods) for resource, each in total.items())


def _check_quota(connection: Connection, name: str, queue: str, wanted: Mapping[str, Decimal]) -> None:
    try:
        local = _by_name(connection.list(LOCAL_QUEUE)[0], queue)
        cluster = _by_name(connection.list(CLUSTER_QUEUE)[0], str((local.get("spec") or {}).get("clusterQueue", "")))
    except (NotFound, NotAllowed):
        return
    for resource, needed in wanted.items():
        limit = _limit(cluster, resource)
        if limit is not None and needed > limit:
            need, maximum = (
                f"{quantity_text(needed, resource)} {resource_title(resource, needed)}",
                quantity_text(limit, resource),
            )
            raise BadInput(
                f"{name} needs {need}, and queue {queue} never gives more than {maximum}.",
                remedy="Ask for fewer, take another --queue, or ask who runs the cluster for a larger quota.",
            )


def _by_name(items: Sequence[Object], name: str) -> Object:
    """By listing, for which there are rights; getting one would take another."""
    return next((one for one in items if one["metadata"]["name"] == name), {})


def _limit(cluster: Object, resource: str) -> Decimal | None:
    """Of one flavor, since a pod takes one; None: it may borrow without a limit, or nobody counts it."""
    spec = cluster.get("spec") or {}
    lends = bool(spec.get("cohortName"))
    limits: list[Decimal] = []
    for group in spec.get("resourceGroups") or ():
        for flavor in group.get("flavors") or ():
            for quota in flavor.get("resources") or ():
                if quota.get("name") != resource:
                    continue
                if lends and quota.get("borrowingLimit") is None:
                    return None
                limits.append(amount(quota.get("nominalQuota")) + (amount(quota.get("borrowingLimit")) if lends else 0))
    return max(limits, default=None)
