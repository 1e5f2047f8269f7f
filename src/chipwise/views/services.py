"""Services in words: where one answers, how it is scaled, and a line for the shell that shows that it answers."""

from __future__ import annotations

import json
from typing import Any

from chipwise.serving.service import ServiceRecord
from chipwise.text import duration, percent, plural


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
    return f"curl -N {insecure}{service.door.url}/v1/chat/completions{key} -d '{json.dumps(body)}'"


def heading(service: dict[str, Any]) -> list[str]:
    gateway, canary = service["gateway"], service["canary"]
    door = "" if gateway["answers"] else f"; its gateway ({gateway['job'] or 'not started'}) does not answer"
    waiting = f"; {plural(gateway['waiting'], 'request')} waiting" if gateway["waiting"] else ""
    lines = [f"{service['name']} at {service['url']}{door}{waiting}"]
    if service["scaling"] is not None:
        lines += [f"  {line}" for line in scaling_words(service["scaling"])]
    for version in service["versions"]:
        note = ""
        if canary is not None and canary["version"] == version["version"]:
            note = f", tried on {percent(canary['share'])} of the requests"
        lines.append(f"  version {version['version']}: {version['model']} with {version['engine']}{note}")
    return lines
