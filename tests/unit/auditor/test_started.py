"""What a file offers and starts besides its main line: alternatives of a task, scripts of machines, groups, consumers."""

from __future__ import annotations

import pytest

from chipwise.auditor.auditing import audit
from chipwise.auditor.finding import Finding

TASK = """\
resources:
  any_of:
    - {infra: aws, accelerators: 'A100-80GB:8'}
    - {infra: aws, accelerators: '%s'}
run: |
  vllm serve meta-llama/Llama-3.1-70B --tensor-parallel-size 8
"""
GROUP = """\
resource "aws_launch_template" "a" {
  instance_type = "%s"
  user_data = base64encode(<<-EOT
    #!/bin/bash
    docker run -d --gpus all -p 80:8000 --ipc=host %s
  EOT
  )
}

resource "aws_autoscaling_group" "a" {
  health_check_type         = "ELB"
  health_check_grace_period = %d
  launch_template {
    id = aws_launch_template.a.id
  }
}

resource "aws_autoscaling_policy" "a" {
  autoscaling_group_name = aws_autoscaling_group.a.name
  target_tracking_configuration {
    predefined_metric_specification {
      predefined_metric_type = "%s"
    }
  }
}
"""


def of(rule: str, path: str, text: str) -> list[Finding]:
    return [one for one in audit([(path, text)]).findings if one.rule == rule]


@pytest.mark.parametrize(("offer", "rules"), [("H100:8", set()), ("A100-80GB:4", {"too-few-devices"}), ("L4:8", set())])
def test_each_alternative_of_a_task_is_held_against_its_command(offer: str, rules: set[str]) -> None:
    every = {rule for rule in ("too-few-devices", "model-memory") if of(rule, "task.yaml", TASK % offer)}
    assert every == rules


def test_an_alternative_whose_memory_the_weights_exceed_is_named() -> None:
    [finding] = of("model-memory", "task.yaml", TASK % "T4:8")
    assert "8 x T4" in finding.what
    assert finding.also == (("task.yaml", 4),)


SERVED = "vllm/vllm-openai:v0.11.0 --model meta-llama/Llama-3.1-70B --tensor-parallel-size 4"


@pytest.mark.parametrize(
    ("machine", "command", "grace", "metric", "rules"),
    [
        ("g5.2xlarge", SERVED, 60, "ASGAverageCPUUtilization", {"too-few-devices", "short-startup", "autoscaling-signal"}),
        ("g5.2xlarge", "-v /srv:/srv team/a:1 --model x", 900, "ALBRequestCountPerTarget", set[str]()),
        ("m7i.large", SERVED, 60, "ASGAverageCPUUtilization", set[str]()),
    ],
)
def test_machines_that_terraform_starts_by_a_script(
    machine: str, command: str, grace: int, metric: str, rules: set[str]
) -> None:
    pytest.importorskip("hcl2")
    text = GROUP % (machine, command, grace, metric)
    looked_at = ("too-few-devices", "short-startup", "autoscaling-signal", "unpinned-image")
    assert {rule for rule in looked_at if of(rule, "main.tf", text)} == rules


@pytest.mark.parametrize(("seconds", "many"), [(60, 1), (1800, 0)])
def test_kuberay_waits_for_a_model_or_begins_again(seconds: int, many: int) -> None:
    served = "applications: [{args: {llm_configs: [{model_loading_config:\\n  model_id: qwen-72b\\n}]}}]"
    text = f'kind: RayService\nspec:\n  serviceUnhealthySecondThreshold: {seconds}\n  serveConfigV2: "{served}"\n'
    assert len(of("short-startup", "a.yaml", text)) == many


@pytest.mark.parametrize(("output", "many"), [("/out/result.json", 1), ("/tmp/result.json", 0), ("/out/$(MESSAGE).json", 0)])
def test_jobs_of_a_queue_that_write_one_file(output: str, many: int) -> None:
    text = f"""\
kind: ScaledJob
spec:
  jobTargetRef:
    template:
      spec:
        containers:
          - name: a
            image: a:1
            env: [{{name: OUTPUT, value: '{output}'}}]
            volumeMounts: [{{name: out, mountPath: /out}}]
        volumes: [{{name: out, persistentVolumeClaim: {{claimName: a}}}}]
"""
    assert len(of("two-writers", "a.yaml", text)) == many


@pytest.mark.parametrize(("image", "many"), [("a/b:main-latest", 1), ("a/b:latest-gpu", 1), ("a/b:1.2-gpu", 0)])
def test_a_variant_of_the_latest_has_no_version_either(image: str, many: int) -> None:
    assert len(of("unpinned-image", "a.yaml", f"kind: Pod\nspec: {{containers: [{{name: a, image: '{image}'}}]}}\n")) == many
