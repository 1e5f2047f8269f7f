"""Every rule objects to what is wrong, at its line, and to nothing else."""

from __future__ import annotations

import pytest

from chipwise.auditor.auditing import audit, every_rule
from planted_faults import PARTS, SAME, UNCOVERED, cases

GOOD_JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 10001}
      nodeSelector: {karpenter.sh/capacity-type: spot}
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
      containers:
        - name: main
          image: team/trainer:1.4
          command: [torchrun, --nproc-per-node=8, train.py]
          securityContext: {allowPrivilegeEscalation: false}
          env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
          resources:
            requests: {cpu: "8", memory: 64Gi}
            limits: {memory: 64Gi, nvidia.com/gpu: 8}
          volumeMounts: [{name: state, mountPath: /checkpoints}, {name: shm, mountPath: /dev/shm}]
      volumes: [{name: shm, emptyDir: {medium: Memory}}, {name: state, persistentVolumeClaim: {claimName: state}}]
      restartPolicy: Never
"""
GOOD_SERVICE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  replicas: 2
  template:
    metadata: {labels: {app: chat}}
    spec:
      securityContext: {runAsNonRoot: true}
      containers:
        - name: main
          image: team/chat:1.4
          ports: [{containerPort: 8000}]
          readinessProbe: {httpGet: {path: /health, port: 8000}}
          livenessProbe: {httpGet: {path: /health, port: 8000}}
          securityContext: {allowPrivilegeEscalation: false}
          resources: {requests: {cpu: "4"}, limits: {memory: 28Gi}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: chat}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: chat}}
"""
GOOD_DOCKERFILE = 'FROM python:3.12-slim AS base\nRUN pip install x==1\nFROM base\nUSER 10001\nCMD ["python", "a.py"]\n'
GOOD_TERRAFORM = """\
resource "aws_instance" "main" {
  instance_type = "p5.48xlarge"
  metadata_options {
    http_tokens = "required"
  }
  root_block_device {
    encrypted   = true
    volume_size = 200
  }
}

resource "aws_security_group" "main" {
  ingress {
    from_port = 0
    self      = true
  }
  egress {
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_eks_node_group" "main" {
  instance_types = ["g5.xlarge"]
  taint {
    key    = "nvidia.com/gpu"
    effect = "NO_SCHEDULE"
  }
}

data "aws_iam_policy_document" "main" {
  statement {
    actions   = ["s3:GetObject"]
    resources = ["arn:aws:s3:::bucket/*"]
  }
}
"""
GOOD_COMPOSE = 'services:\n  main:\n    image: a:1\n    user: "10001"\n    environment: {MODE: fast}\n'
GOOD_NODES = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  limits: {nvidia.com/gpu: 16}
  template:
    spec:
      nodeClassRef: {name: gpu}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [p5.48xlarge]}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: gpu}
spec:
  metadataOptions: {httpTokens: required}
  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {encrypted: true}}]
"""
GOOD = {
    "job.yaml": GOOD_JOB,
    "service.yaml": GOOD_SERVICE,
    "Dockerfile": GOOD_DOCKERFILE,
    "main.tf": GOOD_TERRAFORM,
    "compose.yaml": GOOD_COMPOSE,
    "nodes.yaml": GOOD_NODES,
}

# rule, file, what is changed into what, the line of the finding
BAD = [
    ("root-container", "job.yaml", "runAsNonRoot: true, runAsUser: 10001", "fsGroup: 1", 14),
    ("root-container", "job.yaml", "runAsUser: 10001", "runAsUser: 0", 7),
    ("root-container", "job.yaml", "allowPrivilegeEscalation: false", "privileged: true, allowPrivilegeEscalation: false", 14),
    ("root-container", "job.yaml", "allowPrivilegeEscalation: false", "runAsNonRoot: true", 14),
    ("root-container", "Dockerfile", "USER 10001\n", "", 4),
    ("root-container", "Dockerfile", "USER 10001", "USER root", 4),
    ("root-container", "compose.yaml", '    user: "10001"\n', "    privileged: true\n", 4),
    ("host-access", "job.yaml", "      containers:", "      hostNetwork: true\n      containers:", 10),
    ("host-access", "job.yaml", "emptyDir: {medium: Memory}", "hostPath: {path: /}", 20),
    ("host-access", "job.yaml", "allowPrivilegeEscalation: false", "capabilities: {add: [SYS_ADMIN]}", 14),
    ("host-access", "compose.yaml", "    environment", "    network_mode: host\n    environment", 5),
    ("host-access", "compose.yaml", "    environment", "    volumes: [/var/run/docker.sock:/x]\n    environment", 5),
    ("missing-limits", "job.yaml", "limits: {memory: 64Gi, ", "limits: {", 16),
    ("missing-limits", "job.yaml", 'cpu: "8", ', "", 16),
    ("device-limits", "job.yaml", "64Gi}\n            limits: {memory: 64Gi, ", "64Gi, ", 17),
    ("device-limits", "job.yaml", "memory: 64Gi}", "memory: 64Gi, nvidia.com/gpu: 4}", 17),
    ("accelerator-taints", "job.yaml", "nvidia.com/gpu, operator", "other, operator", 9),
    ("accelerator-taints", "nodes.yaml", "      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]\n", "", 8),
    ("accelerator-taints", "main.tf", "  taint {\n", "  label {\n", 22),
    ("unbounded-machines", "nodes.yaml", "  limits: {nvidia.com/gpu: 16}\n", "", 4),
    ("small-disk", "nodes.yaml", "  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {encrypted: true}}]\n", "", 15),
    ("small-disk", "main.tf", "volume_size = 200", "volume_size = 20", 1),
    ("shared-memory", "job.yaml", ", {name: shm, mountPath: /dev/shm}", "", 19),
    ("open-secrets", "job.yaml", "valueFrom: {secretKeyRef: {name: hub, key: token}}", "value: abcdef", 15),
    ("open-secrets", "service.yaml", "kind: PodDisruptionBudget", "kind: PodDisruptionBudget # AKIAABCDEFGHIJKLMNOP", 20),
    ("open-secrets", "Dockerfile", "USER 10001", "ENV API_KEY=abc\nUSER 10001", 4),
    ("open-secrets", "compose.yaml", "MODE: fast", "DB_PASSWORD: fast", 5),
    ("open-secrets", "compose.yaml", "{MODE: fast}", "[DB_PASSWORD=fast]", 5),
    ("open-secrets", "job.yaml", "[torchrun, --nproc-per-node=8, train.py]", "[sh, -c, 'export API_KEY=a1b2c3; run']", 13),
    ("open-secrets", "main.tf", 'instance_type = "p5.48xlarge"', 'password = "hunter2"', 1),
    ("disruption-budget", "service.yaml", "matchLabels: {app: chat}", "matchLabels: {app: other}", 2),
    ("spot-without-checkpoint", "job.yaml", "{name: state, mountPath: /checkpoints}, ", "", 7),
    ("idle-accelerators", "job.yaml", "--nproc-per-node=8", "--nproc-per-node=2", 10),
    ("idle-accelerators", "job.yaml", "[torchrun, --nproc-per-node=8, train.py]", "[sleep, infinity]", 10),
    ("idle-accelerators", "job.yaml", "[torchrun, --nproc-per-node=8, train.py]", "[bash, -c, sleep 1d]", 10),
    ("idle-accelerators", "job.yaml", "[torchrun, --nproc-per-node=8, train.py]", "[sh, -c, vllm serve x --port 1]", 10),
    ("unpinned-image", "job.yaml", "team/trainer:1.4", "team/trainer:latest", 12),
    ("unpinned-image", "Dockerfile", "python:3.12-slim", "python", 1),
    ("unpinned-image", "compose.yaml", "image: a:1", "image: a", 3),
    (
        "unverified-image",
        "Dockerfile",
        "FROM",
        "# verify: docker buildx imagetools inspect a:1 (it follows a release)\nFROM",
        1,
    ),
    ("missing-probes", "service.yaml", "          readinessProbe: {httpGet: {path: /health, port: 8000}}\n", "", 11),
    ("open-network", "main.tf", "    self      = true", '    cidr_blocks = ["0.0.0.0/0"]', 12),
    ("open-network", "compose.yaml", "    environment", "    ports: ['8000:8000']\n    environment", 5),
    ("open-network", "service.yaml", "kind: PodDisruptionBudget", "kind: Service", 23),
    ("unencrypted-disk", "main.tf", "encrypted   = true", "encrypted = false", 1),
    ("unencrypted-disk", "nodes.yaml", "encrypted: true", "encrypted: false", 17),
    ("metadata-v1", "main.tf", '"required"', '"optional"', 1),
    ("metadata-v1", "nodes.yaml", "httpTokens: required", "httpTokens: optional", 16),
    ("broad-rights", "main.tf", '["s3:GetObject"]', '["*"]', 30),
    ("job-policy", "job.yaml", "restartPolicy: Never", "restartPolicy: Always", 21),
    ("job-policy", "job.yaml", "      restartPolicy: Never\n", "", 7),
    ("too-few-devices", "job.yaml", "--nproc-per-node=8", "--nproc-per-node=16", 13),
    ("requests-above-limits", "job.yaml", "limits: {memory: 64Gi", "limits: {memory: 63Gi", 17),
    ("unknown-volume", "job.yaml", "{name: state, persistentVolumeClaim", "{name: other, persistentVolumeClaim", 19),
    ("bucket-rights", "job.yaml", "train.py]", "train.py, s3://team/data]", 13),
    ("image-chip", "job.yaml", "team/trainer:1.4", "rocm/pytorch:rocm6.4", 12),
    ("group-size", "job.yaml", "[torchrun, ", "[torchrun, --nnodes=2, ", 13),
    (
        "port-mismatch",
        "service.yaml",
        "health, port: 8000}}\n          liveness",
        "health, port: 8001}}\n          liveness",
        14,
    ),
    ("disruption-budget", "service.yaml", "maxUnavailable: 1", "maxUnavailable: 0", 23),
    ("disruption-budget", "service.yaml", "maxUnavailable: 1", "minAvailable: 2", 23),
    ("selector-mismatch", "service.yaml", "selector: {matchLabels: {app: chat}}", "selector: {matchLabels: {app: chats}}", 24),
    ("unknown-kind", "service.yaml", "policy/v1\nkind: PodDisruptionBudget", "team.org/v1\nkind: Budget", 20),
    ("node-expiry", "nodes.yaml", "      taints", "      expireAfter: 24h\n      taints", 9),
    ("machine-bounds", "main.tf", "  taint {", "  scaling_config {\n    min_size = 2\n    max_size = 1\n  }\n  taint {", 22),
    ("unreadable", "job.yaml", "kind: Job", "kind: [", 3),
    ("unreadable", "main.tf", "egress {", "egress {{", 1),
]


def test_good_files_meet_no_objection() -> None:
    found = audit(GOOD.items())
    assert found.findings == ()
    assert set(found.audited) == set(GOOD)


@pytest.mark.parametrize(
    ("rule", "name", "old", "new", "line"), BAD, ids=[f"{one[0]}: {one[1]} {at}" for at, one in enumerate(BAD)]
)
def test_a_rule_objects_at_the_line(rule: str, name: str, old: str, new: str, line: int) -> None:
    assert old in GOOD[name]
    text = GOOD[name].replace(old, new, 1)
    if rule == "node-expiry":
        text = text.replace("  limits:", "  disruption: {budgets: [{nodes: '1'}]}\n  limits:").replace("\n---", "\n---", 1)
        line += 1
    if new == "kind: Service":
        text = text.replace("  maxUnavailable: 1", "  type: LoadBalancer")
    found = [one for one in audit([(name, text)]).findings if one.rule == rule]
    assert found, audit([(name, text)]).findings
    assert line in {one.line for one in found} or rule == "unreadable"
    assert all(one.fix and one.what for one in found)


def test_every_rule_has_something_to_object_to() -> None:
    faults = (fault for part in PARTS for case in cases(part) for fault in case.faults)
    planted = {rule for fault in faults for rule in SAME.get(fault.rule, (fault.rule,))} - UNCOVERED
    assert {one[0] for one in BAD} | planted == {*every_rule(), "unreadable"}
    assert all(rule.ABOUT for rule in every_rule().values())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00",
        "[1, 2",
        "- a\n- b\n",
        "a: &x [*x]\n",
        "kind: Job\n",
        "kind: Job\nspec: []\n",
        "kind: Deployment\nspec: {template: 3}\n",
        "{" * 5000,
        "kind: Job\nspec: {template: {spec: {containers: [3, {env: 5, resources: x}]}}}\n",
        "FROM\n",
        'resource "a" {\n',
        "é" * 1000,
        "kind: List\nitems: [1, {kind: Pod, spec: {containers: 1}}]\n",
    ],
)
@pytest.mark.parametrize("name", ["a.yaml", "main.tf", "Dockerfile", "-"])
def test_odd_files_are_told_and_never_crash(name: str, text: str) -> None:
    for one in audit([(name, text)]).findings:
        assert one.line >= 1


def test_a_bomb_of_aliases_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 10)}]\n" for at in range(1, 9)
    )
    found = audit([("a.yaml", bomb)]).findings
    assert [one.rule for one in found] == ["unreadable"]
