"""Ranks of MPI over several machines by SSH, as an ordinary user: what each machine runs before the program starts.

One pair of keys stands for users and hosts, so that a machine can be sure whom it talks to. No part of it needs root: the
server listens above 1024, and the only account that it lets in is its own. The image must have an SSH server and client, an
MPI, and an account for the user's number with HOME as its home, as that of `--to dockerfile` has.
"""

from __future__ import annotations

from collections.abc import Sequence

from chipwise.renderer.deployment import Deployment
from chipwise.renderer.launch.starting import STARTERS, folded, mpi_ranks, quoted, run_machines

PORT = 2222
KEYS = "/etc/mpi-keys"  # where the pair is
HOSTS = "/etc/mpi/hostfile"  # NAME slots=NUMBER for each machine, the starting one first
HOME = "/tmp"  # of the account
PATIENCE_S = 7200  # for those that wait: a machine must be found, join the cluster and pull an image of tens of GiB
_CLIENT = (
    "Host *",
    f"  Port {PORT}",
    f"  IdentityFile {KEYS}/id_rsa",
    "  BatchMode yes",
    "  ConnectTimeout 10",
    "  LogLevel ERROR",
    "  StrictHostKeyChecking yes",
)
_SERVER = (
    "PidFile=none",
    "StrictModes=no",
    "UsePAM=no",
    "PasswordAuthentication=no",
    f"AuthorizedKeysFile={KEYS}/authorized_keys",
)


def client_lines() -> list[str]:
    """How a machine reaches another: every host has the key that was made for this job, and no other."""
    settings = "\\n".join(_CLIENT)
    return [
        f"mkdir -p -m 700 {HOME}/.ssh",
        f"printf '{settings}\\n' >{HOME}/.ssh/config",
        f"printf '* %s\\n' \"$(cut -d ' ' -f 1,2 {KEYS}/id_rsa.pub)\" >{HOME}/.ssh/known_hosts",
    ]


def serving_script() -> str:
    """Of a machine that waits for ranks. A session sees the paths of the container, which SSH does not hand on by itself."""
    words = ["-D", "-e", "-f /dev/null", f"-p {PORT}", f"-h {KEYS}/id_rsa", *(f"-o {one}" for one in _SERVER)]
    words.append('-o "SetEnv=PATH=\\"$PATH\\" LD_LIBRARY_PATH=\\"${LD_LIBRARY_PATH:-}\\""')
    return "\n".join([*client_lines(), *folded("exec /usr/sbin/sshd", words)]) + "\n"


def starting_script(deployment: Deployment, settings: Sequence[str]) -> str:
    """Of the machine that starts all ranks, its own too, with these settings of the container."""
    lines = [
        *client_lines(),
        f'until="$(($(date +%s) + {PATIENCE_S}))"',
        f"sed 1d {HOSTS} | cut -d ' ' -f 1 | while read -r host; do",
        '  until ssh -n "$host" true; do',
        '    [ "$(date +%s)" -lt "$until" ] || { echo "$host did not come" >&2; exit 1; }',
        "    sleep 5",
        "  done",
        "done",
    ]
    return "\n".join([*lines, *_start(deployment, settings)]) + "\n"


def _start(deployment: Deployment, settings: Sequence[str]) -> list[str]:
    command = deployment.software.command
    if command[:1] in STARTERS:  # it counts ranks itself, and finds machines by settings
        return list(folded("exec", quoted(command)))
    count = mpi_ranks(deployment) * run_machines(deployment)
    words = [f"-np {count}", f"--hostfile {HOSTS}", *(f"-x {name}" for name in settings), *quoted(command)]
    return list(folded("exec mpirun", words))
