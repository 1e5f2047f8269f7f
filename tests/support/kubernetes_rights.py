"""The rights that the engine needs, and no more: a Role for its namespace, and a ClusterRole that only makes its story longer.

`docs/running/kubernetes-role.yaml` is this as text; a test keeps the two equal, and another runs jobs with these rights alone.
"""

from __future__ import annotations

from typing import Any

import yaml

NAME = "chipwise-runner"
CORDONS = "chipwise-cordon"
_HEAD = """\
# What `chipwise run --engine kubernetes` needs, in the namespace where jobs run. Put in your namespace and who may run:
#   sed 's/NAMESPACE/train/; s/SOMEBODY/you@example.com/' kubernetes-role.yaml | kubectl apply -f -
# The ClusterRole is optional: with it, a job tells which machine it got, that a spot machine is about to go, and how full its
# queue is.
"""
_RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("batch", ("jobs",), ("get", "list", "watch", "create", "patch", "delete")),
    ("apps", ("deployments",), ("get", "list", "watch", "create", "patch", "delete")),
    ("", ("pods",), ("list", "watch", "delete")),
    ("", ("pods/log",), ("get",)),
    ("", ("configmaps",), ("get", "list", "watch", "create", "update", "delete")),
    ("", ("events",), ("list", "watch")),
    ("", ("services",), ("create", "patch", "delete")),
    ("", ("persistentvolumeclaims", "serviceaccounts"), ("create",)),
    ("networking.k8s.io", ("networkpolicies",), ("create", "patch", "delete")),
    ("policy", ("poddisruptionbudgets",), ("create", "patch", "delete")),
    ("autoscaling", ("horizontalpodautoscalers",), ("create", "patch", "delete")),
    ("kueue.x-k8s.io", ("workloads", "localqueues"), ("list", "watch")),
)
_CLUSTER_RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("nodes",), ("list", "watch")),
    ("kueue.x-k8s.io", ("clusterqueues",), ("list", "watch")),
)
_CORDON_HEAD = """\
# With this, chipwise taints an unhealthy node (chipwise.dev/unhealthy:NoSchedule), so that nobody's pods are placed there.
# Without it, its own attempts keep away from such a node, and others' pods do not. It lets its holder change any node:
#   sed 's/NAMESPACE/train/; s/SOMEBODY/you@example.com/' kubernetes-cordon-role.yaml | kubectl apply -f -
# Once a node is repaired: kubectl taint nodes NODE chipwise.dev/unhealthy-
"""
_CORDON_RULES = (("", ("nodes",), ("patch",)),)
SERVES = "chipwise-server"
_SERVING_HEAD = """\
# What `chipwise serve --engine kubernetes` needs, in the namespace where the service is. Put in your namespace and who serves:
#   sed 's/NAMESPACE/chat/; s/SOMEBODY/you@example.com/' kubernetes-role.yaml | kubectl apply -f -
"""
_MADE = ("list", "create", "update", "delete")
_SERVING_RULES = (
    ("apps", ("deployments",), _MADE),
    ("apps", ("deployments/scale",), ("patch",)),
    ("leaderworkerset.x-k8s.io", ("leaderworkersets",), _MADE),
    ("leaderworkerset.x-k8s.io", ("leaderworkersets/scale",), ("patch",)),
    ("autoscaling", ("horizontalpodautoscalers",), (*_MADE, "patch")),
    ("", ("services", "serviceaccounts"), _MADE),
    ("", ("persistentvolumeclaims",), ("list", "create", "delete")),
    ("networking.k8s.io", ("networkpolicies",), _MADE),
    ("policy", ("poddisruptionbudgets",), _MADE),
    ("", ("pods",), ("list", "delete")),
    ("", ("events",), ("list",)),
    ("inference.networking.k8s.io", ("inferencepools",), ("list",)),
    ("kueue.x-k8s.io", ("localqueues",), ("list",)),
)
_API = "rbac.authorization.k8s.io"


def objects(namespace: str = "NAMESPACE", user: str = "SOMEBODY") -> list[dict[str, Any]]:
    inside = {"name": NAME, "namespace": namespace}
    return [
        _object("Role", inside, rules=_written(_RULES)),
        _object("RoleBinding", inside, roleRef=_refers("Role"), subjects=[_somebody(user)]),
        _object("ClusterRole", {"name": NAME}, rules=_written(_CLUSTER_RULES)),
        _object(
            "ClusterRoleBinding",
            {"name": f"{NAME}-{namespace}"},
            roleRef=_refers("ClusterRole"),
            subjects=[_somebody(user)],
        ),
    ]


def text() -> str:
    return _HEAD + _yaml(objects())


def cordoning(namespace: str = "NAMESPACE", user: str = "SOMEBODY") -> list[dict[str, Any]]:
    """A right of its own, which few should have."""
    binding = {"name": f"{CORDONS}-{namespace}"}
    return [
        _object("ClusterRole", {"name": CORDONS}, rules=_written(_CORDON_RULES)),
        _object("ClusterRoleBinding", binding, roleRef=_refers("ClusterRole", CORDONS), subjects=[_somebody(user)]),
    ]


def cordoning_text() -> str:
    return _CORDON_HEAD + _yaml(cordoning())


def serving(namespace: str = "NAMESPACE", user: str = "SOMEBODY") -> list[dict[str, Any]]:
    """Of whoever serves in a namespace, and runs no jobs there."""
    inside = {"name": SERVES, "namespace": namespace}
    return [
        _object("Role", inside, rules=_written(_SERVING_RULES)),
        _object("RoleBinding", inside, roleRef=_refers("Role", SERVES), subjects=[_somebody(user)]),
    ]


def serving_text() -> str:
    return _SERVING_HEAD + _yaml(serving())


def _yaml(documents: list[dict[str, Any]]) -> str:
    return "---\n".join(yaml.safe_dump(one, sort_keys=False, width=120, default_flow_style=None) for one in documents)


def _object(kind: str, metadata: dict[str, str], **rest: Any) -> dict[str, Any]:
    return {"apiVersion": f"{_API}/v1", "kind": kind, "metadata": metadata, **rest}


def _refers(kind: str, name: str = NAME) -> dict[str, str]:
    return {"apiGroup": _API, "kind": kind, "name": name}


def _somebody(user: str) -> dict[str, str]:
    return {"apiGroup": _API, "kind": "User", "name": user}


def _written(rules: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]) -> list[dict[str, list[str]]]:
    return [{"apiGroups": [group], "resources": list(names), "verbs": list(verbs)} for group, names, verbs in rules]
