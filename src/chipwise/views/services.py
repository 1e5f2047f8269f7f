"""Services in words: where one answers, how it is scaled, and a line for the shell that shows that it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from chipwise.runner.job import Job
from chipwise.serving.cluster import ClusterSight
from chipwise.serving.service import ReplicaRecord, ServiceRecord
from chipwise.text import duration, percent, plural

SILENT_S = 15.0  # of a gateway that tells what it sees every five
FORWARDED = "http://127.0.0.1:8080"  # where a port is forwarded to from a cluster


def scaling_view(service: ServiceRecord) -> dict[str, Any] | None:
    if service.most_replicas is None:
        return None
    return {
        "fewest": service.fewest_replicas,
        "most": service.most_replicas,
        "policy": service.scaling.policy or None,
        "every_s": service.scaling.every_s,
        "idle_s": service.scaling.idle_s if service.fewest_replicas == 0 else None,
        "cold_start_s": service.cold_start_s,
    }


def scaling_lines(service: ServiceRecord) -> list[str]:
    scaling = scaling_view(service)
    return [] if scaling is None else scaling_words(scaling)


def scaling_words(scaling: dict[str, Any]) -> list[str]:
    """How it is scaled, and what the first request after a sleep waits for."""
    policy, pace = scaling["policy"], duration(scaling["every_s"])
    rule = f"by {policy}, asked every {pace}" if policy else "by outstanding requests"
    lines = [f"scaled from {scaling['fewest']} to {scaling['most']} replicas {rule}"]
    if scaling["idle_s"] is not None:
        wait = "" if scaling["cold_start_s"] is None else f": its first token comes {duration(scaling['cold_start_s'])} later"
        lines.append(f"without requests for {duration(scaling['idle_s'])} the last one ends; the next request starts one{wait}")
    return lines


def example(service: ServiceRecord) -> str:
    """A line for the shell that shows that it answers."""
    version = service.versions[-1]
    key = ' -H "authorization: Bearer $KEY"' if service.door.key_file else ""
    insecure = "-k " if service.door.certificate else ""
    body: dict[str, object] = {"model": version.request.served}
    body |= {"messages": [{"role": "user", "content": "Hello"}], "stream": True}
    url = FORWARDED if service.place else service.door.url
    return f"curl -N {insecure}{url}/v1/chat/completions{key} -d '{json.dumps(body)}'"


def service_view(service: ServiceRecord, seen: Mapping[str, Any], jobs: Mapping[str, Job], now: float) -> dict[str, Any]:
    """`seen`: what its gateway wrote last. `jobs`: those of the service that the record has, by id."""
    silent_s = now - seen["at"] if "at" in seen else None
    gateway = jobs.get(service.gateway)
    return {
        "name": service.name,
        "url": service.door.url,
        "place": None,
        "gateway": {
            "job": service.gateway or None,
            "phase": str(gateway.phase) if gateway is not None else None,
            "answers": silent_s is not None and silent_s < SILENT_S,
            "waiting": seen.get("waiting"),
            "connections": seen.get("connections"),
        },
        "policy": service.policy,
        "scaling": scaling_view(service),
        "canary": None if service.canary is None else {"version": service.canary, "share": service.canary_share},
        "versions": _versions(service),
        "replicas": [
            _replica(record, jobs.get(record.job), seen.get("replicas", {}).get(record.name, {})) for record in service.replicas
        ],
    }


def _versions(service: ServiceRecord) -> list[dict[str, Any]]:
    return [
        {"version": version.number, "engine": version.engine, "model": version.request.model} for version in service.versions
    ]


def _replica(record: ReplicaRecord, job: Job | None, state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": record.name,
        "job": record.job,
        "version": record.version,
        "phase": "unknown" if job is None else str(job.phase),
        "attempts": 0 if job is None else len(job.attempts),
        "port": record.port,
        "ready": not state.get("away", True),
        "draining": record.is_draining,
        "requests": state.get("requests"),
        "tokens": state.get("tokens"),
    }


def reached(service: ServiceRecord) -> str:
    """Of one in a cluster: the command by which this machine reaches it."""
    namespace = service.door.host.split(".")[1]
    return f"kubectl -n {namespace} port-forward svc/{service.name} {FORWARDED.rpartition(':')[2]}:{service.door.port}"


def cluster_view(service: ServiceRecord, sight: ClusterSight | None, trouble: str = "") -> dict[str, Any]:
    """`sight`: None where the cluster did not show it, with the reason as `trouble`."""
    is_scaled = sight is not None and sight.most_replicas is not None
    if sight is not None and not trouble:
        lost = "" if sight.kind else "it was deleted in the cluster"
        trouble = lost or (sight.trouble.text if sight.trouble is not None else "")
    return {
        "name": service.name,
        "url": service.door.url,
        "place": service.place,
        "port_forward": reached(service),
        "gateway": None,
        "pool": sight.pool or None if sight is not None else None,
        "policy": None,
        "scaling": {"fewest": sight.fewest_replicas, "most": sight.most_replicas, "policy": "hpa"}
        if sight is not None and is_scaled
        else None,
        "canary": None if service.canary is None else {"version": service.canary, "share": None},
        "versions": _versions(service),
        "wanted": sight.wanted if sight is not None and sight.kind else None,
        "available": sight.available if sight is not None and sight.kind else None,
        "waiting_for": sight.waits or None if sight is not None else None,
        "trouble": trouble or None,
        "replicas": [
            {
                "name": replica.name,
                "job": None,
                "version": replica.version,
                "phase": replica.phase,
                "attempts": replica.restarts + 1,
                "node": replica.node or None,
                "ready": replica.ready,
                "draining": replica.ending,
                "requests": None,
                "tokens": None,
            }
            for replica in (sight.replicas if sight is not None else ())
        ],
    }


def heading(service: dict[str, Any]) -> list[str]:
    lines = _cluster_heading(service) if service["place"] else _heading(service)
    canary = service["canary"]
    for version in service["versions"]:
        note = ""
        if canary is not None and canary["version"] == version["version"]:
            share = canary["share"]
            note = ", being rolled out" if share is None else f", tried on {percent(share)} of the requests"
        lines.append(f"  version {version['version']}: {version['model']} with {version['engine']}{note}")
    return lines


def _cluster_heading(service: dict[str, Any]) -> list[str]:
    lines = [f"{service['name']} at {service['url']} in {service['place']}", f"  from here: {service['port_forward']}"]
    if service["wanted"] is not None:
        scaling = service["scaling"]
        limits = f", scaled from {scaling['fewest']} to {scaling['most']} by its autoscaler" if scaling else ""
        lines.append(f"  {service['available']} of {service['wanted']} replicas ready{limits}")
    if service["pool"]:
        lines.append(f"  the InferencePool {service['pool']} picks among them")
    reason = service["trouble"] or service["waiting_for"]
    return [*lines, f"  {reason}"] if reason else lines


def _heading(service: dict[str, Any]) -> list[str]:
    gateway = service["gateway"]
    door = "" if gateway["answers"] else f"; its gateway ({gateway['job'] or 'not started'}) does not answer"
    waiting = f"; {plural(gateway['waiting'], 'request')} waiting" if gateway["waiting"] else ""
    lines = [f"{service['name']} at {service['url']}{door}{waiting}"]
    if service["scaling"] is not None:
        lines += [f"  {line}" for line in scaling_words(service["scaling"])]
    return lines
