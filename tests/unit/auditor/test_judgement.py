"""Manifests as people write them after reading about it: what a careful engineer objects to is found, and nothing else is."""

from __future__ import annotations

from chipwise.auditor.auditing import audit

VLLM = """\
kind: Deployment
metadata: {name: chat}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:latest
          command: [/bin/sh, -c]
          args: ["vllm serve mistralai/Mistral-7B-Instruct-v0.3 --max-model-len 4096"]
          env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}]
          ports: [{containerPort: 8000}]
          livenessProbe: {httpGet: {path: /health, port: 8000}}
          resources: {limits: {cpu: 10, memory: 20G, nvidia.com/gpu: 4}}
---
kind: Secret
metadata: {name: hub}
stringData: {token: REPLACE_WITH_TOKEN}
---
kind: Ingress
metadata: {name: chat}
spec: {rules: [{host: chat.example.org}]}
"""
TRAINING = """\
kind: PyTorchJob
metadata: {name: bert}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 4
      template:
        spec:
          nodeSelector: {eks.amazonaws.com/capacityType: SPOT}
          tolerations: [{key: nvidia.com/gpu, operator: Exists}]
          securityContext: {runAsNonRoot: true}
          containers:
            - name: pytorch
              image: team/bert:1.2
              command: [python3, train.py]
              securityContext: {allowPrivilegeEscalation: false}
              resources: {requests: {cpu: 32}, limits: {memory: 400Gi, nvidia.com/gpu: 8}}
"""
POOLS = """\
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {name: gpu}
      requirements: [{key: karpenter.k8s.aws/instance-category, operator: In, values: [g, p]}]
---
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {name: general}
      requirements:
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
        - {key: karpenter.k8s.aws/instance-gpu-count, operator: DoesNotExist}
---
kind: EC2NodeClass
metadata: {name: gpu}
spec: {role: nodes}
---
kind: EC2NodeClass
metadata: {name: general}
spec: {role: nodes}
"""
MACHINE = """\
provider "aws" {
  secret_key = "wJalrXUtnFEMIK7MDENGbPxRfiCY"
}
resource "aws_instance" "gpu" {
  instance_type = "g5.2xlarge"
  user_data     = <<-EOF
    #!/bin/bash
    export HF_TOKEN=abc
    docker run --gpus all -e HF_TOKEN vllm/vllm-openai
  EOF
  metadata_options { http_tokens = "required" }
}
resource "aws_iam_role_policy" "all" {
  policy = jsonencode({ Statement = [{ Effect = "Allow", Action = ["s3:*"], Resource = "*" }] })
}
resource "aws_s3_bucket_acl" "models" {
  acl = "public-read"
}
"""
GROUPS = """\
module "eks" {
  source = "terraform-aws-modules/eks/aws"
  eks_managed_node_groups = {
    gpu = {
      instance_types = ["p4d.24xlarge"]
    }
    plain = {
      instance_types = ["m7i.large"]
    }
    tainted = {
      instance_types = ["p5.48xlarge"]
      taints         = { gpu = { key = "nvidia.com/gpu", effect = "NO_SCHEDULE" } }
    }
  }
}
"""
COMPOSE = """\
services:
  ollama:
    image: ollama/ollama:0.6.2
    user: "1000"
    ports: ["11434:11434"]
    volumes: ["/var/run/docker.sock:/var/run/docker.sock"]
    environment: [OPENAI_API_KEY=sk-proj-abcdefghijklmnopqrstuvwxyz0123456789]
  webui:
    image: open-webui:v0.6.5
    user: "1000"
    network_mode: host
    ports: ["127.0.0.1:3000:8080"]
    environment: [OPENAI_API_KEY, "WEBUI_SECRET_KEY=${WEBUI_SECRET_KEY}"]
"""
RAY = """\
kind: RayCluster
metadata: {name: ray}
spec:
  headGroupSpec:
    serviceType: LoadBalancer
    template: {spec: {containers: []}}
"""
SLEEPERS = [
    "[sleep, infinity]",
    "[bash, -c, sleep 1d]",
    "[/bin/sh, -c, 'while true; do sleep 3600; done']",
    "[tail, -f, /dev/null]",
    "[sh, -lc, exec sleep inf]",
]
WORKERS = ["[sh, -c, 'sleep 5 && python train.py']", "[python, train.py]", "[bash, -c, sleep 30]", "[tail, -f, /var/log/x]"]


def found(name: str, text: str) -> set[tuple[str, int]]:
    return {(one.rule, one.line) for one in audit([(name, text)]).findings}


def test_a_chat_service_that_holds_four_gpus_and_uses_one() -> None:
    assert found("a.yaml", VLLM) == {
        ("root-container", 9),
        ("accelerator-taints", 8),
        ("idle-accelerators", 8),
        ("missing-probes", 9),
        ("open-network", 24),
        ("unpinned-image", 10),
        ("shared-memory", 9),
        ("short-startup", 15),
    }
    assert ("open-secrets", 20) in found("a.yaml", VLLM.replace("REPLACE_WITH_TOKEN", "abcdef123")), "no longer a placeholder"
    split = VLLM.replace("--max-model-len 4096", "--tensor-parallel-size 4")
    assert ("idle-accelerators", 8) not in found("a.yaml", split)
    assert ("open-network", 24) not in found("a.yaml", VLLM.replace("{rules", "{tls: [{secretName: x}], rules"))


def test_a_training_operator_on_spot_that_saves_nothing() -> None:
    assert found("a.yaml", TRAINING) == {("spot-without-checkpoint", 9), ("shared-memory", 13)}


def test_pools_by_category_are_pools_of_accelerators() -> None:
    """Karpenter encrypts disks by default, so only their size is at fault; pools of plain machines are left alone."""
    assert found("a.yaml", POOLS) == {
        ("accelerator-taints", 6),
        ("machine-chip", 7),  # any machine of g and p: from a T4 to eight H200
        ("unbounded-machines", 3),
        ("small-disk", 21),
    }


def test_a_machine_of_a_first_tutorial() -> None:
    assert found("main.tf", MACHINE) == {
        ("open-secrets", 1),
        ("open-secrets", 4),
        ("small-disk", 4),
        ("unencrypted-disk", 4),
        ("broad-rights", 13),
        ("open-network", 16),
        ("unpinned-image", 9),  # the container that its script starts
    }


def test_groups_inside_a_module_are_looked_at() -> None:
    [only] = audit([("main.tf", GROUPS)]).findings
    assert only.rule == "accelerator-taints"
    assert "gpu" in only.what


def test_a_compose_file_with_the_engines_socket_and_a_key() -> None:
    assert found("compose.yaml", COMPOSE) == {("host-access", 6), ("host-access", 11), ("open-secrets", 7), ("open-network", 5)}


def test_ray_on_a_load_balancer_runs_anybodys_code() -> None:
    assert found("a.yaml", RAY) == {("open-network", 5)}
    assert found("a.yaml", RAY.replace("LoadBalancer", "ClusterIP")) == set()


def test_waiting_is_told_from_working() -> None:
    def asks(command: str) -> bool:
        text = TRAINING.replace("[python3, train.py]", command)
        return ("idle-accelerators", 12) in found("a.yaml", text)

    assert all(map(asks, SLEEPERS))
    assert not any(map(asks, WORKERS))


def test_a_budget_may_name_its_pods_by_expressions() -> None:
    service = VLLM.partition("---")[0].replace("replicas: 1", "replicas: 3")
    budget = "---\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {selector: {matchExpressions: [%s]}}\n"
    fits, other = "{key: app, operator: In, values: [chat, x]}", "{key: app, operator: NotIn, values: [chat]}"
    assert ("disruption-budget", 1) not in found("a.yaml", service + budget % fits)
    assert ("disruption-budget", 1) in found("a.yaml", service + budget % other)
    apart = (service + budget % fits).replace("metadata: {name: b}", "metadata: {name: b, namespace: elsewhere}")
    assert ("disruption-budget", 1) in found("a.yaml", apart)


def test_rights_of_root_are_told_and_locking_memory_is_not() -> None:
    text = TRAINING.replace(
        "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: false, capabilities: {add: [IPC_LOCK]}"
    )
    assert ("host-access", 16) not in found("a.yaml", text)
    assert ("host-access", 16) in found("a.yaml", text.replace("IPC_LOCK", "CAP_SYS_ADMIN"))
