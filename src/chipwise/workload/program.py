"""What runs on the hardware that a plan chooses: image, command, settings, and secrets by name.

Nothing here changes a plan. Values of secrets are never part of a workload: it says where each is kept.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field

from chipwise.workload.goals import Text
from chipwise.workload.part import EnumChoice, Flaw, Section, fault, show_value

MOST_WORDS = 400
LONGEST_WORD = 16_384
MOST_BYTES = 1_000_000  # of command and settings together: Linux starts nothing with more than 2 MiB, part of it for itself


class Framework(StrEnum):
    PYTORCH = "pytorch"
    JAX = "jax"
    TENSORFLOW = "tensorflow"
    MPI = "mpi"
    NONE = "none"


class Engine(StrEnum):
    """What answers requests, or works through a batch of them."""

    VLLM = "vllm"
    TGI = "tgi"
    SGLANG = "sglang"
    TRITON = "triton"
    TEI = "tei"
    OWN = "own"


class Cache(StrEnum):
    """Where a service keeps weights and compiled kernels between starts."""

    SHARED = "shared"
    MACHINE = "machine"


class Devices(StrEnum):
    """How a cluster hands out chips to pods."""

    PLUGIN = "plugin"
    CLAIMS = "claims"


def _words(value: object) -> object:
    """A command as a list, or as one line that is taken apart as a shell would, without running anything."""
    if isinstance(value, str) and value.strip():
        try:
            value = shlex.split(value)
        except ValueError as error:
            raise fault(f"{show_value(value)} cannot be taken apart: {error}", "a list of words, or one line") from None
    if not isinstance(value, list | tuple) or not value:
        raise fault(f"{show_value(value)} is not a command", "a list of words such as [python, train.py], or one line")
    words: list[str] = []
    for item in value:
        word = _number(item)
        if not isinstance(word, str):
            raise fault(f"{show_value(word)} is no word of a command", "text; true, false and null in quotes")
        words.append(word)
    if not words[0].strip():
        raise fault("the command begins with an empty word", "the program first, such as [python, train.py]")
    if len(words) > MOST_WORDS or any(len(word) > LONGEST_WORD for word in words):
        raise fault(
            "the command is too long", f"at most {MOST_WORDS} words of {LONGEST_WORD:,} characters; put the rest into a file"
        )
    if any("\x00" in word for word in words):
        raise fault("a command cannot hold the character NUL", "text without it")
    return tuple(words)


def _number(value: object) -> object:
    """A number as text; one that no number format holds, such as 1e999, has lost what was written."""
    if isinstance(value, float) and not math.isfinite(value):
        raise fault(f"{value} is no number that could be written down", "text in quotes")
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _setting(key: object) -> object:
    if not isinstance(key, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", key):
        raise fault(f"{show_value(key)} is not the name of a setting", "letters, digits and _, such as HF_HOME")
    return key


def _value(value: object) -> object:
    if isinstance(value, bool):
        raise fault(f"{show_value(value)} may be read as true, True or 1", 'text in quotes, such as "true"')
    value = _number(value)
    if not isinstance(value, str) or len(value) > LONGEST_WORD or "\x00" in value:
        raise fault(f"{show_value(value)} is not the value of a setting", f"text of at most {LONGEST_WORD:,} characters")
    return value


def _secret_place(value: object) -> object:
    """Name and key as Kubernetes has them: both become parts of paths elsewhere, so neither may lead out of a directory."""
    part = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
    known = rf"(?=[^/]{{1,253}}/){part}(?:\.{part})*/(?!\.{{1,2}}$)[A-Za-z0-9._-]{{1,253}}"
    if not isinstance(value, str) or len(value) > 507 or not re.fullmatch(known, value):
        raise fault(
            f"{show_value(value)} does not say where a secret is kept", "name/key of a stored secret, such as hub-token/token"
        )
    return value


def _pull_secret(value: object) -> object:
    """A name as Kubernetes has it: what the secret holds is the login of a registry, by the key that Docker gave it."""
    part = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
    if not isinstance(value, str) or len(value) > 253 or not re.fullmatch(rf"{part}(?:\.{part})*", value):
        raise fault(f"{show_value(value)} is not the name of a secret", "the name of a stored secret, such as registry-login")
    return value


def _cache_class(value: object) -> object:
    part = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
    if not isinstance(value, str) or len(value) > 253 or not re.fullmatch(rf"{part}(?:\.{part})*", value):
        raise fault(f"{show_value(value)} is not the name of a storage class", "such as fsx-lustre")
    return value


def _slice(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"[1-7]g\.\d{1,3}gb", value):
        raise fault(f"{show_value(value)} is not a slice of a GPU", "a profile of MIG, such as 1g.10gb")
    return value


def _path(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(r"/[\w./~%?&=+-]{0,199}", value, re.ASCII):
        raise fault(f"{show_value(value)} is not a path of a service", "such as /health")
    return value


def _image(value: object) -> object:
    """Registry, name, tag or digest. What is not written like one would only fail on the machine."""
    host, part = r"[A-Za-z0-9][A-Za-z0-9._-]*(?::\d{1,5})?", r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
    known = rf"{host}(?:/{part})*(?::\w[\w.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?"
    if not isinstance(value, str) or len(value) > 400 or not re.fullmatch(known, value, re.ASCII):
        raise fault(f"{show_value(value)} is not an image", "such as team/trainer:1.4, with small letters before the colon")
    return value


def _port(value: object) -> object:
    if isinstance(value, bool):  # pydantic would take it for 1
        raise fault(f"{show_value(value)} is no port", "a whole number from 1 to 65535")
    return value


def _requirements(value: object) -> object:
    if isinstance(value, str) and (
        not re.fullmatch(r"[A-Za-z0-9_](?:[\w./-]{0,198}[\w-])?", value) or ".." in value.split("/")
    ):
        raise fault(
            f"{show_value(value)} is not a file next to the program", "a path such as requirements.txt, without blanks or .."
        )
    return value


def _checkpoints(value: object) -> object:
    if isinstance(value, str) and not all(sign.isprintable() for sign in value.strip()):
        raise fault(f"{show_value(value)} is no place for checkpoints", "one line, such as s3://bucket/checkpoints")
    return value


def _produces(value: object) -> object:
    paths = [value] if isinstance(value, str) else value
    if not isinstance(paths, list | tuple):
        raise fault(f"{show_value(value)} is no list of files", "paths, such as [model/weights.safetensors]")
    if wrong := wrong_files(paths):
        raise fault(*wrong)
    return tuple(paths)


def wrong_files(paths: Sequence[object]) -> tuple[str, str] | None:
    """Of files that are to be there in the end, in a workload or on a command line: what is wrong, and what is allowed."""
    if len(paths) > MOST_WORDS:
        return f"{len(paths):,} are too many files", f"at most {MOST_WORDS}"
    for path in paths:
        if not isinstance(path, str) or not path.strip() or len(path) > 1000 or not path.isprintable():
            return f"{show_value(path)} is no path of a file", "a path such as model/weights.safetensors"
    return None


def _trigger(value: object) -> object:
    if not isinstance(value, str) or not re.fullmatch(
        r"(?:s3|gs|az)://[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](?:/[\w./=-]{0,500})?", value
    ):
        raise fault(f"{show_value(value)} is no place where objects arrive", "such as s3://uploads/videos/")
    return value


SettingName = Annotated[str, BeforeValidator(_setting)]


class Program(Section):
    """What runs. Left out, the usual program of the kind is written down, and rendered files say where to put yours."""

    image: Annotated[str, BeforeValidator(_image)] | None = None
    """Container image; left out, a Dockerfile for the chosen chip is rendered and its image is used."""
    command: Annotated[tuple[str, ...], BeforeValidator(_words)] | None = None
    """What to run in it, as a list or as one line, such as python train.py --config legal.yaml."""
    env: Mapping[SettingName, Annotated[str, BeforeValidator(_value)]] = Field(default_factory=dict)
    """Settings that are no secrets."""
    secrets: Mapping[SettingName, Annotated[str, BeforeValidator(_secret_place)]] = Field(default_factory=dict)
    """Settings that are: where each is kept, as name/key. Their values are never written anywhere."""
    pull_secret: Annotated[str, BeforeValidator(_pull_secret)] | None = None
    """The secret by which clusters pull the image from a registry that asks who it is."""
    port: Annotated[int, Field(ge=1, le=65535), BeforeValidator(_port)] | None = None
    """Where a service listens."""
    health: Annotated[str, BeforeValidator(_path)] | None = None
    """What a service answers when it is well, such as /health."""
    framework: (
        Annotated[Framework, EnumChoice(Framework, "a framework", (("torch", "pytorch"), ("tf", "tensorflow")))] | None
    ) = None
    engine: Annotated[Engine, EnumChoice(Engine, "an engine", (("text-generation-inference", "tgi"),))] | None = None
    cache: Annotated[Cache, EnumChoice(Cache, "a place for a cache", (("nvme", "machine"), ("local", "machine")))] | None = None
    """Where weights and compiled kernels are kept: on storage that all machines share (left out), or on the machine's disk."""
    cache_class: Annotated[str, BeforeValidator(_cache_class)] | None = None
    """The storage class of a shared cache in a cluster, such as one of FSx for Lustre; left out, the usual one of the cloud."""
    slice: Annotated[str, BeforeValidator(_slice)] | None = None
    """The part of a GPU that each copy of a service gets, as a profile of MIG such as 1g.10gb; left out, whole chips."""
    devices: Annotated[Devices, EnumChoice(Devices, "a way to hand out chips", (("dra", "claims"),))] | None = None
    """How a cluster hands out NVIDIA's chips: by its device plugin (left out), or by claims (dynamic resource allocation)."""
    requirements: Annotated[str, BeforeValidator(_requirements)] | None = None
    """A file of Python packages next to the program, to be installed into the image."""
    checkpoints: Annotated[Text, BeforeValidator(_checkpoints)] | None = None
    """Where checkpoints are kept, as s3://bucket/path; left out, a separate volume."""
    trigger: Annotated[str, BeforeValidator(_trigger)] | None = None
    """Objects whose arrival starts the work, as s3://bucket/prefix/."""
    produces: Annotated[tuple[str, ...], BeforeValidator(_produces)] = ()
    """Files that must be there, and not be empty, when it is done: what the next stage takes."""

    def flaws(self) -> Iterable[Flaw]:
        if duplicates := sorted(set(self.env) & set(self.secrets)):
            yield Flaw("secrets", f"{', '.join(duplicates)} is in env as well", "each setting once", ("env",))
        if self.cache is Cache.MACHINE and self.cache_class is not None:
            yield Flaw("cache_class", "is of a shared cache, and cache is machine", "cache: shared with it", ("cache",))
        if self.pull_secret in {place.partition("/")[0] for place in self.secrets.values()}:
            yield Flaw("pull_secret", f"{self.pull_secret} is in secrets as well", "a secret of its own", ("secrets",))
        size = sum(len(text.encode("utf-8", "replace")) for text in (*(self.command or ()), *self.env, *self.env.values()))
        if size > MOST_BYTES:
            yield Flaw("env", f"command and settings have {size:,} bytes", f"at most {MOST_BYTES:,}; put the rest into a file")
