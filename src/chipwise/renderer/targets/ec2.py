"""EC2: a script that starts the plan's machines and ends them again, with boto3 and with the AWS CLI."""

from __future__ import annotations

import math

from chipwise.renderer.aws.ec2_shell import Attempt, shell_files
from chipwise.renderer.aws.fitting import check, machines, refuse_ranks, unpullable
from chipwise.renderer.aws.hours import by_crontab, clock_lines, crontab
from chipwise.renderer.aws.machine import NO_CAPACITY, disk, shared_request
from chipwise.renderer.aws.parts import copies, together, uses_efa
from chipwise.renderer.aws.start import start_script, with_results
from chipwise.renderer.aws.tags import OWNER_TAG, tags
from chipwise.renderer.deployment import Deployment, Form
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.mounted import large_copies
from chipwise.renderer.launch.streams import refuse_streams
from chipwise.renderer.program_files import Setting, ShellSetting, python_files
from chipwise.units import GIB

FITS = "jobs and services on EC2 machines without a cluster: boto3 script and AWS CLI, spot with fallback"
WRITES = ("launch.py",)
STARTS_MACHINES = True
SYSTEM_GIB = 100  # of the root disk: the system and container images
LARGEST_GIB = 16_384


def render(deployment: Deployment) -> list[File]:
    check(deployment, "ec2", Form.JOB, Form.SERVICE)
    refuse_ranks(deployment, "ec2")
    refuse_streams(deployment, "ec2")
    deployment = with_results(by_crontab(deployment))
    needs_role = bool(deployment.software.secrets) or any((one.url or "").startswith("s3:") for one in deployment.volumes)
    title, attempts, tagged = heading(deployment, _about(deployment)), _attempts(deployment), tags(deployment)
    root, software = _root_gib(deployment), deployment.software
    image = None if unpullable(deployment) else software.image
    parameter = deployment.platforms.get("AMI", {}).get("ec2")
    last = software.port + copies(deployment) - 1 if software.port is not None else None
    constants = [
        Setting("NAME", deployment.name),
        Setting("MINE", OWNER_TAG),
        Setting("REGION", deployment.node.region),
        Setting("MACHINES", deployment.machines),
        Setting("JOB", deployment.form is Form.JOB),
        Setting("FOLLOWS", deployment.spot),
        Setting("TOGETHER", together(deployment)),
        Setting("ATTEMPTS", attempts, _command_reason(deployment)),
        Setting(
            "IMAGE_PARAMETER",
            parameter,
            "" if parameter else "The tools of this chip come with an image that has no public parameter: --ami names it.",
        ),
        Setting("IMAGE", image, "" if image else "Built by the Dockerfile of `--to dockerfile`: --image names it."),
        Setting("PORT", software.port),
        Setting("LAST_PORT", last),
        Setting("KEEPS", _keeps(deployment)),
        Setting("NEEDS_ROLE", needs_role),
        Setting("TAGS", tagged),
        Setting(
            "MACHINE", shared_request(InstanceMetadataTags="enabled"), "Tags tell each machine its place among the others."
        ),
        Setting("DISK", disk(root)),
        Setting("NO_CAPACITY", sorted(NO_CAPACITY)),
    ]
    in_shell: dict[str, ShellSetting] = {
        "NAME": deployment.name,
        "REGION": deployment.node.region,
        "MACHINES": deployment.machines,
        "TOGETHER": "yes" if together(deployment) else "",
        "ROOT_GIB": root,
        "image": image or "",
        "IMAGE_PARAMETER": parameter or "",
        "PORTS": "" if last is None else f"{software.port}-{last}",
        "KEEPS": _keeps(deployment),
        "NEEDS_ROLE": "yes" if needs_role else "",
    }
    return [
        *python_files("launch.py", "ec2_launch.py", title, constants),
        *shell_files(title, in_shell, tagged, attempts),
        File("start.sh", start_script(deployment)),
    ]


def _about(deployment: Deployment) -> str:
    if deployment.form is Form.SERVICE:
        about = "Machines stay until --down. Nothing balances or scales them: take --to ecs or kubernetes for that."
        return "\n".join([about, *clock_lines(deployment, "launch.py")])
    clocks = (*crontab(deployment, "launch.py"), *clock_lines(deployment, "launch.py"))
    return "\n".join(["Machines end themselves when the program ends.", *clocks])


def _attempts(deployment: Deployment) -> list[Attempt]:
    """Other machines at the spot price before the same machine at the full one: they are the cheaper way out."""
    nodes = machines(deployment)
    purchases = ("spot", "on-demand") if deployment.spot else ("on-demand",)
    return [
        (node.machine, purchase, node.interfaces if uses_efa(deployment, node) else 0, node.first_card)
        for purchase in purchases
        for node in nodes
    ]


def _command_reason(deployment: Deployment) -> str:
    return "Other machines at the spot price first; the full price only with --or-on-demand." if deployment.spot else ""


def _root_gib(deployment: Deployment) -> int:
    """Directories lie on the local disks; a machine without them, or with too small ones, keeps them on its root disk."""
    needed = sum(one.size_bytes for one in deployment.volumes)
    local = deployment.node.disk_bytes or 0.0
    if needed <= local:
        return SYSTEM_GIB
    if refusal := large_copies(deployment, needed, (LARGEST_GIB - SYSTEM_GIB) * GIB):
        raise CannotRender(
            refusal,
            remedy="Take --to kubernetes or slurm, which share a file system, or skypilot, which mounts a bucket; or render a"
            " workload for each part of the data.",
        )
    return SYSTEM_GIB + math.ceil(needed / GIB)


def _keeps(deployment: Deployment) -> str:
    """What ends with the machines of a job: its folders that lie nowhere else, and what it said."""
    if deployment.form is not Form.JOB:
        return ""
    folders = ", ".join(one.path for one in deployment.volumes if one.name != "models" and one.url is None)
    return f"{folders} and the program's log" if folders else "The program's log"
