"""What the Google and Azure providers take, read from packages that are made from their schemas.

The providers themselves come only from Terraform's registry. Their schemas are also on npm, as the types of
`@cdktf/provider-google` and `@cdktf/provider-azurerm`: required and optional arguments, and nested blocks. The packed files are
read as they are; nothing of them is run.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from install_tools import folder as tools
from terraform_tool import Missing

_INTERFACE = re.compile(r"export interface (\w+)[^{]*\{(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"readonly (\w+)(\??): ([^;]+);")
_META = {"count", "for_each", "lifecycle", "depends_on", "provider", "dynamic"}
Fields = dict[str, tuple[bool, str]]  # argument: (required, name of its own interface, or "")


@cache
def package(name: str) -> tarfile.TarFile:
    found = sorted((tools() / "cdktf").glob(f"cdktf-provider-{name}-*.tgz"))
    if not found:
        raise Missing(
            f"@cdktf/provider-{name}: not found; see make tools (`npm pack @cdktf/provider-{name}` in {tools() / 'cdktf'})"
        )
    return tarfile.open(found[-1])


@cache
def interfaces(provider: str, folder: str) -> dict[str, Fields]:
    file = package(provider).extractfile(f"package/lib/{folder}/index.d.ts")
    assert file is not None
    made: dict[str, Fields] = {}
    for name, body in _INTERFACE.findall(file.read().decode()):
        made[name] = {
            re.sub(r"([A-Z])|(?<=[a-z])(\d)", lambda sign: f"_{sign[0].lower()}" if sign[1] else sign[0], field): (
                not optional,
                re.sub(r"\[\].*| \|.*", "", kind),
            )
            for field, optional, kind in _FIELD.findall(body)
        }
    return made


def complaints(provider: str, kind: str, labels: Sequence[str], body: Mapping[str, Any]) -> list[str]:
    """Arguments that the provider does not take, and those that it needs and that are not there."""
    plain = labels[0].removeprefix(f"{provider}_")
    folder = ("data-" + provider + "-" if kind == "data" else "") + plain.replace("_", "-")
    known = interfaces(provider, folder)
    camel = "".join(part.capitalize() for part in plain.split("_"))
    root = (f"Data{provider.capitalize()}" if kind == "data" else "") + camel + "Config"
    return list(_check(known, root, body, ".".join(labels)))


def _check(known: Mapping[str, Fields], name: str, body: Mapping[str, Any], where: str) -> Iterator[str]:
    fields = known[name]
    given = {key for key in body if not key.startswith("__")}
    for one in body.get("dynamic", []):
        (label, inner), *_ = one.items()
        given.add(label.strip('"'))
        for content in inner["content"]:
            yield from _check(known, fields[label.strip('"')][1], content, f"{where}.{label}")
    for key in sorted(given - _META):
        if key not in fields:
            yield f"{where}: {key} is not an argument"
        elif fields[key][1] in known:
            for inner in body.get(key, []) if isinstance(body.get(key), list) else []:
                yield from _check(known, fields[key][1], inner, f"{where}.{key}")
    yield from (f"{where}: {key} is needed" for key, (needed, _) in fields.items() if needed and key not in given)
