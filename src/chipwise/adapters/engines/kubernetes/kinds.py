"""Kinds of objects that the engine watches or writes, and where the API has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]  # as the API server wrote it
MINE = "chipwise.dev/job"  # a label of everything that the engine makes for an attempt


@dataclass(frozen=True, slots=True)
class Kind:
    version: str  # with its group
    name: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]

    def path(self, namespace: str, name: str = "") -> str:
        parts = [f"/apis/{self.version}" if self.group else f"/api/{self.version}"]
        parts += [f"namespaces/{namespace}"] if self.namespaced else []
        return "/".join([*parts, self.plural, *([name] if name else [])])


JOB = Kind("batch/v1", "Job", "jobs")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
POD = Kind("v1", "Pod", "pods")
EVENT = Kind("v1", "Event", "events")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
SERVICE = Kind("v1", "Service", "services")
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
DISRUPTION_BUDGET = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
AUTOSCALER = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
WORKLOAD = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
LOCAL_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "LocalQueue", "localqueues")
CLUSTER_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)

MAIN = (JOB, DEPLOYMENT)  # one of them is the attempt: all else of it is owned by it, and goes with it
OWNED = (SERVICE, NETWORK_POLICY, DISRUPTION_BUDGET, AUTOSCALER)
KEPT = (CLAIM, ACCOUNT)  # made where there is none, never changed and never removed: they outlive attempts and jobs


@dataclass(frozen=True, slots=True)
class Watched:
    kind: Kind
    labels: str = ""
    needed: bool = False  # without it nothing can be said; without the others the story is shorter


WATCHED = (
    Watched(JOB, MINE, needed=True),
    Watched(POD, MINE, needed=True),
    Watched(DEPLOYMENT, MINE, needed=True),
    Watched(CONFIG_MAP, MINE, needed=True),
    Watched(EVENT),
    Watched(NODE),
    Watched(WORKLOAD),
    Watched(LOCAL_QUEUE),
    Watched(CLUSTER_QUEUE),
)


def each_alone(body: Mapping[str, Any]) -> bool:
    """Whether the pods of a Job know nothing of each other: each does a part, and is replaced by itself."""
    return "backoffLimitPerIndex" in body
