"""How `launch.py` looks after machines that run: sees which were lost, starts others for them, and tells when a job is done.

A machine of a job shuts itself down when its program ends, and EC2 says of each terminated machine who ended it: that tells a
finished machine from a lost one. `start.sh` waits to be taken once a spot machine has its notice, so that a loss never looks
like an end of its own.
"""

WATCH = '''
LOSSES = 3  # of one machine: from then on it is bought at the full price first, if --or-on-demand allows it
LONGEST = 8  # times --every: how long it waits between two looks while nothing happens
FAILURES = 5  # answers of AWS in a row that are errors
PATIENCE_S = 12 * 3600  # without a machine in place of a lost one
KNOWN_S = 600  # after this EC2 knows of a machine for certain; ended ones it forgets after an hour or so


def status(session: Any, options: argparse.Namespace, rank: int, machine_id: str) -> str | None:
    """With what the program of a machine ended, as start.sh kept it in --keep. None: nothing was kept, or of another machine;
    an empty id is that of one which EC2 has forgotten."""
    if not options.keep:
        return None
    bucket, _, prefix = options.keep.removeprefix("s3://").rstrip("/").partition("/")
    try:
        key = "/".join(part for part in (prefix, f"logs/machine-{rank}.status") if part)
        who, _, said = session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read().decode().strip().partition(" ")
    except ClientError:
        return None
    return said if machine_id in ("", who) else None


def look(ec2: Any, session: Any, options: argparse.Namespace, machines: dict[int, Machine]) -> bool:
    """Brings what is known of the machines up to date: whether anything changed.

    It asks for those by their ids: tags and subnets of a machine may be gone soon after its end."""
    alive = {one.id: one for one in machines.values() if one.fate == "alive"}
    found: dict[str, Machine] = {}
    for at in range(0, len(alive), 200):  # as many as one filter takes
        found |= {one["InstanceId"]: machine(one) for one in listed(ec2, instance_id=list(alive)[at : at + 200])}
    changed = False
    for one in alive.values():
        if one.id in found:
            fate = found[one.id].fate
        elif time.time() - one.launched.timestamp() < KNOWN_S:
            continue
        else:  # it ended while nobody looked
            fate = "finished" if JOB and status(session, options, one.rank, one.id) is not None else "lost"
        if fate != "alive":
            machines[one.rank], changed = one._replace(fate=fate), True
            print(f"{fate}: machine {one.rank}, {one.id} ({one.type}, {one.purchase})", flush=True)
    return changed


def replace(
    ec2: Any, options: argparse.Namespace, place: dict[str, Any], machines: dict[int, Machine], losses: list[Machine]
) -> None:
    """Starts a machine in place of each lost one, with its rank. One program over several machines begins again on all of them.

    Its processes met once, at the first machine's address, and torchrun ends them all when one is gone: a machine that came
    later would find nobody. A new group meets at an address of its own, and goes on from the last checkpoint in --keep."""
    lost = [one for one in machines.values() if one.fate == "lost"]
    if TOGETHER:
        end(ec2, [one.id for one in machines.values() if one.fate == "alive"])
        machines |= {rank: one._replace(fate="lost") for rank, one in machines.items() if one.fate == "alive"}
        groups = [(sorted(machines), losses)]
    else:
        groups = [([one.rank], [before for before in losses if before.rank == one.rank]) for one in lost]
    for ranks, before in groups:
        started: list[Machine] = []
        try:
            start(ec2, options, place, before, ranks, started)
        except BaseException:  # half a launch is of no use
            end(ec2, [one.id for one in started])
            raise
        machines |= {one.rank: one for one in started}


def follow(session: Any, options: argparse.Namespace, place: dict[str, Any], machines: dict[int, Machine]) -> None:
    """Until all machines of a job have finished; those of a service are kept at their number until this program is stopped."""
    ec2 = session.client("ec2")
    losses: list[Machine] = []
    every = max(options.every, 1.0)
    wait, failures, short_since = every, 0, 0.0
    while True:
        changed = False
        try:
            changed = look(ec2, session, options, machines)
            fates = {one.fate for one in machines.values()}
            if "ended" in fates:
                print("ended by --down")
                return
            lost = [one for one in machines.values() if one.fate == "lost"]
            fresh = [one for one in lost if one not in losses]
            if not TOGETHER:
                losses += fresh
            elif len(fresh) == len(lost):  # machines of one group that are lost together are one loss
                losses += fresh[:1]
            if lost:
                replace(ec2, options, place, machines, losses)
                changed = True
            elif fates == {"finished"}:
                remove_groups(ec2)
                return
            failures, short_since = 0, 0.0
        except NoMachines as error:
            print(error, file=sys.stderr, flush=True)
            short_since = short_since or time.time()
            if time.time() - short_since > PATIENCE_S:
                raise
        except (ClientError, BotoCoreError) as error:  # a network that was away, a limit of requests
            failures += 1
            if failures == FAILURES:
                raise
            print(f"AWS: {error}; looking again", file=sys.stderr, flush=True)
        wait = every if changed else min(2 * wait, LONGEST * every)
        time.sleep(wait)


def look_after(session: Any, options: argparse.Namespace, place: dict[str, Any], machines: dict[int, Machine]) -> None:
    try:
        follow(session, options, place, machines)
    except BaseException as error:
        if options.down_on_stop and isinstance(error, KeyboardInterrupt):
            print("stopped: ending the machines", file=sys.stderr)
            down(session)
        else:
            left = [one.id for one in machines.values() if one.fate == "alive"]
            told = f"{len(left)} machines run on and nobody replaces a lost one"
            print(f"{told}: --watch looks after them again, --down ends them.", file=sys.stderr)
        raise
    if {one.fate for one in machines.values()} == {"finished"}:
        tell(session, options, machines)


def tell(session: Any, options: argparse.Namespace, machines: dict[int, Machine]) -> None:
    """How a job ended, as far as anybody knows."""
    said = {rank: status(session, options, rank, one.id) for rank, one in sorted(machines.items())}
    print(f"finished: all {len(machines)} machines ended by themselves")
    if all(one == "0" for one in said.values()):
        return
    if not options.keep:
        print("Whether the program did well is known only with --keep, where its log goes.")
        return
    bad = ", ".join(f"machine {rank}: status {one or 'unknown'}" for rank, one in said.items() if one != "0")
    raise Failed(f"The program did not end well ({bad}). Its logs: {options.keep.rstrip('/')}/logs/")


def resume(session: Any, options: argparse.Namespace) -> None:
    """Takes up what an earlier launch started, from this desk or another. The newest machine of each rank counts."""
    ec2 = session.client("ec2")
    found = sorted(map(machine, listed(ec2, **{f"tag:{MINE}": [NAME]})), key=lambda one: (one.launched, one.fate == "alive"))
    machines = {one.rank: one for one in found}
    if not machines or all(one.fate == "ended" for one in machines.values()):
        raise Failed("Nothing of it runs or was lost just now. Start it with --up.")
    place, vpc = find_place(session, ec2, options)
    place["group"] = security_group(ec2, vpc, options.open_to)
    place["placement"] = placement_group(ec2)
    for rank in range(MACHINES):
        if rank not in machines:  # EC2 has forgotten it
            fate = "finished" if JOB and status(session, options, rank, "") is not None else "lost"
            machines[rank] = found[-1]._replace(id="", rank=rank, fate=fate)
    print(f"watching {sum(one.fate == 'alive' for one in machines.values())} of {MACHINES} machines", flush=True)
    look_after(session, options, place, machines)
'''
