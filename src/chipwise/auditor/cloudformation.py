"""Resources of CloudFormation, as templates and what CDK writes have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chipwise.auditor.source import Located, Sources, mapped


@dataclass(frozen=True, slots=True)
class Resource:
    path: str
    name: str
    type: str
    properties: Located


def resources_of(sources: Sources, *types: str) -> Iterator[Resource]:
    """Those of these types; without any, all."""
    for manifest in sources.manifests:
        if manifest.kind:
            continue
        for name, resource in mapped(manifest.body.get("Resources")).items():
            kind, properties = str(mapped(resource).get("Type") or ""), mapped(resource).get("Properties")
            if kind.startswith("AWS::") and isinstance(properties, Located) and (not types or kind in types):
                yield Resource(manifest.path, name, kind, properties)
