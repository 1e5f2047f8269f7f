"""The builder of the test cluster, with a Go that is played by a shell script."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import install_tools
from cluster import build

GO = """#!/bin/sh
case "$1 $2" in
"env GOVERSION") echo "$PLAYED_VERSION" ;;
"mod download") printf '{"Dir": "%s", "GoMod": "%s/go.mod"}' "$PLAYED" "$PLAYED" ;;
"mod edit") cat "$PLAYED/edit.json" ;;
build*)
    echo "$@" >> "$PLAYED/builds"
    cp go.mod go.sum "$PLAYED/seen"
    for one; do case "$one" in -o=*) out="${one#-o=}" ;; esac; done
    printf '#!/bin/sh\\n' > "$out"
    [ -z "$PLAYED_FAILS" ] || { echo "no such package" >&2; exit 1; }
    chmod +x "$out" ;;
esac
"""
VERSIONS = """
go = "1.20.1"

[kubernetes]
module = "example.com/kubernetes"
version = "1.2.3"
siblings = "0.2.3"
programs = { server = "cmd/server", store = "." }
stamps = { "example.com/version" = "v1.2.3" }
files = { definitions = ["crds/*.yaml"] }
"""
PUBLISHED = {
    "Go": "1.20",
    "Require": [{"Path": "example.com/beside", "Version": "v0.0.0"}, {"Path": "example.com/apart", "Version": "v1.0.0"}],
    "Replace": [
        {"Old": {"Path": "example.com/beside"}, "New": {"Path": "./staging/beside"}},
        {"Old": {"Path": "example.com/apart"}, "New": {"Path": "../apart"}},
        {"Old": {"Path": "example.com/old"}, "New": {"Path": "example.com/new", "Version": "v2.0.0"}},
    ],
}


class Bench:
    """A played Go, a module that it knows, and a cache."""

    def __init__(self, folder: Path) -> None:
        self.played, tools = folder / "played", folder / "bin"
        (self.played / "crds").mkdir(parents=True)
        (self.played / "seen").mkdir()
        (self.played / "crds" / "a.yaml").write_text("kind: A\n")
        (self.played / "go.sum").write_text("recorded\n")
        (self.played / "edit.json").write_text(json.dumps(PUBLISHED))
        tools.mkdir()
        (tools / "go").write_text(GO)
        (tools / "go").chmod(0o755)
        (folder / "versions.toml").write_text(VERSIONS)
        self.recipe = build.recipe(folder / "versions.toml")
        path = f"{tools}:/usr/bin:/bin"
        self.environ = {"PATH": path, "PLAYED": str(self.played), "PLAYED_VERSION": "go1.21.0", "CHIPWISE_CACHE": str(folder)}
        self.cache = build.cache_folder(self.recipe, self.environ)

    def build(self, **environ: str) -> list[str]:
        return build.build(self.recipe, self.cache, {**self.environ, **environ})

    def builds(self) -> list[str]:
        log = self.played / "builds"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_what_was_built_is_not_built_again(bench: Bench) -> None:
    assert len(bench.build()) == 3
    assert _left(bench.cache) == {"server", "store", "files"}
    assert bench.build() == []
    assert len(bench.builds()) == 2


def test_a_program_is_compiled_from_its_package_with_its_version(bench: Bench) -> None:
    bench.build()
    server, store = bench.builds()
    assert server.endswith("example.com/kubernetes/cmd/server")
    assert store.endswith("example.com/kubernetes")
    assert "-X example.com/version=v1.2.3" in server


def test_only_libraries_that_lie_beside_the_module_get_its_siblings_version(bench: Bench) -> None:
    bench.build()
    replaced = re.findall(r"^replace (.*)$", (bench.played / "seen" / "go.mod").read_text(), flags=re.MULTILINE)
    assert replaced == ["example.com/beside => example.com/beside v0.2.3", "example.com/old => example.com/new v2.0.0"]
    assert (bench.played / "seen" / "go.sum").read_text() == "recorded\n"


def test_a_failed_compilation_leaves_nothing_half_done(bench: Bench) -> None:
    with pytest.raises(build.CannotBuild, match="no such package"):
        bench.build(PLAYED_FAILS="yes")
    assert _left(bench.cache) == {"files"}


def test_what_a_killed_build_left_is_cleared_by_the_next(bench: Bench) -> None:
    (bench.cache / ".building-killed").mkdir(parents=True)
    (bench.cache / ".building-killed" / "server").write_text("half")
    bench.build()
    assert _left(bench.cache) == {"server", "store", "files"}


def test_files_that_the_module_lacks_are_named(bench: Bench) -> None:
    (bench.played / "crds" / "a.yaml").unlink()
    with pytest.raises(build.CannotBuild, match=r"example.com/kubernetes 1.2.3 has no crds/\*.yaml"):
        bench.build()
    assert not (bench.cache / "files").exists()


@pytest.mark.parametrize("version", ["go1.20.0", "go1.20", "go1.9.9"])
def test_a_go_that_is_too_old_is_named_with_the_remedy(bench: Bench, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(bench.played / "python"))
    with pytest.raises(build.CannotBuild, match=rf"1\.20\.1 or newer.*{version[2:]}.*`make tools` gets one"):
        bench.build(PLAYED_VERSION=version)


def test_ones_own_programs_come_first_and_are_not_built(bench: Bench, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "server").write_text("#!/bin/sh\n")
    (own / "server").chmod(0o755)
    environ = {**bench.environ, "KUBEBUILDER_ASSETS": str(own)}
    bench.build(KUBEBUILDER_ASSETS=str(own))
    assert not (bench.cache / "server").exists()
    assert build.find("server", bench.cache, environ) == own / "server"
    assert build.find("store", bench.cache, environ) == bench.cache / "store"


@pytest.mark.parametrize(
    ("environ", "where"),
    [
        ({"CHIPWISE_CACHE": "/a"}, "/a/cluster"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/chipwise/cluster"),
        ({}, str(Path.home() / ".cache/chipwise/cluster")),
    ],
)
def test_the_cache_is_where_the_person_keeps_caches(environ: Mapping[str, str], where: str) -> None:
    made = build.recipe()
    assert build.cache_folder(made, environ) == Path(where) / made.key


def test_another_version_has_another_folder_and_a_comment_has_not(tmp_path: Path) -> None:
    keys = []
    for number, text in enumerate([VERSIONS, VERSIONS + "# a word\n", VERSIONS.replace("1.2.3", "1.2.4")]):
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        keys.append(build.recipe(path).key)
    assert keys[0] == keys[1] != keys[2]


def test_the_go_that_make_tools_gets_compiles_the_cluster() -> None:
    [go] = [tool for tool in install_tools.tools() if tool.name == "Go"]
    needed = build.recipe().go
    assert tuple(map(int, go.at_least.split("."))) == needed
    assert tuple(map(int, go.pip.split("==")[1].split("."))) >= needed


def test_a_tool_that_cannot_be_got_is_named_with_the_way_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: "/usr/bin/apt-get" if name == "apt-get" else None)
    tool = install_tools.Tool("Abacus", ["abacus"], "counts", debian=["abacus-bin"])
    said = install_tools.get(tool, tmp_path)
    assert said.startswith("Abacus: NOT HERE (counts): only root may run `apt-get install")
    assert "abacus-bin" in said
