"""A secret in a file is in every clone of the repository forever."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import pods_of, words_of
from chipwise.auditor.source import Located, Sources, line_of, listed, look, walk
from chipwise.auditor.tasks import exported, tasks_of
from chipwise.auditor.terraform import holds_containers, rows_of

_TYPES = ("resource", "variable", "provider", "module", "locals")
ABOUT = "no secret stands in a file"
_RULE = "open-secrets"
_NAMES = re.compile(
    r"(?:^|_)(?:TOKEN|PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|CREDENTIALS?)(?:$|_)", re.IGNORECASE
)
_SIGNS = (
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), "an AWS access key"),
    (re.compile(r"-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY-----"), "a private key"),
    (re.compile(r"\bhf_[A-Za-z0-9]{30,}\b"), "a Hugging Face token"),
    (re.compile(r"\bgh[pousr]_[A-Za-z0-9]{36,}\b"), "a GitHub token"),
    (re.compile(r"\bgithub_pat_[A-Za-z0-9_]{60,}"), "a GitHub token"),
    (re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}"), "a GitLab token"),
    (re.compile(r"\bxox[abprs]-[A-Za-z0-9-]{20,}"), "a Slack token"),
    (re.compile(r"\b[sr]k_live_[A-Za-z0-9]{20,}"), "a Stripe key"),
    (re.compile(r"\bdckr_pat_[A-Za-z0-9_-]{20,}"), "a Docker Hub token"),
    (re.compile(r"\bAccountKey=[A-Za-z0-9+/]{60,}={0,2}"), "an Azure storage key"),
    (re.compile(r"\bdop_v1_[a-f0-9]{60,}"), "a DigitalOcean token"),
    (re.compile(r"\w+://[^\s:/@$<{\"']+:(?!\$|\{|<|x{3}|\*{3}|pass|changeme)[^\s:/@$<{\"']{6,}@"), "a password in an address"),
    (
        re.compile(r"--(?:requirepass|masterauth|password|admin-password)[= ]+[\"']?(?!pass|changeme|your)[\w!@%^*-]{8,}"),
        "a password of a command",
    ),
    (re.compile(r"\becho\s+['\"]?\w+:(?!\$)[^\s'\"]{4,}['\"]?\s*\|\s*chpasswd"), "a password of a user"),
    (re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"), "a Google API key"),
    (re.compile(r"\bsk-(?:proj-|ant-)?[A-Za-z0-9_-]{32,}"), "a key of a model provider"),
    (re.compile(r"\bnvapi-[A-Za-z0-9_-]{40,}"), "an NVIDIA API key"),
)
_EXPORTED = re.compile(r"""(?:^|[\s;&])(?:export\s+|-e\s+|--env[= ])?([A-Za-z_][A-Za-z0-9_]*)=["']?([^\s"';&|)]+)""")
_WRITTEN = re.compile(r'"?name"?\s*[=:]\s*"(\w+)"\s*,?\s*"?value"?\s*[=:]\s*"([^"]*)"', re.IGNORECASE)
_SETTING = re.compile(r"""^[ \t]*(?:- )?([A-Z][A-Z0-9_]{3,}):[ \t]*["']?([^\s"'#]{16,})["']?[ \t]*$""", re.MULTILINE)
_PIECE = re.compile(r"[A-Za-z0-9+/=_!@#%^*-]+")
_SCRIPTS = ("user_data", "user_data_base64", "custom_data", "metadata_startup_script", "startup_script")
_PLACEHOLDER = re.compile(r"replace|change.?me|your[-_ ]|example|placeholder|todo|x{4,}|\*{3,}|\.{3}", re.IGNORECASE)
_NOTHING = re.compile(  # what programs that want a key are given where nobody asks for one
    r"(?:sk-)?(?:dummy|none|null|empty|fake|unused|unset|ignored|not[-_ ]?(?:needed|used|required)|no[-_]?key|n/?a|test|local)"
    r"(?:[-_](?:key|token|value|secret))?",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"^\s*$|^\$|\{\{|^<.*>$|^/run/secrets/|^/|^(?:true|false|\d+)$", re.IGNORECASE)


def check(sources: Sources) -> Iterator[Finding]:
    known = set[tuple[str, int]]()  # places of which something was said, or that were looked at by themselves
    for path, text in sources.texts:
        for sign, secret in _SIGNS:
            line, counted = 1, 0  # up to where lines are counted already
            for match in sign.finditer(text):
                line, counted = line + text.count("\n", counted, match.start()), match.start()
                known.add((path, line))
                yield _finding(
                    path,
                    line,
                    f"{secret} stands in the file",
                    "Take it out, make it worthless (rotate it), and refer to a stored secret.",
                )
    for pod in pods_of(sources, partial=True):
        for container in pod.containers:
            for variable in listed(container.get("env")):
                known.add((pod.owner.path, line_of(variable, "value")))
                if _is_open(look(variable, "name"), look(variable, "value")):
                    message = f"{pod.owner.title}: {look(variable, 'name')} has its value in the manifest"
                    yield _finding(pod.owner.path, line_of(variable, "value"), message, "Use valueFrom.secretKeyRef.")
            for name in _exported(" ".join(words_of(container))):
                message = f"{pod.owner.title}: {name} has its value in the command"
                yield _finding(
                    pod.owner.path,
                    line_of(container, "args" if "args" in container else "command"),
                    message,
                    "Take it from a Secret by valueFrom.secretKeyRef.",
                )
    for manifest in sources.manifests:
        for name, value, line in _named_values(manifest.body) if manifest.kind != "Secret" else ():
            if (manifest.path, line) not in known and _is_open(name, value) and _looks_random(value):
                known.add((manifest.path, line))
                title = manifest.title if manifest.kind else "the file"
                yield _finding(manifest.path, line, f"{title}: {name} has its value in the file", "Refer to a stored secret.")
    for path, text in sources.texts:
        for name, value, line in _embedded(text) if path.endswith((".yaml", ".yml")) else ():
            if (path, line) not in known and _is_open(name, value) and _looks_random(value):
                known.add((path, line))
                yield _finding(path, line, f"{name} has its value in the file", "Refer to a stored secret.")
    for task in tasks_of(sources):
        for name, value, line in exported(task.words):
            if (task.path, line) not in known and _is_open(name, value):
                known.add((task.path, line))
                yield _finding(
                    task.path, line, f"the task: {name} has its value in the script", "Read it from a file or a store."
                )
    for manifest in sources.manifests:
        key = "stringData" if manifest.body.get("stringData") else "data"
        if manifest.kind == "Secret" and _filled(manifest.body.get(key)):
            yield _finding(
                manifest.path,
                line_of(manifest.body, key),
                f"{manifest.title} carries its values",
                "Make it outside of files: kubectl create secret, External Secrets or Sealed Secrets.",
            )
        for generator in listed(manifest.body.get("secretGenerator")) if manifest.kind == "Kustomization" else ():
            literals = [one for one in listed(look(generator, "literals")) if _is_literal(str(one).partition("=")[2])]
            if literals:
                yield _finding(
                    manifest.path,
                    line_of(generator, "literals"),
                    f"the secret {look(generator, 'name')} has its values in the file",
                    "Take them from a file that is not committed, or from External Secrets.",
                )
    for compose in sources.compose:
        services = compose.body.get("services")
        for name, service in services.items() if isinstance(services, dict) else ():
            env = look(service, "environment")
            for key, value in _pairs(env):
                if _is_open(key, value):
                    yield _finding(
                        compose.path,
                        line_of(service, "environment") if isinstance(env, list) else line_of(env, key),
                        f"service {name}: {key} has its value in the file",
                        "Use secrets: or an env_file that is not committed.",
                    )
    for file in sources.dockerfiles:
        for instruction in file:
            if instruction.word in ("ENV", "ARG"):
                key, _, value = re.sub(r"^(\w+)\s+", r"\1=", instruction.rest).partition("=")
                if instruction.word == "ENV" and _is_open(key.strip(), value.strip().strip("\"'")):
                    yield _finding(
                        instruction.path,
                        instruction.line,
                        f"{key.strip()} is baked into the image",
                        "Use RUN --mount=type=secret, or give it at run time.",
                    )
    for block in (one for one in sources.blocks if holds_containers(one)):
        for number, row in rows_of(sources, block):
            for name, value in _WRITTEN.findall(row):
                if (block.path, number) not in known and _is_open(name, value):
                    message = f"{block.title}: {name} has its value in the file"
                    yield _finding(block.path, number, message, "Use secrets with valueFrom, and a secret store.")
    for block in sources.blocks:
        default = block.body.get("default")
        if block.type == "variable" and isinstance(default, str) and _is_open(block.title, default.strip('"')):
            message = f"the variable {block.title} has its value in the file"
            yield _finding(block.path, block.line, message, "Drop the default, and mark the variable sensitive.")
        for key, value in block.body.items():
            if key == "metadata" and isinstance(value, Mapping):
                value = next((str(text) for name, text in value.items() if str(name).strip('"') == "startup-script"), "")
            if key in (*_SCRIPTS, "metadata") and isinstance(value, str):
                for name in _exported(value):
                    written = next((number for number, row in rows_of(sources, block) if f"{name}=" in row), block.line)
                    message = f"{block.title}: {name} has its value in {key}"
                    fix = "Let the machine read it from a secret store by its role."
                    yield replace(_finding(block.path, block.line, message, fix), also=((block.path, written),))
            if block.type in _TYPES and isinstance(value, str) and _is_open(key, value.strip('"')):
                yield _finding(
                    block.path,
                    block.line,
                    f"{block.title}: {key} has its value in the file",
                    "Take it from a variable marked sensitive, or a secret store.",
                )


def _named_values(body: Located) -> Iterator[tuple[str, object, int]]:
    """Values under a name of their own, wherever they stand: as a key, or as a pair of name and value."""
    for mapping in walk(body):
        if isinstance(name := mapping.get("name"), str) and "value" in mapping:
            yield _upper(name), mapping["value"], line_of(mapping, "value")
        for key, value in mapping.items():
            if key not in ("name", "value", "key", "secret", "token"):
                yield _upper(key), value, line_of(mapping, key)


def _embedded(text: str) -> Iterator[tuple[str, str, int]]:
    """Settings inside a text of another language, such as the environment of a RayJob."""
    line, counted = 1, 0
    for match in _SETTING.finditer(text):
        line, counted = line + text.count("\n", counted, match.start(1)), match.start(1)
        yield match[1], match[2], line


def _upper(name: str) -> str:
    """`wandb-api-key` and `wandbApiKey` as WANDB_API_KEY."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").replace(".", "_").upper()


def _looks_random(value: object) -> bool:
    """Long, of one piece, letters and digits mixed: what no person chose as the name of something."""
    text = str(value)
    mixed = any(one.isdigit() for one in text) and any(one.isalpha() for one in text)
    return len(text) >= 16 and mixed and _PIECE.fullmatch(text) is not None and len(set(text)) >= 10


def _pairs(env: object) -> list[tuple[str, object]]:
    """Settings of Compose, as a mapping or as `NAME=value` in a list."""
    if isinstance(env, dict):
        return list(env.items())
    pairs = [str(one).partition("=") for one in listed(env)]
    return [(name, value) for name, equals, value in pairs if equals]


def _exported(text: str) -> list[str]:
    """Names that a script gives a secret's value."""
    return list(dict.fromkeys(name for name, value in _EXPORTED.findall(text[:100_000]) if _is_open(name, value)))


def _filled(values: object) -> bool:
    """Whether a Secret has a value that is one, and not the place for it."""
    return isinstance(values, dict) and any(_is_literal(value) for value in values.values())


def _is_literal(value: object) -> bool:
    if not isinstance(value, str) or not value or _NOTHING.fullmatch(value):
        return False
    return not _REFERENCE.search(value) and not _PLACEHOLDER.search(value)


def _is_open(name: object, value: object) -> bool:
    """A literal under a name that speaks of a secret; names of files, references and switches are none."""
    return bool(
        isinstance(name, str)
        and _NAMES.search(name)
        and isinstance(value, str)
        and value
        and _is_literal(value)
        and "${" not in value
        and "$(" not in value
    )


def _finding(path: str, line: int, message: str, fix: str) -> Finding:
    return Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line, what=message, fix=fix)
