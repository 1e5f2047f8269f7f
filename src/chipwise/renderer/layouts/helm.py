"""A chart whose values are what environments do not have in common, and its values for each environment.

Templates are the objects of the defaults with their comments. Where environments differ, a value stands in place of what is
there: `.Values.deployment.replicas`, under the kind of the object and the name of the field. Nothing else is a value but
images, which are replaced at every release. The namespace is the release's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from chipwise.renderer.file import File
from chipwise.renderer.heading import heading
from chipwise.renderer.layouts import shared
from chipwise.renderer.layouts.holes import ENABLED, Hole, Holes, punched
from chipwise.renderer.layouts.variants import ABSENT, NAMESPACE, Key, Variant, keys, placed
from chipwise.renderer.yaml_text import Noted, Yaml, document, plain

CHART = "chart"
_PLACE = re.compile(r"^( *)((?:- )*)(.*?)chipwiseHole(\d+)x$", re.MULTILINE)
_RELEASE = "{{ .Release.Namespace }}"


def render(defaults: Variant, environments: Sequence[Variant]) -> list[File]:
    variants = (defaults, *environments)
    apart = shared.stands_apart(variants)
    wanted = [key for key in keys(variants) if (key.own and key.kind != "Namespace") or not apart]
    holes = Holes(variants, wanted)
    values = {variant.name: holes.values(variant) for variant in variants}
    files = [
        File(f"{CHART}/Chart.yaml", _chart(defaults)),
        File(
            f"{CHART}/values.yaml",
            _values(values[""], defaults, "Values of the defaults: the workload without an environment."),
        ),
    ]
    for variant in environments:
        about = f"The environment {variant.name}: what its own plan says otherwise than values.yaml."
        files.append(
            File(f"{CHART}/values-{variant.name}.yaml", _values(difference(values[""], values[variant.name]), variant, about))
        )
    files.append(File(f"{CHART}/values.schema.json", _schema(list(values.values()))))
    for name in dict.fromkeys(holes.holder(key).manifests[key].file for key in wanted):
        inside = [key for key in wanted if holes.holder(key).manifests[key].file == name]
        files.append(File(f"{CHART}/templates/{name}", _template(inside, holes)))
    return [*files, *_namespaces(defaults, environments), *shared.files(variants, None)]


def _chart(defaults: Variant) -> str:
    deployment = defaults.deployment
    return document(
        {
            "apiVersion": "v2",
            "name": defaults.release,
            "description": deployment.description or f"{deployment.title}: {deployment.kind}",
            "type": "application",
            "version": Noted("0.1.0", "Raise it with every change of the chart."),
        }
    )


def _values(values: Yaml, variant: Variant, about: str) -> str:
    title = heading(variant.deployment, about)
    return document(placed(values, variant.namespace), title=title)


def _template(inside: Sequence[Key], holes: Holes) -> str:
    texts = []
    for key in inside:
        text = document(punched(holes.common(key), holes.of(key)))
        text = text.replace("{{", '{{ "{{" }}').replace(NAMESPACE, _RELEASE)
        text = _PLACE.sub(lambda found: _expression(found, holes), text)
        if holes.optional(key):
            text = f"{{{{- if .Values.{holes.name(key)}.{ENABLED} }}}}\n{text}{{{{- end }}}}\n"
        texts.append(text)
    return "---\n".join(texts)


def _expression(place: re.Match[str], holes: Holes) -> str:
    indent, dashes, before, number = place[1], place[2], place[3], int(place[4])
    hole = holes.numbered(number)
    inner = len(indent) + len(dashes) + 2
    if not hole.optional:
        return f"{indent}{dashes}{before}{_inserted(hole, hole.path, inner)}"
    block = _inserted(hole, ".", inner)
    if hole.falsy:
        start = f"{{{{- if hasKey .Values.{hole.parent} {json.dumps(hole.field)} }}}}"
        block = _inserted(hole, hole.path, inner)
    else:
        start = f"{{{{- with {hole.path} }}}}"
    return f"{indent}{dashes}{start}\n{indent}{before}{block}\n{indent}{{{{- end }}}}"


def _inserted(hole: Hole, path: str, indent: int) -> str:
    if hole.scalar:
        return f"{{{{ toJson {path} }}}}" if not hole.names_space else f"{{{{ tpl (toJson {path}) $ }}}}"
    text = f"toYaml {path}" if not hole.names_space else f"tpl (toYaml {path}) $"
    return f"{{{{- {text} | nindent {indent} }}}}"


def difference(was: Yaml, wanted: Yaml) -> Yaml:
    """What laid over the one gives the other, as Helm lays values over each other: null removes, lists replace."""
    changes: dict[str, Yaml] = {}
    assert isinstance(was, Mapping)
    assert isinstance(wanted, Mapping)
    for key in dict.fromkeys([*was, *wanted]):
        before, after = was.get(key, ABSENT), wanted.get(key, ABSENT)
        if after is ABSENT:
            changes[str(key)] = None
        elif before is ABSENT or plain(before) != plain(after):
            inner_before, inner_after = (one.value if isinstance(one, Noted) else one for one in (before, after))
            nested = isinstance(inner_before, Mapping) and isinstance(inner_after, Mapping)
            changes[str(key)] = difference(inner_before, inner_after) if nested else after
    return changes


def _schema(values: Sequence[Yaml]) -> str:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **_described([plain(one) for one in values], 0)}
    return json.dumps(schema, indent=2) + "\n"


def _described(values: Sequence[Yaml], depth: int) -> dict[str, object]:
    """The form of these values: objects of the chart with exactly their fields, and below them what Kubernetes checks."""
    if depth < 2 and all(isinstance(one, Mapping) for one in values):
        fields = dict.fromkeys(key for one in values if isinstance(one, Mapping) for key in one)
        properties = {
            str(key): _described([one[key] for one in values if isinstance(one, Mapping) and key in one], depth + 1)
            for key in fields
        }
        if depth == 0:
            properties["global"] = {"type": "object"}
        return {"type": "object", "additionalProperties": False, "properties": properties}
    types = list(dict.fromkeys(_type(one) for one in values))
    return {"type": types[0] if len(types) == 1 else types}


def _type(value: Yaml) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case None:
            return "null"
    return "array"


def _namespaces(defaults: Variant, environments: Sequence[Variant]) -> list[File]:
    """Helm keeps its own record in the namespace of the release, so that this is there before the release."""
    files = []
    for variant in environments or (defaults,):
        namespaces = [manifest for key, manifest in variant.manifests.items() if key.kind == "Namespace" and key.own]
        if namespaces:
            title = "The namespace of the release: helm install --create-namespace would make it without these rules."
            body = placed(namespaces[0].body, variant.namespace)
            files.append(File(f"namespaces/{variant.name or 'base'}.yaml", document(body, title=title)))
    return files
