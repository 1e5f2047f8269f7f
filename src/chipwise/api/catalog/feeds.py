"""Brings outside facts in: fetch through a feed, check every row, store the snapshot whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import cast

from chipwise.api.session.wiring import Session
from chipwise.catalog.feed import Feed, FeedSettings, Report, Snapshot
from chipwise.catalog.integrity import Complaint, sound
from chipwise.catalog.load import load
from chipwise.errors import BadInput, NoResult, UnknownName
from chipwise.spelling import nearest

REFRESHED = ("aws", "azure", "gcp")
# Credentials and addresses come from the environment as each provider's own tools read them.
_FROM_ENVIRONMENT = {"gcp": {"api_key": "GOOGLE_API_KEY"}}


@dataclass(frozen=True, slots=True)
class Brought:
    """What a refresh or an import brought, and what of it was left out."""

    snapshot: Snapshot
    path: Path
    refused: tuple[Complaint, ...]


def refresh(session: Session, provider: str, regions: tuple[str, ...], options: Mapping[str, str], report: Report) -> Brought:
    """Fetch a provider's machines and prices through its own API into the data directory."""
    name = session.names.provider_or_none(provider) or provider
    if name not in REFRESHED:
        known = ", ".join(REFRESHED)
        raise UnknownName(
            "feed", provider, nearest(provider, REFRESHED), remedy=f"Feeds: {known}. Others: chipwise catalog import."
        )
    told = {
        option: os.environ[variable] for option, variable in _FROM_ENVIRONMENT.get(name, {}).items() if os.environ.get(variable)
    }
    return _bring(session, name, name, regions, {**told, **options}, report)


def import_file(session: Session, kind: str, path: Path, options: Mapping[str, str], report: Report) -> list[Brought]:
    """Import a SkyPilot catalog directory (every cloud in it) or an inventory CSV of own machines."""
    if not path.exists():
        raise BadInput(f"{path} does not exist.", remedy="Give a SkyPilot catalog directory or an inventory CSV.")
    given = {**options, "path": str(path)}
    if kind == "inventory":
        return [_bring(session, kind, options.get("provider") or "onprem", (), given, report)]
    from chipwise.adapters.feeds.skypilot import clouds

    wanted = [options["cloud"]] if options.get("cloud") else clouds(str(path))
    return [_bring(session, kind, cloud, (), {**given, "cloud": cloud}, report) for cloud in wanted]


def _bring(
    session: Session, feed_name: str, provider: str, regions: tuple[str, ...], options: Mapping[str, str], report: Report
) -> Brought:
    from chipwise.adapters.stores import snapshots

    feed = cast(Feed, import_module(f"chipwise.adapters.feeds.{feed_name}"))
    known = tuple(machine for machine in session.catalog.machines if machine.provider == provider)
    settings = FeedSettings(session.today, regions, options, session.names.chip_index(), known)
    # Machines of the user's own files may go away with the file: a snapshot stands on the package and on itself.
    packaged = load(prices=False)
    snapshot, refused = sound(feed.fetch(settings, report), session.catalog.chips, packaged.machine_index)
    if not snapshot.offers and not snapshot.machines:
        reasons = "; ".join((*snapshot.skipped[:3], *map(str, refused[:3])))
        raise NoResult(f"{feed_name} brought no machine and no price for {provider}.", remedy=reasons or None)
    # What the package says in the same words stays the package's: a correction shipped later must reach everybody.
    ours = {machine.key: machine for machine in session.catalog.machines if machine.key in packaged.machine_index}
    machines = tuple(machine for machine in snapshot.machines if ours.get(machine.key) != machine)
    whole = _with_other_regions(session, replace(snapshot, machines=machines), regions)
    return Brought(snapshot, snapshots.save(session.config.feeds_dir, whole), refused)


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
