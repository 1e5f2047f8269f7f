"""Files beside manifests: scripts of Slurm, task definitions of ECS, templates of CloudFormation."""

from __future__ import annotations

import pytest

from chipwise.auditor.auditing import audit

SLURM = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=gpu:a100:4
export MASTER_ADDR=localhost
srun torchrun --nnodes=4 --nproc_per_node=8 train.py
"""
ECS = """\
{"family": "chat", "requiresCompatibilities": ["FARGATE"],
 "containerDefinitions": [{"name": "vllm", "image": "vllm/vllm-openai",
   "command": ["--model", "x", "--tensor-parallel-size", "2"],
   "environment": [{"name": "API_KEY", "value": "b7Hq20sk"}],
   "resourceRequirements": [{"type": "GPU", "value": "1"}]}]}
"""
STACK = """\
Resources:
  Open:
    Type: AWS::EC2::SecurityGroup
    Properties:
      SecurityGroupIngress:
        - {IpProtocol: tcp, FromPort: 22, ToPort: 22, CidrIp: 0.0.0.0/0}
  Role:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyDocument:
            Statement:
              - {Effect: Allow, Action: "*", Resource: "*"}
  Disk:
    Type: AWS::EC2::Volume
    Properties: {Size: 10, AvailabilityZone: !Ref Zone}
"""


def found(path: str, text: str) -> set[tuple[str, int]]:
    return {(one.rule, one.line) for one in audit([(path, text)]).findings}


def test_a_script_of_slurm_is_a_task() -> None:
    wanted = {("rendezvous", 4), ("group-size", 5), ("too-few-devices", 5)}
    assert found("train.sbatch", SLURM) == wanted
    assert found("train.sh", SLURM) == wanted


def test_of_another_script_only_secrets_are_looked_for() -> None:
    other = audit([("a.sh", "torchrun --nnodes=4 --rdzv_endpoint=localhost:1 a.py\nTOKEN=hf_" + "a1" * 17 + "\n")])
    assert [(one.rule, one.line) for one in other.findings] == [("open-secrets", 2)]
    assert other.audited == ()


def test_containers_of_ecs_are_read_as_others_are() -> None:
    rules = {rule for rule, _ in found("task.json", ECS)}
    assert {"no-accelerators", "open-secrets", "too-few-devices", "unpinned-image", "shared-memory"} <= rules
    assert ("no-accelerators", 1) in found("task.json", ECS)


def test_resources_of_cloudformation_have_lines_of_their_own() -> None:
    assert found("stack.yaml", STACK) == {("open-network", 6), ("broad-rights", 13), ("unencrypted-disk", 16)}


def test_a_file_that_says_nothing_of_itself_is_no_file_without_problems() -> None:
    result = audit([("settings.yaml", "colour: blue\n")])
    assert result.audited == ()
    assert result.skipped == ("settings.yaml: nothing says what it is for",)


@pytest.mark.parametrize(
    ("machine", "asked", "objects"), [("g5.xlarge", 4, True), ("g5.12xlarge", 4, False), ("of-our-own", 4, False)]
)
def test_a_pod_fits_on_the_machine_that_it_names(machine: str, asked: int, objects: bool) -> None:
    selector = f"nodeSelector: {{node.kubernetes.io/instance-type: {machine}}}"
    resources = f"resources: {{limits: {{nvidia.com/gpu: {asked}}}}}"
    pod = f"kind: Pod\nspec: {{{selector}, containers: [{{name: a, image: 'a:1', {resources}}}]}}\n"
    assert (("machine-size", 2) in found("pod.yaml", pod)) is objects


@pytest.mark.parametrize(
    ("model", "chip", "split", "rule"),
    [
        ("meta-llama/Llama-3.1-70B-Instruct", "NVIDIA-L4", 2, "model-memory"),
        ("meta-llama/Llama-3.1-8B-Instruct", "NVIDIA-L4", 2, None),
        ("meta-llama/Llama-3.1-70B-Instruct-AWQ-INT4", "NVIDIA-L4", 2, None),
        ("meta-llama/Llama-3.1-8B-Instruct", "NVIDIA-L4", 3, "uneven-split"),
    ],
)
def test_a_model_is_held_against_its_devices(model: str, chip: str, split: int, rule: str | None) -> None:
    text = f"""\
kind: Deployment
spec:
  template:
    spec:
      nodeSelector: {{nvidia.com/gpu.product: {chip}}}
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model={model}, --tensor-parallel-size={split}]
          resources: {{limits: {{nvidia.com/gpu: {split}}}}}
"""
    rules = {one for one, _ in found("a.yaml", text)} & {"model-memory", "uneven-split", "too-few-devices"}
    assert rules == ({rule} if rule else set())
