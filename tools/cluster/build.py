"""Compiles a real Kubernetes control plane, Kueue, Karpenter and kwok from their published Go modules, once, for `make e2e`.

Nothing is downloaded as a program: each comes from source that the Go checksum database vouches for, in a tiny module of its
own, so that no two of them have to agree on a library. What was built lies outside the checkout, under a name made of the
versions, and every file gets there by a rename: a build that is stopped leaves what it finished and nothing half done.

    python tools/cluster/build.py             build what is missing (minutes the first time, nothing to do afterwards)
    python tools/cluster/build.py --list      say where each program is, or that it is missing; builds nothing

`KUBEBUILDER_ASSETS`, the folder in which others keep such programs, is looked into first; `CHIPWISE_CACHE` moves the cache.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # a script sees its own folder only

from kept import cache

VERSIONS = Path(__file__).with_name("versions.toml")
JOBS = 2  # a compiler takes up to a gigabyte, and the machine has other work
FILES = "files"  # what we take from a module besides programs lies in a folder by component, then by what it is for
NOWHERE = "v0.0.0"  # how a go.mod asks for a library that it takes from a folder beside it, which its published form lacks
SECONDS_PER_PROGRAM = 3600.0


class CannotBuild(Exception):
    """What is missing and how to get it; shown as one sentence."""


@dataclass(frozen=True, slots=True)
class Component:
    """One published module with the programs and files that we take from it."""

    name: str
    module: str
    version: str
    programs: Mapping[str, str]  # program -> package inside the module; none where only files are taken
    siblings: str | None = None  # the published version of the libraries that lie beside it in its repository
    stamps: Mapping[str, str] | None = None  # variables set by the linker, as the project's own release does
    files: Mapping[str, tuple[str, ...]] | None = None  # what for -> patterns of files inside the module


@dataclass(frozen=True, slots=True)
class Recipe:
    go: tuple[int, ...]
    components: tuple[Component, ...]
    key: str

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(program for component in self.components for program in component.programs)


def recipe(path: Path = VERSIONS) -> Recipe:
    text = path.read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    go = raw.pop("go")
    components = tuple(
        Component(
            name=name,
            module=row["module"],
            version=row["version"],
            programs=row.get("programs", {}),
            siblings=row.get("siblings"),
            stamps=row.get("stamps"),
            files=row.get(FILES),
        )
        for name, row in raw.items()
    )
    # The key is made of what changes a program: neither comments nor the files that lie beside the programs.
    values = [{name: row[name] for name in row if name != FILES} for row in raw.values() if row.get("programs")]
    kubernetes = next(one.version for one in components if one.name == "kubernetes")
    return Recipe(
        _numbers(go), components, f"kubernetes-{kubernetes}-{_digest([values, platform.system(), platform.machine()])}"
    )


def _digest(values: object) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def cache_folder(made: Recipe, environ: Mapping[str, str] = os.environ) -> Path:
    return cache(environ) / "cluster" / made.key


def find(program: str, folder: Path, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The person's own programs win, then what was built here; Debian's etcd serves as well as ours."""
    places = [Path(given) for given in (environ.get("KUBEBUILDER_ASSETS"),) if given] + [folder]
    for place in places:
        if os.access(place / program, os.X_OK) and (place / program).is_file():
            return place / program
    on_path = shutil.which(program, path=environ.get("PATH")) if program == "etcd" else None
    return Path(on_path) if on_path else None


def files_folder(component: Component, folder: Path) -> Path:
    """Where the component's files are once collected: other patterns or another version have another folder."""
    return folder / FILES / f"{component.name}-{component.version}-{_digest(component.files)}"


def build(made: Recipe, folder: Path, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Builds what is missing; a line per thing built. Two builders at once wait for each other."""
    wanted = {one.name: _missing(one, folder, environ) for one in made.components}
    if not any(wanted.values()):
        return []
    go = _go(made.go, environ)
    folder.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with _alone(folder):
        for component in made.components:
            for thing in _missing(component, folder, environ):
                started = time.monotonic()
                print(f"building {thing} of {component.module} {component.version} ...", file=sys.stderr, flush=True)
                with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as scratch:
                    source = _module(go, component, Path(scratch), environ)
                    if thing == FILES:
                        _collect(component, source, folder, Path(scratch))
                    else:
                        _compile(go, component, thing, folder, Path(scratch), environ)
                lines.append(f"{component.name} {component.version}: {thing} in {time.monotonic() - started:.0f} s")
    return lines


def _missing(component: Component, folder: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The programs that are nowhere, and the files where the component has some and they are not there."""
    programs = tuple(program for program in component.programs if find(program, folder, environ) is None)
    collected = not component.files or files_folder(component, folder).is_dir()
    return programs if collected else (FILES, *programs)


def _module(go: Path, component: Component, scratch: Path, environ: Mapping[str, str]) -> Path:
    """A module of our own that asks for the component's, which is downloaded; the folder of its source."""
    where = scratch / "module"
    where.mkdir()
    (where / "go.mod").write_text("module chipwise.test/cluster\n", encoding="utf-8")
    fetched = json.loads(_run(go, ["mod", "download", "-json", f"{component.module}@v{component.version}"], where, environ))
    published = json.loads(_run(go, ["mod", "edit", "-json", fetched["GoMod"]], where, environ))
    lines = ["module chipwise.test/cluster", f"go {published['Go']}", f"require {component.module} v{component.version}"]
    lines += [f"godebug {one['Key']}={one['Value']}" for one in published.get("Godebug") or ()]
    asked = {one["Path"]: one["Version"] for one in published.get("Require") or ()}
    for replaced in published.get("Replace") or ():
        old, new = replaced["Old"], replaced["New"]
        if not new["Path"].startswith("."):
            lines.append(f"replace {old['Path']} => {new['Path']} {new['Version']}")
        elif asked.get(old["Path"]) == NOWHERE:
            if component.siblings is None:
                raise CannotBuild(f"{component.module} takes {old['Path']} from its own repository: give `siblings` a version")
            lines.append(f"replace {old['Path']} => {old['Path']} v{component.siblings}")
    (where / "go.mod").write_text("\n".join(lines) + "\n", encoding="utf-8")
    source = Path(fetched["Dir"])
    sums = source / "go.sum"
    if (
        sums.is_file()
    ):  # the checksums that the project itself recorded: vouched for with its source, and fewer questions to ask
        (where / "go.sum").write_bytes(sums.read_bytes())
    return source


def _compile(go: Path, component: Component, program: str, folder: Path, scratch: Path, environ: Mapping[str, str]) -> None:
    package = component.programs[program]
    target = component.module if package == "." else f"{component.module}/{package}"
    stamps = " ".join(f"-X {variable}={value}" for variable, value in (component.stamps or {}).items())
    built = scratch / program
    arguments = ["build", f"-p={JOBS}", "-trimpath", "-buildvcs=false", f"-ldflags=-s -w {stamps}", f"-o={built}", target]
    _run(go, arguments, scratch / "module", environ)
    os.replace(built, folder / program)


def _collect(component: Component, source: Path, folder: Path, scratch: Path) -> None:
    """The component's files, whole or not at all."""
    collected = scratch / FILES
    for purpose, patterns in (component.files or {}).items():
        (collected / purpose).mkdir(parents=True)
        for pattern in patterns:
            found = sorted(source.glob(pattern))
            if not found:
                raise CannotBuild(f"{component.module} {component.version} has no {pattern}")
            for path in found:
                (collected / purpose / path.name).write_bytes(
                    path.read_bytes()
                )  # Go's module cache is read-only: no copy of modes
    (folder / FILES).mkdir(exist_ok=True)
    os.replace(collected, files_folder(component, folder))


def _run(go: Path, arguments: list[str], where: Path, environ: Mapping[str, str]) -> str:
    """Go, with the person's own proxy and checksum settings; cgo is off so that the programs run on any libc."""
    settings = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOMAXPROCS": str(JOBS), "CGO_ENABLED": "0"}
    try:
        done = subprocess.run(
            [go, *arguments],
            cwd=where,
            env={**environ, **settings},
            capture_output=True,
            text=True,
            timeout=SECONDS_PER_PROGRAM,
        )
    except subprocess.TimeoutExpired as expired:
        raise CannotBuild(f"`go {arguments[0]}` was not done after {SECONDS_PER_PROGRAM:.0f} s") from expired
    if done.returncode:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise CannotBuild(f"`go {' '.join(arguments[:2])}` failed:\n{said}")
    return done.stdout


def _go(needed: tuple[int, ...], environ: Mapping[str, str]) -> Path:
    """A Go that is new enough: on the path, or beside this Python, where `make tools` puts it."""
    seen: list[str] = []
    beside = str(Path(sys.executable).parent)
    for found in (shutil.which("go", path=environ.get("PATH")), shutil.which("go", path=beside)):
        if found is None:
            continue
        local = {**environ, "GOTOOLCHAIN": "local"}
        said = subprocess.run([found, "env", "GOVERSION"], env=local, capture_output=True, text=True, timeout=60, cwd="/")
        version = said.stdout.strip().removeprefix("go")
        if said.returncode == 0 and _numbers(version) >= needed:
            return Path(found)
        seen.append(version or "one that does not start")
    wanted = ".".join(map(str, needed))
    have = f"; found only {', '.join(dict.fromkeys(seen))}" if seen else ", and there is none"
    raise CannotBuild(f"the cluster's programs need Go {wanted} or newer to compile{have}. `make tools` gets one.")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version.split("-")[0].split("rc")[0])[:3]))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(".building-*"):  # of a build that was killed; nobody else is building now
            shutil.rmtree(left, ignore_errors=True)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the programs of the test cluster, once.")
    parser.add_argument("--list", action="store_true", help="say where each program is; build nothing")
    asked = parser.parse_args()
    made = recipe()
    folder = cache_folder(made)
    if not asked.list:
        os.nice(19)  # minutes of compiling; whatever else runs here goes first
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the compiler is ended with us
        try:
            for line in build(made, folder):
                print(line, flush=True)
        except CannotBuild as problem:
            print(f"make cluster: {problem}", file=sys.stderr)
            return 1
    for program in made.programs:
        print(f"{program}: {find(program, folder) or 'missing: run make cluster'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
