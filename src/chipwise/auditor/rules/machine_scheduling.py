"""Machines of Google with accelerators end where others move, and spot machines do not restart: asked for otherwise, the API
refuses them."""

from __future__ import annotations

from collections.abc import Iterator

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.machines import accelerated_google
from chipwise.auditor.source import Sources, TerraformBlock
from chipwise.auditor.terraform import inner, is_true, line_inside, text_of

ABOUT = "machines of Google have a maintenance and a restart that their kind allows"
_KINDS = ("google_compute_instance", "google_compute_instance_template", "google_compute_region_instance_template")


def check(sources: Sources) -> Iterator[Finding]:
    for block in sources.blocks:
        if block.type != "resource" or block.labels[:1] not in [(kind,) for kind in _KINDS]:
            continue
        machine = text_of(block.body.get("machine_type"))
        has_chips = bool(inner(block.body, "guest_accelerator")) or accelerated_google(machine)
        for scheduling in inner(block.body, "scheduling"):
            spot = is_true(scheduling.get("preemptible")) or text_of(scheduling.get("provisioning_model")) == "SPOT"
            moves = text_of(scheduling.get("on_host_maintenance"))
            if moves == "MIGRATE" and (has_chips or spot):
                kind = "accelerators" if has_chips else "spot machines"
                line = line_inside(sources, block, "on_host_maintenance")
                yield _finding(
                    block, line, f"has {kind}, which no live migration moves", 'Set on_host_maintenance = "TERMINATE".'
                )
            if spot and is_true(scheduling.get("automatic_restart")):
                line = line_inside(sources, block, "automatic_restart")
                yield _finding(block, line, "is a spot machine, which is not restarted", "Set automatic_restart = false.")


def _finding(block: TerraformBlock, line: int, message: str, fix: str) -> Finding:
    what = f"{block.title} {message}: Google refuses it"
    return Finding(rule="machine-scheduling", weight=Weight.HIGH, path=block.path, line=line, what=what, fix=fix)
