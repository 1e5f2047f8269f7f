"""JupyterHub: values of the Zero to JupyterHub chart: who gets what, how many at once, and when an idle notebook ends."""

from __future__ import annotations

from chipwise.renderer.cluster.accelerators import KEPT_BACK, MACHINE, chip_taint, resource_of, spot_taints
from chipwise.renderer.cluster.pod import Object, claim_name, labels, meta, namespace_of
from chipwise.renderer.deployment import Deployment, Form, Volume
from chipwise.renderer.file import CannotRender, File
from chipwise.renderer.heading import heading
from chipwise.renderer.launch.mounted import mounted_volumes
from chipwise.renderer.layout import candidates
from chipwise.renderer.limits import KUBERNETES
from chipwise.renderer.quoting import kubernetes, label_value
from chipwise.renderer.yaml_text import Noted, Yaml, document
from chipwise.units import GIB

FITS = "notebooks for people on shared or whole chips, with idle ones ended"
EXPRESSES = frozenset({"no run"})  # people start what runs
WRITES = ("values.yaml",)
IDLE_S = 3600
HOME = "20Gi"


def render(deployment: Deployment) -> list[File]:
    if deployment.form is not Form.SESSIONS:
        target = "argo" if deployment.form is Form.PIPELINE else "kubernetes"
        raise CannotRender(
            f"JupyterHub gives notebooks to people, and this is {deployment.kind}.", remedy=f"Use --to {target} for it."
        )
    resource_of(deployment.node)  # raises for what Kubernetes cannot hand out
    about = (
        f"helm upgrade --install {deployment.name} jupyterhub/jupyterhub --namespace {namespace_of(deployment)} -f values.yaml"
    )
    values: Object = {
        "hub": _hub(deployment),
        "proxy": _proxy(),
        "singleuser": _notebooks(deployment),
        "cull": _culling(deployment),
        "scheduling": _scheduling(deployment),
        "prePuller": _pulling(),
    }
    files = [File("values.yaml", document(values, title=heading(deployment, about)))]
    volumes = mounted_volumes(deployment)
    if volumes:
        first = "Data that notebooks share: apply this first, in the namespace of the hub."
        claims = [_claim(deployment, one) for one in volumes]
        files.append(File("storage.yaml", document(*claims, title=heading(deployment, first))))
    plugin = _plugin(deployment)
    if plugin is not None:
        note = "helm upgrade --install nvdp nvdp/nvidia-device-plugin --namespace nvidia-device-plugin -f device-plugin.yaml"
        files.append(File("device-plugin.yaml", document(plugin, title=heading(deployment, note))))
    return files


def seats(deployment: Deployment) -> int:
    """Notebooks that the plan's machines hold at once."""
    return deployment.machines * max(deployment.node.chips, 1) * max(deployment.node.users_per_chip, 1)


def _hub(deployment: Deployment) -> Object:
    seat_count = seats(deployment)
    people = f" for {deployment.people} people" if deployment.people else ""
    reason = f"Seats of the plan: {_seats_told(deployment)}{people}. Later users wait."
    return {
        "activeServerLimit": Noted(seat_count, reason),
        "concurrentSpawnLimit": Noted(min(max(seat_count // 2, 4), 64), "A class that begins at once does not drown the hub."),
        "allowNamedServers": Noted(False, "One notebook a person: a second one would take another person's seat."),
        "config": Noted(
            {"JupyterHub": {"admin_access": False}, "Authenticator": {"allow_all": False}},
            "Nobody gets in until you add your sign-in (GitHub, Google, OIDC): JupyterHub.authenticator_class, its settings.\n"
            "Its secret goes into a file of its own that is not committed, or --set-file.",
        ),
        "networkPolicy": {"enabled": True},
    }


def _seats_told(deployment: Deployment) -> str:
    node = deployment.node
    parts = [f"{deployment.machines} machines" if deployment.machines > 1 else "one machine"]
    if node.chips > 1:
        parts.append(f"{node.chips} chips each")
    if node.users_per_chip > 1:
        parts.append(f"{node.users_per_chip} on a chip")
    return ", ".join(parts)


def _proxy() -> Object:
    return {
        "service": {"type": Noted("ClusterIP", "Put a gateway or ingress with TLS before it; it is not open to the world.")},
        "chp": {"networkPolicy": {"enabled": True}},
    }


def _notebooks(deployment: Deployment) -> Object:
    image, _, tag = deployment.software.image.rpartition(":")
    fields: Object = {
        "image": {"name": image or deployment.software.image, "tag": tag if image else "latest"},
        "startTimeout": Noted(900, "A machine may have to come first, and the image is large."),
        "storage": _storage(deployment),
        "cloudMetadata": {"blockWithIptables": Noted(True, "A notebook must not read the machine's credentials.")},
        "networkPolicy": {"enabled": True},
        "allowPrivilegeEscalation": False,
        "extraLabels": {key: value for key, value in labels(deployment).items() if key.startswith("chipwise.dev/")},
        "profileList": _profiles(deployment),
    }
    env = dict(deployment.software.env)
    if env:
        fields["extraEnv"] = KUBERNETES.document({key: kubernetes(value) for key, value in env.items()})
    return fields


def _storage(deployment: Deployment) -> Object:
    fields: Object = {"type": "dynamic", "capacity": Noted(HOME, "The home of each, kept when the notebook ends.")}
    volumes = mounted_volumes(deployment)
    if volumes:
        fields["extraVolumes"] = [
            {"name": one.name, "persistentVolumeClaim": {"claimName": claim_name(deployment, one)}} for one in volumes
        ]
        fields["extraVolumeMounts"] = [_mount(one) for one in volumes]
    return fields


def _mount(one: Volume) -> Yaml:
    made: Object = {"name": one.name, "mountPath": one.path}
    return Noted(made | {"readOnly": True}, "Everybody reads it, nobody changes it.") if one.name == "data" else made


def _claim(deployment: Deployment, volume: Volume) -> Object:
    size = max(int(volume.size_bytes / GIB + 0.999), 1)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": meta(deployment, claim_name(deployment, volume)),
        "spec": {
            "accessModes": Noted(["ReadWriteMany"], "Notebooks on several machines read it: a class such as EFS or Filestore."),
            "resources": {"requests": {"storage": f"{size}Gi"}},
        },
    }


def _profiles(deployment: Deployment) -> list[Yaml]:
    """The plan's seat, and one without a chip: reading and writing needs none."""
    node, seat = deployment.node, {}
    cpu, memory = _share(deployment)
    resource = resource_of(node)
    reason = "An equal part of the machine, without a tenth for the system. No limit: what is free may be used."
    override: Object = {
        "cpu_guarantee": Noted(cpu, reason),
        "mem_guarantee": f"{memory}G",
        "mem_limit": f"{memory}G",
    }
    if resource is not None:
        seat = {resource: "1"}
        override |= {"extra_resource_guarantees": seat, "extra_resource_limits": seat}
    override["node_affinity_required"] = [{"matchExpressions": [_machines(deployment)]}]
    taints = [one for one in (chip_taint(node),) if one is not None] + list(spot_taints(node) if deployment.spot else ())
    if taints:
        override["tolerations"] = [{"key": one.key, "operator": "Exists", "effect": one.effect} for one in taints]
    profiles: list[Yaml] = [
        {
            "display_name": _seat_name(deployment),
            "slug": "planned",
            "default": True,
            "description": _described(deployment, cpu, memory),
            "kubespawner_override": override,
        }
    ]
    if resource is not None:
        plain: Object = {
            "display_name": "No accelerator",
            "slug": "plain",
            "description": "2 CPUs, 4 GB. For reading, writing and small data: it keeps a seat free for others.",
            "kubespawner_override": {
                "cpu_guarantee": 0.5,
                "cpu_limit": 2,
                "mem_guarantee": "2G",
                "mem_limit": "4G",
                "node_selector": Noted({"kubernetes.io/arch": node.arch}, "The image is built for this processor."),
            },
        }
        profiles.append(Noted(plain, "On the cluster's other nodes."))
    return profiles


def _machines(deployment: Deployment) -> Object:
    return {"key": MACHINE, "operator": "In", "values": [label_value(one.machine) for one in candidates(deployment)]}


def _share(deployment: Deployment) -> tuple[float, int]:
    """(processors, GB) of one seat."""
    node = deployment.node
    seats_each = max(node.chips, 1) * max(node.users_per_chip, 1)
    cpu = (node.vcpus or 4 * seats_each) * (1 - KEPT_BACK) / seats_each
    memory = (node.memory_bytes or 16 * GIB * seats_each) * (1 - KEPT_BACK) / seats_each / 1e9
    return (int(cpu) if cpu >= 2 else round(cpu, 1)), max(int(memory), 1)


def _seat_name(deployment: Deployment) -> str:
    node = deployment.node
    if not node.accelerated:
        return "CPU"
    if node.profile:
        return f"{node.chip}, slice {node.profile}"
    return f"{node.chip}, shared by {node.users_per_chip}" if node.users_per_chip > 1 else node.chip


def _described(deployment: Deployment, cpu: float, memory: int) -> str:
    node = deployment.node
    if node.profile:
        sharing = "A slice of a chip, with memory of its own."
    elif node.users_per_chip > 1:
        sharing = "A chip in turns: memory is shared, so what others take is missing."
    else:
        sharing = "A whole chip." if node.accelerated else ""
    idle = (deployment.idle_s or IDLE_S) / 60
    return f"{cpu:g} CPUs, {memory} GB. {sharing} Ended after {idle:.0f} min without use.".replace("  ", " ")


def _culling(deployment: Deployment) -> Object:
    idle = int(deployment.idle_s or IDLE_S)
    reason = (
        "As the workload says." if deployment.idle_s else "The workload does not say; a seat that nobody uses costs as much."
    )
    hours = ""
    if deployment.stops:
        closing = f"({deployment.stops}, {deployment.time_zone})"
        hours = f"\nThe plan counts on no machine after hours {closing}: a cell that runs all night keeps its own."
    return {
        "enabled": True,
        "timeout": Noted(idle, f"{reason} A running cell counts as use.{hours}"),
        "every": max(min(idle // 5, 600), 60),
        "maxAge": Noted(0, "None: a long run is not ended while it works."),
    }


def _scheduling(deployment: Deployment) -> Object:
    return {
        "userScheduler": {"enabled": Noted(True, "Fills one machine before the next, so that an empty one can go.")},
        "podPriority": {"enabled": True},
        "userPlaceholder": {
            "enabled": Noted(False, "A placeholder would keep a machine with chips running for nobody."),
            "replicas": 0,
        },
        "userPods": {"nodeAffinity": {"matchNodePurpose": Noted("ignore", "Profiles name the machines.")}},
    }


def _pulling() -> Object:
    return {
        "hook": {"enabled": Noted(False, "It would wait for machines with chips that are not there yet.")},
        "continuous": {"enabled": Noted(True, "A new machine fetches the image before a person waits for it.")},
    }


def _plugin(deployment: Deployment) -> Object | None:
    """Values of NVIDIA's device plugin, where a chip is shared."""
    node = deployment.node
    if node.vendor != "NVIDIA" or not (node.profile or node.users_per_chip > 1):
        return None
    if node.profile:
        config: Object = {
            "version": "v1",
            "flags": {"migStrategy": Noted("mixed", f"Slices under a name of their own: nvidia.com/mig-{node.profile}.")},
        }
        reason = f"Slices must be cut: GPU operator's MIG manager, by the node label nvidia.com/mig.config=all-{node.profile}."
    else:
        turns: Object = {
            "renameByDefault": Noted(True, "nvidia.com/gpu.shared: who asks for a whole GPU never gets a part of one."),
            "failRequestsGreaterThanOne": Noted(True, "Two turns on one chip are not twice the chip."),
            "resources": [{"name": "nvidia.com/gpu", "replicas": node.users_per_chip}],
        }
        config = {"version": "v1", "sharing": {"timeSlicing": turns}}
        reason = "One plugin per cluster: leave this out where one is installed, and give it the same configuration."
    return {"config": Noted({"map": {"default": document(config)}, "default": "default"}, reason)}
