"""Gets the programs that the end-to-end tests use and that are not here: `make tools`.

What there is, is left alone. What cannot be got is named with the way to get it by hand, and the rest goes on: a test that
needs it says so and is skipped, so a missing tool is a gap in the proof and not a failure of this command.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kept import cache

TOOLS = Path(__file__).with_name("tools.toml")
SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    program: Sequence[str]
    why: str
    at_least: str = ""
    version: Sequence[str] = ()
    pip: str = ""
    npm: str = ""
    go: str = ""
    venv: Sequence[str] = ()
    archives: Sequence[str] = ()
    debian: Sequence[str] = ()
    make: str = ""


class CannotGet(Exception):
    """Why a way does not work here, in half a sentence."""


def tools(path: Path = TOOLS) -> list[Tool]:
    rows: list[dict[str, Any]] = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]
    return [Tool(**row) for row in rows]


def folder() -> Path:
    """Where programs go that are no packages of this Python."""
    return cache() / "tools"


def found(tool: Tool, beside: Path) -> Path | None:
    """The program, where it is new enough."""
    if tool.archives:
        kept = folder() / tool.program[0]
        return kept if len(list(kept.glob("*.tgz"))) >= len(tool.archives) else None
    if tool.venv:
        made = folder() / tool.program[0] / "bin" / "python"
        return made if (made.parent.parent / ".complete").exists() else None
    for name in tool.program:
        for place in (None, str(beside), str(folder() / "bin")):
            at = shutil.which(name, path=place)
            if at and (not tool.at_least or _version(at, tool.version) >= _numbers(tool.at_least)):
                return Path(at)
    return None


def _version(program: str, arguments: Sequence[str]) -> tuple[int, ...]:
    said = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, cwd="/")
    return _numbers(said.stdout) if said.returncode == 0 else ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text)[:3]))


def get(tool: Tool, beside: Path) -> str:
    """Tries each way in turn; what was done, or why none of them works."""
    reasons: list[str] = []
    ways = (
        ("pip", tool.pip),
        ("npm", tool.npm),
        ("archives", tool.archives),
        ("go", tool.go),
        ("venv", tool.venv),
        ("make", tool.make),
        ("debian", tool.debian),
    )
    for way, given in ways:
        if not given:
            continue
        if way == "make":
            return f"{tool.name}: built by `make {given}`" + (f", or Debian's {' '.join(tool.debian)}" if tool.debian else "")
        try:
            if way == "go":
                _go(tool)
            elif way == "archives":
                _archives(tool)
            elif way == "venv":
                _environment(tool)
            else:
                _install(way, given, beside)
        except CannotGet as reason:
            reasons.append(str(reason))
        else:
            at = found(tool, beside)
            return f"{tool.name}: installed, {at}" if at else f"{tool.name}: {given} was installed but has no {tool.program[0]}"
    return f"{tool.name}: NOT HERE ({tool.why}): {'; '.join(reasons)}"


def _install(way: str, given: str | Sequence[str], beside: Path) -> None:
    packages = [given] if isinstance(given, str) else list(given)
    if way == "pip":
        _run([sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages])
    elif way == "npm":
        if shutil.which("npm") is None:
            raise CannotGet(f"{' '.join(packages)} needs npm, which is not here")
        _run(["npm", "install", "--global", f"--prefix={beside.parent}", "--no-fund", "--no-audit", *packages])
    else:
        line = f"apt-get install --yes --no-install-recommends {' '.join(packages)}"
        if shutil.which("apt-get") is None:
            raise CannotGet(f"Debian's package {' '.join(packages)} has it, and this is no Debian")
        if os.geteuid() != 0:
            raise CannotGet(f"only root may run `{line}`")
        try:
            _run(line.split())
        except CannotGet:
            _run(["apt-get", "update"])  # the list of packages may be old, or not there at all
            _run(line.split())


def _go(tool: Tool) -> None:
    """Built into a folder of its own first: the module's last part need not be the program's name."""
    beside = Path(sys.executable).parent
    go = shutil.which("go") or shutil.which("go", path=str(beside))
    if go is None:
        raise CannotGet(f"{tool.go} needs Go, which is not here")
    place = folder() / "bin"
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as made:
        _run([go, "install", tool.go], GOBIN=made)
        built = next(Path(made).iterdir(), None)
        if built is None:
            raise CannotGet(f"{tool.go} built nothing")
        built.replace(place / tool.program[0])


def _archives(tool: Tool) -> None:
    """Packages of npm as they come: they are read, and nothing in them is run."""
    if shutil.which("npm") is None:
        raise CannotGet(f"{' '.join(tool.archives)} needs npm, which is not here")
    place = folder() / tool.program[0]
    place.mkdir(parents=True, exist_ok=True)
    _run(["npm", "pack", "--silent", f"--pack-destination={place}", *tool.archives])


def _environment(tool: Tool) -> None:
    """Of its own, for packages that are too large or too demanding for ours. One that was cut off is made anew."""
    place = folder() / tool.program[0]
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", str(place)])
    _run([str(place / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *tool.venv])
    (place / ".complete").touch()


def _run(command: list[str], **more: str) -> None:
    settings = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", **more}
    try:
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CannotGet(f"`{' '.join(command[:3])}`: {problem}") from problem
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise CannotGet(f"`{Path(command[0]).name} {' '.join(command[1:])}` failed: {said[-1]}")


def main() -> int:
    beside = Path(sys.executable).parent
    for tool in tools():
        at = found(tool, beside)
        print(f"{tool.name}: {at}" if at else get(tool, beside), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
