"""Brings outside facts in: fetch through a feed, check every row, store the snapshot whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from chipwise import plugins
from chipwise.catalog.feed import Feed, FeedSettings, Imports, Report, Snapshot
from chipwise.catalog.integrity import Complaint, sound
from chipwise.catalog.load import load
from chipwise.errors import BadInput, NoResult, UnknownName
from chipwise.spelling import nearest

if TYPE_CHECKING:
    from chipwise.api.session.wiring import Session

FOLDER, GROUP = "chipwise.adapters.feeds", "chipwise.feeds"
MINUTES = 30  # for all that a provider is asked; whole price lists take a few


def refreshed() -> tuple[str, ...]:
    """Feeds that ask a provider, as the user types them."""
    return tuple(name for name in plugins.names(FOLDER, GROUP) if not isinstance(_feed(name), Imports))


def imported() -> tuple[str, ...]:
    """Feeds that read files of the user."""
    return tuple(name for name in plugins.names(FOLDER, GROUP) if isinstance(_feed(name), Imports))


def options_of(name: str) -> tuple[str, ...]:
    return tuple(_feed(name).OPTIONS)


@cache
def _feed(name: str) -> Feed:
    return cast(Feed, plugins.load(FOLDER, GROUP, name))


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What a refresh or an import brought, and what of it was left out."""

    snapshot: Snapshot
    path: Path
    refused: tuple[Complaint, ...]


def refresh(
    session: Session, provider: str, regions: tuple[str, ...], options: Mapping[str, str], report: Report
) -> RefreshResult:
    """Fetch a provider's machines and prices through its own API into the data directory. The option `minutes` says how long
    that may take in all."""
    from chipwise.adapters.wire.options import whole_number

    known = refreshed()
    name = plugins.typed(provider)
    if name not in known:
        name = session.names.provider_or_none(provider) or provider
    if name not in known:
        raise UnknownName(
            "feed", provider, nearest(provider, known), remedy=f"Feeds: {', '.join(known)}. Others: chipwise catalog import."
        )
    feed = _feed(name)
    # Credentials and addresses come from the environment as each provider's own tools read them.
    variables: Mapping[str, str] = getattr(feed, "ENVIRONMENT", {})
    defaults = {option: os.environ[variable] for option, variable in variables.items() if os.environ.get(variable)}
    limit_s = 60.0 * whole_number(options, "minutes", MINUTES, 1, 24 * 60)
    own = {**defaults, **{option: value for option, value in options.items() if option != "minutes"}}
    return _bring(session, name, getattr(feed, "PROVIDER", name), regions, own, report, limit_s)


def import_file(
    session: Session, kind: str | None, path: Path, options: Mapping[str, str], report: Report
) -> list[RefreshResult]:
    """Import a SkyPilot catalog directory (every cloud in it) or an inventory CSV of own machines. Without a kind that feed
    takes it which says that it can."""
    if not path.exists():
        raise BadInput(f"{path} does not exist.", remedy="Give a SkyPilot catalog directory or an inventory CSV.")
    name = plugins.typed(kind) if kind is not None else _taking(path)
    if name not in imported():
        raise UnknownName("feed", name, nearest(name, imported()), remedy=f"Files of: {', '.join(imported())}.")
    parts = cast(Imports, _feed(name)).parts({**options, "path": str(path)})
    return [_bring(session, name, provider, (), given, report) for provider, given in parts]


def _taking(path: Path) -> str:
    candidates = [name for name in imported() if cast(Imports, _feed(name)).takes(path)]
    if len(candidates) != 1:
        listing = " or ".join(candidates) or "no feed"
        raise BadInput(f"{path} could be of {listing}.", remedy=f"Say which with --as: {', '.join(candidates or imported())}.")
    return candidates[0]


def _bring(
    session: Session,
    feed_name: str,
    provider: str,
    regions: tuple[str, ...],
    options: Mapping[str, str],
    report: Report,
    limit_s: float | None = None,
) -> RefreshResult:
    """`limit_s`: of a feed that asks a provider; reading files takes as long as they are large."""
    from chipwise.adapters.stores import snapshots
    from chipwise.adapters.wire.deadline import within

    feed = _feed(feed_name)
    known = tuple(machine for machine in session.catalog.machines if machine.provider == provider)
    settings = FeedSettings(
        today=session.today, regions=regions, options=options, chip_of=session.names.chip_index(), known=known
    )
    # Machines of the user's own files may go away with the file: a snapshot stands on the package and on itself.
    packaged = load(prices=False)
    if limit_s is None:
        fetched = feed.fetch(settings, report)
    else:
        fetched = within(limit_s, feed_name, lambda step: feed.fetch(settings, step), report)
    snapshot, refused = sound(fetched, session.catalog.chips, packaged.machine_index)
    if not snapshot.offers and not snapshot.machines:
        reasons = "; ".join((*snapshot.skipped[:3], *map(str, refused[:3])))
        raise NoResult(f"{feed_name} brought no machine and no price for {provider}.", remedy=reasons or None)
    # What the package says in the same words stays the package's: a correction shipped later must reach everybody.
    packaged_machines = {machine.key: machine for machine in session.catalog.machines if machine.key in packaged.machine_index}
    machines = tuple(machine for machine in snapshot.machines if packaged_machines.get(machine.key) != machine)
    combined = _with_other_regions(session, replace(snapshot, machines=machines), regions)
    return RefreshResult(snapshot, snapshots.save(session.config.feeds_dir, combined), refused)


def _with_other_regions(session: Session, snapshot: Snapshot, regions: tuple[str, ...]) -> Snapshot:
    """A refresh of some regions keeps what an earlier one brought of the others, each price with its own date."""
    for old in session.stored if regions else ():
        if old.provider == snapshot.provider:
            offers = tuple(offer for offer in old.offers if offer.region not in regions)
            machines = {machine.key: machine for machine in (*old.machines, *snapshot.machines)}
            places = {region.key: region for region in (*old.regions, *snapshot.regions)}
            return replace(
                snapshot, machines=tuple(machines.values()), offers=(*offers, *snapshot.offers), regions=tuple(places.values())
            )
    return snapshot


def forget(session: Session, provider: str) -> None:
    """Remove what a refresh or an import brought; the packaged facts are there again."""
    from chipwise.adapters.stores import snapshots

    name = session.names.provider_or_none(provider) or provider
    if not snapshots.remove(session.config.feeds_dir, name):
        known = snapshots.stored(session.config.feeds_dir)
        raise UnknownName(
            "stored provider", provider, nearest(provider, known), remedy=f"Stored: {', '.join(known) or 'none'}."
        )
