"""Machines of EC2: each attempt is a fleet of its own, which ends itself when its command does.

What was ordered and what is over stands in S3 (`kept.py`), where every controller sees it at once; EC2 shows machines
late and forgets them after an hour. A start is one request with a token made from job and attempt, so that it gives the same
machines however often it is sent.

Where there is no machine to be had the attempt is over as lost, with the reason: the core places the next one, elsewhere or
later, and waits longer each time. Only a job without a deadline that also names on-demand places gets one of those at once when
there is no spot machine: that is what the built-in rule would decide, and with a deadline the policy is asked.
What it really got is told with the attempt, and it keeps it.

An engine with several regions starts each attempt in the one that its place names. What one region cannot give, or does not
allow, ends the attempt there while the job names places in others; spot machines elsewhere come before on-demand ones here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from chipwise.catalog.offer import Purchase
from chipwise.errors import BadInput, NotAllowed, NotFound, OutsideFailed, TryLater
from chipwise.runner.abilities import Leftover
from chipwise.runner.engine import Clear, End, Leave, Order, Room, Seen, Sight, Start, State
from chipwise.runner.job import Job, MachinePlace

from . import NAME, bringing, machine_choice, notices, seeing
from .cloud import Cloud, Image, InstanceData, Key, key_of
from .config import Config as Config
from .config import RegionConfig as RegionConfig
from .config import check
from .errors import LATER, AskedOtherwise, NoCapacity, of_code
from .kept import AttemptStore, Marks, was_ordered
from .regions import Regions, of_attempts
from .seeing import Instance
from .user_data import packed, user_data

LEADS_EVERY_S = 60.0


def connect(config: Config) -> Ec2:
    check(config)
    return Ec2(config)


@dataclass(slots=True)
class Ec2:
    config: Config
    name: str = NAME
    regions: Regions = field(init=False)
    store: AttemptStore = field(init=False)
    _led: float = field(init=False, default=-LEADS_EVERY_S)

    def __post_init__(self) -> None:
        self.regions = Regions(self.config)
        self.store = AttemptStore(self.regions.first)

    @property
    def place(self) -> str:
        return self.config.place

    # Looking

    def look(self, jobs: Sequence[Job], now: float) -> Seen:
        self._lead(jobs, now)
        machines = self.regions.machines(now)
        marks = self.store.marks()
        for cloud in self.regions.clouds.values():
            if cloud.config.queue_url and not self.regions.rests(cloud.config.region, now):
                self._take_notices(cloud, jobs, machines, marks, now)
        keys = {(job.id, len(job.attempts)): job for job in jobs}
        sights = {key: self._sight(key, job, machines.get(key, []), marks.get(key, {}), now) for key, job in keys.items()}
        alive = {
            key for key, found in machines.items() if any(one.state not in ("terminated", "shutting-down") for one in found)
        }
        left = {key for key in marks.keys() - keys.keys() if not self.regions.silent(self._ordered_in(key, marks[key]))}
        return Seen(now, sights, Room(), tuple(map(seeing.handle, sorted(alive - keys.keys() | left))))

    def _lead(self, jobs: Sequence[Job], now: float) -> None:
        """For machines that would end themselves were nobody there. Missing it once or twice does no harm."""
        if jobs and not 0.0 <= now - self._led < LEADS_EVERY_S:  # also after the clock was set back
            with suppress(TryLater):
                self.store.lead(now)
                self._led = now

    def _ordered_in(self, key: Key, marks: Marks) -> str:
        """The region in which an attempt's machines were asked for; empty where nobody wrote of it."""
        return (
            str(self.store.read(key, "order", marks["order"]).get("region") or self.config.region) if "order" in marks else ""
        )

    def _sight(self, key: Key, job: Job, machines: Sequence[Instance], marks: Marks, now: float) -> Sight:
        silent = self.regions.silent(self.regions.name_of(job))
        seen = seeing.sight(job, machines, marks, lambda mark: self.store.read(key, mark, marks[mark]), now, silent)
        if seen.state is not State.ABSENT:
            return seen
        if self.store.is_over(key):
            return Sight(State.LOST, reason="it was stopped before it had machines")
        return Sight(State.ABSENT)

    def _take_notices(
        self, cloud: Cloud, jobs: Sequence[Job], machines: Mapping[Key, Sequence[Instance]], marks: dict[Key, Marks], now: float
    ) -> None:
        """A queue that cannot be read now hides nothing for long: machines hear of their end themselves."""
        with suppress(TryLater):
            warnings, receipts = notices.receive(cloud, now)
            owners = {one.id: key for key, each in machines.items() for one in each}
            graces = {(job.id, len(job.attempts)): job.spec.grace_s for job in jobs}
            for notice in warnings:
                key = owners.get(notice.machine)
                if key is None:
                    if now - notice.moment < notices.YOUNG_S:
                        continue
                elif notice.kind == notices.WARNING or self.config.heeds_rebalance:
                    ahead = max(graces.get(key, 0.0) if notice.kind == notices.REBALANCE else 0.0, notices.AHEAD_S)
                    name = f"notice-{notice.machine}"
                    if key in graces and (name not in marks.get(key, {}) or notice.kind == notices.WARNING):
                        self.store.put(key, name, by=notice.moment + ahead, reason=notice.reason)
                        marks.setdefault(key, {})[name] = f"event {notice.moment}"
                receipts.append(notice.receipt)
            notices.remove(cloud, receipts)

    def check(self, job: Job) -> None:
        """What stands in the way of its first attempt, as far as looking can tell: nothing is asked for yet."""
        machine_choice.check(job, self._configs)
        cloud = self._cloud(job)
        machine_choice.check_budget(job, cloud.config, self.config.clock())
        user_data(job, cloud.config, 0)
        self.store.newest(job.id)
        self._image(job, cloud)
        if not cloud.subnets():
            raise NotFound(f"There is no subnet in {cloud.config.region}.", remedy="Name the engine's subnets.")

    @property
    def _configs(self) -> list[Config]:
        return [one.config for one in self.regions.clouds.values()]

    def _cloud(self, job: Job) -> Cloud:
        name, clouds = self.regions.name_of(job), self.regions.clouds
        if name not in clouds:
            self._refuse((job.id, len(job.attempts)), f"{name} is not a region of the engine ({', '.join(clouds)})")
        return clouds[name]

    # Doing

    def do(self, order: Order) -> None:
        match order:
            case Start(job):
                self._start(job)
            case Leave(job, deadline, reason):
                self._leave(job, deadline, reason)
            case End(job):
                self._end((job.id, len(job.attempts)))
            case Clear(handle):
                if (key := seeing.key_of_handle(handle)) is not None:
                    self._clear(key)

    def _start(self, job: Job) -> None:
        machine_choice.check(job, self._configs)
        key = (job.id, len(job.attempts))
        if self.store.newest(job.id) > key[1] or self.store.is_over(key):
            return
        marks = self.store.marks(key).get(key, {})
        if {"fleet", "refused"} & marks.keys() or any(one.startswith("ended-") for one in marks):
            return
        cloud = self._cloud(job)
        untried = machine_choice.untried(job, self.regions.clouds)
        if untried and not marks and self.regions.rests(cloud.config.region, self.config.clock()):
            self._refuse(key, self.regions.silent(cloud.config.region), cloud)
        try:
            self._launch(job, marks, cloud)
        except (NotAllowed, NotFound, BadInput) as error:  # it will not get better by itself: nothing is left behind
            if untried and not isinstance(error, BadInput):
                with suppress(OutsideFailed):
                    self._end_machines(key)
                self._refuse(key, f"{cloud.config.region}: {error.message.rstrip('.')}", cloud)
            with suppress(OutsideFailed):
                self._clear(key)
            raise

    def _launch(self, job: Job, marks: Marks, cloud: Cloud) -> None:
        key, now, config = (job.id, len(job.attempts)), self.config.clock(), cloud.config
        spot = job.attempts[-1].where.purchase is Purchase.SPOT
        own, alternatives = machine_choice.places(job, config, spot), machine_choice.places(job, config, not spot)
        if not own:
            self._refuse(key, f"it names no machine type in {config.region}")
        minutes = machine_choice.hard_minutes(job, config, now)
        text = user_data(job, config, minutes)
        if "order" in marks:  # an answer that never came
            running = [one for one in of_attempts(cloud, key).get(key, []) if not one.is_gone]
            if running:
                if reasons := self._take(job, [one.id for one in running], [], cloud):
                    self._refuse(key, "; ".join(reasons), cloud)
                return
        else:
            self.store.put(key, "order", at=now, region=config.region)
        try:
            image, marked = self._image(job, cloud), machine_choice.tags(job, config, minutes, now)
            template = machine_choice.template(config, image, packed(text), marked)
            cloud.template(
                machine_choice.template_name(config, key), machine_choice.token(config, key, "template"), template, marked
            )
        except TryLater as error:
            if "order" not in marks and machine_choice.untried(job, self.regions.clouds):  # no machine was asked for here
                self._refuse(key, f"{config.region} does not answer: {error.message.rstrip('.')}", cloud)
            raise
        reasons = self._ask(job, own, cloud)
        no_spot = reasons and spot and not machine_choice.untried(job, self.regions.clouds, [Purchase.SPOT])
        if no_spot and alternatives and job.spec.deadline is None:
            try:
                failures = self._ask(job, alternatives, cloud)
            except NotAllowed as error:  # such as a quota of none: spot machines may come again
                failures = [error.message]
            reasons = [*reasons, *failures] if failures else []
        if reasons:
            self._refuse(key, "; ".join([*reasons, *machine_choice.skipped_machines(job, config)]), cloud)

    def _image(self, job: Job, cloud: Cloud) -> Image:
        asked = [*machine_choice.places(job, cloud.config, spot=True), *machine_choice.places(job, cloud.config, spot=False)]
        return cloud.image(machine_choice.image_parameter(job, asked[0].machine))

    def _ask(self, job: Job, wanted: Sequence[MachinePlace], cloud: Cloud) -> list[str]:
        """Nothing, where all machines came; else why not."""
        body = machine_choice.fleet(job, cloud.config, wanted, cloud.subnets())
        if body is None:
            return [f"no subnet of the engine is in {', '.join(sorted({one.zone for one in wanted}))}"]
        try:
            answer = cloud.fleet(body)
        except NoCapacity as error:
            return [error.message]
        except AskedOtherwise as error:  # what came of it has the tags of an attempt that is over, and is ended as left over
            self._refuse((job.id, len(job.attempts)), error.message.rstrip("."), cloud)
        ids = [name for one in answer.get("Instances", ()) for name in one.get("InstanceIds", ())]
        return self._take(job, ids, answer.get("Errors", ()), cloud)

    def _take(self, job: Job, ids: Sequence[str], errors: Sequence[InstanceData], cloud: Cloud) -> list[str]:
        """All machines of an attempt or none: half of them would wait for the rest, and cost."""
        key, count = (job.id, len(job.attempts)), job.machines
        if len(ids) >= count:
            self.store.put(key, "fleet", ids=list(ids), at=self.config.clock())
            if self.store.is_over(key) or self.store.newest(job.id) > key[1]:  # given up while it was on its way
                self._end(key)
            return []
        cloud.terminate(ids)
        reasons = []
        for error in errors:
            failure = _failure(error)
            if not isinstance(failure, TryLater):
                raise failure
            reasons.append(_no_machine(error))
        return list(dict.fromkeys(reasons)) or [f"only {len(ids)} of {count} machines were available"]

    def _refuse(self, key: Key, reason: str, cloud: Cloud | None = None) -> NoReturn:
        self.store.put(key, "refused", reason=reason)
        if cloud is not None:
            with suppress(OutsideFailed):  # it goes when the attempt is cleared
                cloud.remove_templates([machine_choice.template_name(self.config, key)])
        raise TryLater(f"No machine for {key[0]}: {reason}", remedy=LATER)

    def _leave(self, job: Job, deadline: float, reason: str) -> None:
        key = (job.id, len(job.attempts))
        marks = self.store.marks(key).get(key, {})
        if "fleet" in marks and "leave" not in marks and not any(one.startswith("ended-") for one in marks):
            self.store.put(key, "leave", by=int(deadline), reason=reason.replace('"', "'"))

    def _end(self, key: Key) -> None:
        self.store.mark_over(key)
        self._end_machines(key)

    def _end_machines(self, key: Key) -> None:
        """By their tags, and by what was written down when they came: EC2 shows new machines late."""
        marks = self.store.marks(key).get(key, {})
        if was_ordered(marks):
            self.store.put(key, "end")
        ordered = self.regions.clouds.get(self._ordered_in(key, marks))
        for cloud in [ordered] if ordered is not None else self.regions.clouds.values():
            seen = {one.id: one for one in of_attempts(cloud, key).get(key, [])}
            ids = {name for name, one in seen.items() if one.state not in ("terminated", "shutting-down")}
            if "fleet" in marks and ordered is not None:
                ids |= {str(one) for one in self.store.read(key, "fleet", marks["fleet"]).get("ids", ()) if one not in seen}
            cloud.terminate(sorted(ids))
            cloud.remove_templates([machine_choice.template_name(self.config, key)])

    def _clear(self, key: Key) -> None:
        """What only machines wrote of is no attempt: were it marked as over, no older number of its job could start."""
        marks = self.store.marks(key).get(key, {})
        if was_ordered(marks) or not marks:
            self._end(key)
        else:
            self._end_machines(key)
        self.store.clear(key)

    # Of its own

    def reap(self, live: Callable[[], Iterable[Key]], *, dry_run: bool = False) -> list[Leftover]:
        """Ends what belongs to none of the live attempts; what it is, also when nothing is done about it.

        Attempts are recorded before machines are asked for. So the record is read after all that is there was listed: what
        came in between is not in the list, and what is in the list and not in the record belongs to nobody.
        """
        clouds = self.regions.clouds
        listings = [(name, cloud.machines(), cloud.templates()) for name, cloud in clouds.items()]
        live_keys, leftovers = set(live()), list[Leftover]()
        for region, machines, templates in listings:
            for machine in machines:
                key = key_of(machine)
                if key not in live_keys and machine["State"]["Name"] not in ("terminated", "shutting-down"):
                    leftovers.append(
                        Leftover("machine", machine["InstanceId"], *(key or ("", 0)), machine.get("InstanceType", ""), region)
                    )
            for name, owner in sorted(templates.items()):
                if owner not in live_keys:
                    leftovers.append(Leftover("launch template", name, *(owner or ("", 0)), region=region))
        leftovers.sort(key=lambda one: (one.job, one.attempt, one.kind != "machine", one.name))
        if not dry_run:
            for key in dict.fromkeys((one.job, one.attempt) for one in leftovers if one.job):
                self._clear(key)
            for stray in (one for one in leftovers if not one.job):
                end = clouds[stray.region].terminate if stray.kind == "machine" else clouds[stray.region].remove_templates
                end([stray.name])
        return leftovers

    def bring(self, folder: Path, tell: Callable[[int], object] = lambda size: None) -> str:
        """A folder of this machine for jobs: what `Spec.folder` must say so that theirs begin in a copy of it. `tell`: how many
        bytes are about to go."""
        body = bringing.packed(folder)
        tell(len(body))
        return self.store.bring(bringing.name_of(body), body)

    def logs(self, job: Job, number: int, *, follow: bool = False, rank: int | None = None) -> Iterator[bytes]:
        """What machines uploaded so far, once a minute and at their end: of all in order, each under its rank, unless one is
        asked for. With `follow` of the first, and whoever reads asks again: an empty piece says that nothing was added."""
        needs = job.spec.needs
        count = job.attempts[number - 1].machines if needs.elastic and number <= len(job.attempts) else needs.machines
        if rank is not None and rank >= count:
            have = f"{count} machines, with the ranks 0 to {count - 1}" if count > 1 else "one machine, with the rank 0"
            kind = BadInput if follow and rank >= needs.machines else NotFound  # who follows waits for what is not found yet
            raise kind(f"Attempt {number} of {job.id} has {have}.", remedy="Give one of those with --rank.")
        if rank is None and count > 1 and not follow:
            for index in range(count):
                piece = self.store.log((job.id, number), index)
                end = b"" if not piece or piece.endswith(b"\n") else b"\n"
                yield f"--- machine {index} of {count}\n".encode() + piece + end
            return
        sent = 0
        while True:
            piece = self.store.log((job.id, number), rank or 0, sent)
            sent += len(piece)
            yield piece
            if not follow:
                return

    def close(self) -> None:
        """Clients hold no connection that others wait for, and may be shared: they go with us."""


def _no_machine(error: InstanceData) -> str:
    overrides = error.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    machine = overrides.get("InstanceType") or "a machine"
    zone = f" in {overrides['AvailabilityZone']}" if overrides.get("AvailabilityZone") else ""
    code, spot = str(error.get("ErrorCode", "")), error.get("Lifecycle") == "spot"
    if code in ("VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"):
        return of_code(code, str(error.get("ErrorMessage", "")), "ec2:CreateFleet", machine, spot).message.rstrip(".")
    return f"{code} for {machine}{' (spot)' if spot else ''}{zone}"


def _failure(error: InstanceData) -> Exception:
    overrides = error.get("LaunchTemplateAndOverrides", {}).get("Overrides", {})
    spot = error.get("Lifecycle") == "spot"
    code, message = str(error.get("ErrorCode", "")), str(error.get("ErrorMessage", ""))
    return of_code(code, message, "ec2:RunInstances through ec2:CreateFleet", str(overrides.get("InstanceType", "")), spot)
