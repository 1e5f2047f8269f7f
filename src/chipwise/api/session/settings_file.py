"""`settings.yaml` of the config directory: what chipwise may do with the user's own data.

    calibrate_from_runs: true       # finished runs of the record are fitted by `chipwise calibrate --from-runs`

All of it is off where the file does not say so.
"""

from __future__ import annotations

from pathlib import Path

from chipwise.errors import BadInput, InvalidFile, Problem

CALIBRATE_FROM_RUNS = "calibrate_from_runs"
KNOWN = (CALIBRATE_FROM_RUNS,)
_REMEDY = f"Allowed keys are {', '.join(KNOWN)}, each true or false."


def allows(path: Path, setting: str) -> bool:
    return _read(path).get(setting, False)


def check(path: Path, setting: str, action: str) -> None:
    """Raises where the user did not allow it. `action`: what would be done, for the message."""
    if not allows(path, setting):
        raise BadInput(f"Your configuration does not allow {action}.", remedy=f"Write `{setting}: true` into {path}.")


def _read(path: Path) -> dict[str, bool]:
    if not path.is_file():
        return {}
    from chipwise.files.source import FileKind, read_text, read_yaml

    kind = FileKind("settings", _REMEDY, 1000)
    text = read_text(path, kind)
    if all(line.lstrip().startswith("#") for line in text.splitlines() if line.strip()):
        return {}
    document = read_yaml(text, str(path), kind)
    problems = [*document.problems]
    problems += [
        Problem(str(name), "there is no such setting", allowed=", ".join(KNOWN)) for name in document.data if name not in KNOWN
    ]
    problems += [
        Problem(name, f"{document.data[name]!r:.60} is not a yes or no", allowed="true or false")
        for name in KNOWN
        if name in document.data and not isinstance(document.data[name], bool)
    ]
    if problems:
        raise InvalidFile(str(path), problems, remedy=_REMEDY)
    return {name: bool(value) for name, value in document.data.items()}
