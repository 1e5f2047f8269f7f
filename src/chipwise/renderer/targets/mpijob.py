"""MPIJob of the Kubeflow MPI Operator: one program of MPI over several machines, started from the first of them by SSH.

The operator makes the keys, the list of machines, the headless Service, a pod for each worker and a Job for the launcher. The
launcher is a worker too: a pod of its own without chips would need a machine of its own.
"""

from __future__ import annotations

import math

from chipwise.renderer.cluster import devices, guards, job_sets, queues
from chipwise.renderer.cluster.accelerators import resource_of
from chipwise.renderer.cluster.pod import Object, meta, queue_of, queued, template
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch import mpi
from chipwise.renderer.launch.program_notes import program_note
from chipwise.renderer.launch.starting import STARTERS, apart, mpi_ranks, run_machines
from chipwise.renderer.quoting import kubernetes
from chipwise.renderer.yaml_text import Noted, Yaml, document, plain

FITS = "programs of MPI over several machines by Kubeflow's MPI Operator: simulations, training with MPI, a queue of Kueue"
EXPRESSES = frozenset({"pulls"})
WRITES = ("queues.yaml", "workload.yaml")
MANIFESTS = True
API = "kubeflow.org/v2beta1"
TRIES, SPOT_TRIES = 3, 12  # a lost machine counts as well: the operator knows no reasons


def render(deployment: Deployment) -> list[File]:
    check(deployment)
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    first = "What surrounds it: apply this first."
    runs = (
        "What runs. Needs Kubeflow's MPI Operator 0.6 or newer. With Kueue it waits in its queue until there is room for all\n"
        "machines at once (kubeflow.org/mpijob in integrations.frameworks): apply queues.yaml first. Without Kueue leave that\n"
        "file out: the label does nothing, and it starts at once.\n"
        "The image needs Open MPI, sshd and ssh, and an account of the number that it runs as, with the home /tmp: that of\n"
        "--to dockerfile has them."
    ) + job_sets.hours_note(deployment, "mpijob", '{"runPolicy": {"suspend": true}}')
    work = [*guards.claims(deployment), mpi_job(deployment)]
    return [
        File("namespace.yaml", document(*guards.surroundings(deployment), title=heading(deployment, first))),
        File("queues.yaml", document(*queues.queues(deployment), title=heading(deployment, queues.ABOUT))),
        File("workload.yaml", document(*work, title=heading(deployment, runs))),
        *devices.device_files(deployment),
    ]


def check(deployment: Deployment) -> None:
    job_sets.check_form(deployment, "The MPI Operator")
    machines, software = run_machines(deployment), deployment.software
    if software.framework != "mpi":
        raise CannotRender(
            f"The MPI Operator starts programs of MPI, and this one is of {software.framework}.",
            remedy="Say program: {framework: mpi} if it is one; else take --to jobset, trainjob or kubernetes.",
        )
    if apart(deployment) or machines == 1:
        raise CannotRender(
            "Each run has one machine, whose ranks need no operator.",
            remedy="Take --to kubernetes or kueue, which call mpirun.",
        )
    if deployment.runs > 1:
        raise CannotRender(
            f"Each of {deployment.runs} runs takes {machines} machines together, and an MPIJob is one of them.",
            remedy="Use --to slurm or parallelcluster, or plan one run (runs: 1) and apply it for each.",
        )
    if deployment.node.kind == "tpu":
        raise CannotRender("Programs of MPI do not run on TPU slices.", remedy="Take --to jobset.")
    if software.command[:1] == ("srun",):
        raise CannotRender("srun asks Slurm for its ranks, and there is none.", remedy="Take --to slurm, or call mpirun.")


def mpi_job(deployment: Deployment) -> Object:
    machines, slots = run_machines(deployment), mpi_ranks(deployment)
    subject = "chip" if deployment.node.accelerated else "core"
    policy: Object = {
        "cleanPodPolicy": Noted("Running", "The other machines are given back when the launcher is done."),
        "backoffLimit": Noted(
            SPOT_TRIES if deployment.spot else TRIES,
            "Starts of the launcher after a failure, from the last checkpoint. A lost machine counts: the operator brings a\n"
            "new pod for it, and the launcher waits for that.",
        ),
        "ttlSecondsAfterFinished": Noted(job_sets.KEPT_S, "Kept for a day, for inspection."),
    }
    if deployment.deadline_s is not None:
        reason = "The workload's deadline; the count begins again after a pause."
        policy["activeDeadlineSeconds"] = Noted(math.ceil(deployment.deadline_s), reason)
    spec: Object = {
        "slotsPerWorker": Noted(slots, f"Ranks of one machine: one for each {subject}."),
        "runLauncherAsWorker": Noted(
            True, "The first machine works too. A launcher beside it would need a machine of its own."
        ),
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": Noted(mpi.KEYS, "Made by the operator for this job, for users and hosts alike."),
        "runPolicy": policy,
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": _pod(deployment, _starting(deployment))},
            "Worker": {
                "replicas": Noted(machines - 1, f"With the launcher {machines}, the machines of the plan."),
                "restartPolicy": "OnFailure",
                "template": _pod(deployment, _serving()),
            },
        },
    }
    return {
        "apiVersion": API,
        "kind": "MPIJob",
        "metadata": queued(meta(deployment), queue_of(deployment), deployment),
        "spec": spec,
    }


def _pod(deployment: Deployment, command: Yaml) -> Object:
    pod = template(deployment, command)
    if deployment.software.command[:1] not in STARTERS:
        return pod
    spec = pod["spec"]
    assert isinstance(spec, dict)
    [main] = spec["containers"]
    hosts = Noted(
        {"name": "PRTE_MCA_prte_default_hostfile", "value": mpi.HOSTS}, "For Open MPI 5; the operator sets that of Open MPI 4."
    )
    return pod | {"spec": spec | {"containers": [main | {"env": [*main["env"], hosts]}]}}


def _starting(deployment: Deployment) -> Yaml:
    """The launcher. Ranks on other machines see none of its settings but those that are handed on."""
    spec = template(deployment, None)["spec"]
    assert isinstance(spec, dict)
    [main] = spec["containers"]
    env = plain(main["env"])
    assert isinstance(env, list)
    script = mpi.starting_script(deployment, [str(one["name"]) for one in env])
    reason = (
        f"Waits {mpi.PATIENCE_S // 3600} h for a machine that comes late or in place of a lost one; then starts a rank for each"
        " slot\nand hands the settings on. Hosts are known by the job's own key."
    )
    if note := program_note(deployment):
        reason += f"\n{note}"
    return Noted(["/bin/sh", "-ec", kubernetes(script)], reason)


def _serving() -> Yaml:
    reason = "An SSH server of an ordinary user, for this job's key alone."
    return Noted(["/bin/sh", "-ec", kubernetes(mpi.serving_script())], reason)
