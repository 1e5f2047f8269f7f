"""Where the user's files are: the config directory (written by people) and the data directory (written by us)."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from chipwise.errors import BadInput


@dataclass(frozen=True, slots=True)
class Config:
    config_dir: Path
    data_dir: Path

    @property
    def catalog_dir(self) -> Path:
        """YAML files of the user's own chips, machines, regions, offers and discounts."""
        return self.config_dir / "catalog"

    @property
    def models_dir(self) -> Path:
        """YAML files of the user's own models."""
        return self.config_dir / "models"

    @property
    def feeds_dir(self) -> Path:
        """One snapshot per refreshed or imported provider."""
        return self.data_dir / "feeds"

    @property
    def calibration(self) -> Path:
        """What was fitted to the user's own runs."""
        return self.data_dir / "calibration.json"

    @property
    def run_dir(self) -> Path:
        """Folders of jobs that run on this machine: orders, logs, progress."""
        return self.data_dir / "run"

    @property
    def record(self) -> Path:
        """Jobs and what happened to them, where no team's database is set."""
        return self.data_dir / "record.db"

    @property
    def queue(self) -> Path:
        """What teams may hold at once, written by people."""
        return self.config_dir / "queue.yaml"

    @property
    def engines(self) -> Path:
        """Clusters and accounts by name, written by people."""
        return self.config_dir / "engines.yaml"

    @property
    def settings(self) -> Path:
        """What chipwise may do with the user's own data, written by people."""
        return self.config_dir / "settings.yaml"

    @property
    def secrets_dir(self) -> Path:
        """Files by name/key, each readable by its owner only."""
        return self.config_dir / "secrets"

    @property
    def profiles(self) -> Path:
        """Of the user's own chips."""
        return self.data_dir / "profiles"


def read_config(environ: dict[str, str] | None = None) -> Config:
    """`CHIPWISE_CONFIG_DIR` and `CHIPWISE_DATA_DIR` win; else what the platform is used to. A relative one begins in the
    directory where it was read first, and stays there when the program moves."""
    env = dict(os.environ) if environ is None else environ
    home = Path(env.get("HOME") or Path.home())
    if sys.platform == "darwin":
        config = data = home / "Library" / "Application Support" / "chipwise"
    else:
        config = _standard(env.get("XDG_CONFIG_HOME"), home / ".config") / "chipwise"
        data = _standard(env.get("XDG_DATA_HOME"), home / ".local" / "share") / "chipwise"
    if folder := env.get("CHIPWISE_CONFIG_DIR"):
        config = _directory("CHIPWISE_CONFIG_DIR", folder)
        if not config.is_dir():
            message = f"CHIPWISE_CONFIG_DIR names {folder[:100]}, which is not a directory."
            raise BadInput(message, remedy="Create it, or unset the variable.")
    if folder := env.get("CHIPWISE_DATA_DIR"):
        data = _directory("CHIPWISE_DATA_DIR", folder)
    config, data = _whole(config), _whole(data)
    nearest = next(one for one in (data, *data.parents) if os.path.lexists(one))
    if not nearest.is_dir():
        kind = "a link to nothing" if not nearest.exists() else "a file" if nearest.is_file() else "not a directory"
        wanted = "should be the data directory" if nearest == data else "the data directory should be in it"
        raise BadInput(f"{str(nearest)[:100]} is {kind}, and {wanted}.", remedy="Move it, or set CHIPWISE_DATA_DIR.")
    return Config(config, data)


@cache
def _whole(path: Path) -> Path:
    return path.absolute()


def _standard(value: str | None, usual: Path) -> Path:
    """Of the XDG standard: a value that is no absolute path counts as none."""
    return Path(value) if value and os.path.isabs(value) else usual


def _directory(variable: str, folder: str) -> Path:
    path = Path(os.path.expanduser(folder))  # of the text, since `./~` is no home
    try:
        if folder.startswith("~") and str(path).startswith("~"):
            raise ValueError("no such home")
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass  # told by whoever needs it
    except (OSError, ValueError) as error:  # ~nobody, a NUL, or longer than a path may be
        message = f"{variable} is {folder[:100]!r}, which cannot be a directory."
        raise BadInput(message, remedy="Give the path of a directory, or unset the variable.") from error
    return path
