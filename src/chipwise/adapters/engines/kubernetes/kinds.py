"""Kinds of objects that the engine watches or writes, and where the API has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = Mapping[str, Any]  # as the API server wrote it
JOB_LABEL = "chipwise.dev/job"  # a label of everything that the engine makes for an attempt


@dataclass(frozen=True, slots=True)
class ObjectKind:
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


JOB = ObjectKind("batch/v1", "Job", "jobs")
DEPLOYMENT = ObjectKind("apps/v1", "Deployment", "deployments")
POD = ObjectKind("v1", "Pod", "pods")
EVENT = ObjectKind("v1", "Event", "events")
CONFIG_MAP = ObjectKind("v1", "ConfigMap", "configmaps")
NODE = ObjectKind("v1", "Node", "nodes", namespaced=False)
SERVICE = ObjectKind("v1", "Service", "services")
CLAIM = ObjectKind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
ACCOUNT = ObjectKind("v1", "ServiceAccount", "serviceaccounts")
NETWORK_POLICY = ObjectKind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
DISRUPTION_BUDGET = ObjectKind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
AUTOSCALER = ObjectKind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
GROUPS = ObjectKind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")
POOL = ObjectKind("inference.networking.k8s.io/v1", "InferencePool", "inferencepools")
WORKLOAD = ObjectKind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
LOCAL_QUEUE = ObjectKind("kueue.x-k8s.io/v1beta2", "LocalQueue", "localqueues")
CLUSTER_QUEUE = ObjectKind("kueue.x-k8s.io/v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)

MAIN = (JOB, DEPLOYMENT)  # one of them is the attempt: all else of it is owned by it, and goes with it
OWNED = (SERVICE, NETWORK_POLICY, DISRUPTION_BUDGET, AUTOSCALER)
PERSISTENT = (CLAIM, ACCOUNT)  # made where there is none, never changed and never removed: they outlive attempts and jobs


@dataclass(frozen=True, slots=True)
class Watched:
    kind: ObjectKind
    labels: str = ""
    needed: bool = False  # without it nothing can be said; without the others the story is shorter


WATCHED = (
    Watched(JOB, JOB_LABEL, needed=True),
    Watched(POD, JOB_LABEL, needed=True),
    Watched(DEPLOYMENT, JOB_LABEL, needed=True),
    Watched(CONFIG_MAP, JOB_LABEL, needed=True),
    Watched(EVENT),
    Watched(NODE),
    Watched(WORKLOAD),
    Watched(LOCAL_QUEUE),
    Watched(CLUSTER_QUEUE),
)


def each_alone(body: Mapping[str, Any]) -> bool:
    """Whether the pods of a Job know nothing of each other: each does a part, and is replaced by itself."""
    return "backoffLimitPerIndex" in body
