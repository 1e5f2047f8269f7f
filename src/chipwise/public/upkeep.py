"""The verbs that tidy up after jobs and set up what they need: this machine's disk, accounts, clusters, a team's record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from chipwise.errors import BadInput
from chipwise.public.calling import verbs
from chipwise.public.jobs import Job, JobVerbs
from chipwise.public.records import Record, Table


@verbs
class UpkeepVerbs(JobVerbs):
    """What jobs leave behind, and what they need."""

    __slots__ = ()

    def forget(
        self,
        *jobs: str | Job,
        older_than: str | float | None = None,
        checkpoints: bool = False,
        damaged: bool = False,
        dry_run: bool = False,
    ) -> Table:
        """Remove logs, checkpoints and folders of jobs that are over from this machine; the record still lists them.

        With `damaged` the named jobs, whose record is damaged, are given up instead.

        >>> cw.forget(older_than="30d", dry_run=True)
        """
        from chipwise.api.running import forgetting, giving_up
        from chipwise.units import parse_seconds

        names = [job.id if isinstance(job, Job) else job for job in jobs]
        if damaged:
            if older_than is not None or checkpoints:
                raise BadInput("damaged takes no jobs.", remedy="Name the jobs, and forget what they left afterwards.")
            given_up = giving_up.give_up(self.api, names, dry_run=dry_run)
            return Table({"id": one.damaged.id, "text": one.instead or one.damaged.sentence} for one in given_up)
        older_s = None if older_than is None else parse_seconds(older_than)
        forgotten = forgetting.forget(self.api, names, older_s, checkpoints=checkpoints, dry_run=dry_run)
        return Table({**asdict(job), "phase": str(job.phase)} for job in forgotten)

    def prepare(
        self, engine: str = "ec2", *, region: str | None = None, keep: str | None = None, dry_run: bool = False
    ) -> Record:
        """Make what an account needs before jobs run on EC2; with `dry_run` only say what is missing.

        >>> cw.prepare(region="eu-west-1", keep="s3://my-bucket/chipwise", dry_run=True).parts
        """
        from chipwise.api.running import preparing

        fields = {name: value for name, value in (("region", region), ("keep", keep)) if value}
        prepared = preparing.prepare(self.api, engine, fields, dry_run=dry_run)
        parts = [{"state": state, "kind": kind, "name": name} for state, kind, name in prepared.parts]
        view = {"parts": parts, "engine": {engine: dict(prepared.fields)}, "complete": prepared.complete}
        return Record({**view, "why": prepared.reason, "policy": prepared.policy})

    def reap(self, engine: str | None = None, *, dry_run: bool = False) -> Table:
        """End machines and objects at clusters and clouds that belong to no live job of this record.

        >>> cw.reap(dry_run=True)
        """
        from chipwise.api.running import reaping

        reaped = reaping.reap(self.api, engine, dry_run=dry_run)
        return Table(map(asdict, reaped.left), notes=[f"Not checked: {reason}" for reason in reaped.not_reached])

    def members(self) -> Table:
        """Who is what in a team's record.

        >>> cw.members()
        """
        from chipwise.api.running import membership

        return Table(map(asdict, membership.listed(self.api)))

    def members_add(self, login: str, *, team: str = "", role: str = "member", place: str = "") -> None:
        """Give somebody a role in a team's record: member, lead, controller or admin.

        >>> cw.members_add("mia", team="vision")
        """
        from chipwise.api.running import membership

        membership.add(self.api, login, team, role, place)

    def members_remove(self, login: str, *, team: str = "", role: str = "member", place: str = "") -> None:
        """Take a role in a team's record away from somebody.

        >>> cw.members_remove("mia", team="vision")
        """
        from chipwise.api.running import membership

        membership.remove(self.api, login, team, role, place)

    def members_protect(self) -> list[str]:
        """Keep any login from stopping a team's database by its locks; names other databases of the server that are still open.

        The address of the record must name a superuser of the server.

        >>> cw.members_protect()
        """
        from chipwise.api.running import membership

        return membership.protect(self.api)

    def places(self) -> Table:
        """Where you may run jobs of a team's record, and what you opened to others.

        >>> cw.places()
        """
        from chipwise.api.running import membership

        return Table(map(asdict, membership.grants(self.api)))

    def places_allow(self, place: str, *, user: str = "", team: str = "", secrets: Sequence[str] = ()) -> None:
        """Let a user or a team run jobs at a place for which you act, and read those stored secrets.

        >>> cw.places_allow("local:gpu1:/srv/chipwise", team="vision")
        """
        from chipwise.api.running import membership

        membership.allow(self.api, place, user, team, tuple(secrets))

    def places_refuse(self, place: str, *, user: str = "", team: str = "") -> None:
        """Take that right away again.

        >>> cw.places_refuse("local:gpu1:/srv/chipwise", team="vision")
        """
        from chipwise.api.running import membership

        membership.refuse(self.api, place, user, team)
