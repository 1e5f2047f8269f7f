"""What every verb stands on: the directories and the day, and the catalog with the user's files, read when first needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session as ApiSession

_MOST_PLANS = 4  # that are remembered in full, each with all of its candidates


@dataclass(frozen=True, slots=True)
class Opened:
    """Where the user's files are, and which day it is. None: as the environment says, looked up at every call."""

    config_dir: Path | None = None
    data_dir: Path | None = None
    as_of: date | None = None
    _cache: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def api(self) -> ApiSession:
        """Opened once, and again when the directories or the day are others."""
        from chipwise.api.session.config import Config
        from chipwise.api.session.wiring import Session, surroundings

        config, today = surroundings()
        wanted = (Config(self.config_dir or config.config_dir, self.data_dir or config.data_dir), self.as_of or today)
        if self._cache.get("of") != wanted:
            self.reload()
            self._cache["api"] = Session(*wanted, [])
            self._cache["of"] = wanted
        session: ApiSession = self._cache["api"]
        return session

    @property
    def problems(self) -> tuple[str, ...]:
        """What of the user's own data could not be read so far."""
        return tuple(self.api.problems)

    def reload(self) -> None:
        """Forget what was read: the next call reads the user's files and the stored prices anew."""
        self._cache.clear()

    def remembered(self, key: object) -> Any:
        """What was kept under this key with `remember`; None: nothing."""
        return self._cache.get("plans", {}).get((self.api.config, self.api.today, key))

    def remember(self, key: object, value: Any) -> None:
        plans = self._cache.setdefault("plans", {})
        plans[self.api.config, self.api.today, key] = value
        while len(plans) > _MOST_PLANS:
            del plans[next(iter(plans))]

    def __reduce__(self) -> tuple[type[Self], tuple[Path | None, Path | None, date | None]]:
        return type(self), (self.config_dir, self.data_dir, self.as_of)
