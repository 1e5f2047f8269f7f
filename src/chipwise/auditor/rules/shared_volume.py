"""A disk is attached to one machine: pods on others that claim it wait forever."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from chipwise.auditor.finding import Finding, Weight
from chipwise.auditor.pods import Pod, pods_of
from chipwise.auditor.source import Manifest, Sources, line_of, listed, look, walk
from chipwise.auditor.workloads import FANNED_OUT, WORKFLOWS, copies, scaled_names

ABOUT = "volumes that several machines use can be attached to several"
_RULE = "shared-volume"
_BLOCK = re.compile(
    r"gp2|gp3|io1|io2|st1|ebs\b.*|.*-ebs|aws-ebs.*|standard-rwo|premium-rwo|pd-\w+|managed-(?:csi|premium)\S*|do-block-storage|"
    r"linode-block-storage\S*|hcloud-volumes|cinder\S*"
)
_PROVISIONERS = ("ebs.csi.", "pd.csi.", "disk.csi.", "aws-ebs", "gce-pd", "azure-disk", "topolvm", "local")
_WORDS = {"ReadWriteMany", "ReadOnlyMany"}


def check(sources: Sources) -> Iterator[Finding]:
    classes = {one.name: str(one.body.get("provisioner")) for one in sources.manifests if one.kind == "StorageClass"}
    claims = [one for one in sources.manifests if one.kind == "PersistentVolumeClaim"]
    for claim in claims:
        yield from _several_machines(claim.path, claim.title, claim.body.get("spec"), classes)
    for manifest in sources.manifests:
        for template in listed(look(manifest.body, "spec", "volumeClaimTemplates")):
            yield from _several_machines(
                manifest.path, f"{manifest.title}: claim {look(template, 'metadata', 'name')}", look(template, "spec"), classes
            )
    for pod in pods_of(sources):
        if pod.owner.kind in WORKFLOWS:
            yield from _of_one_step(pod)
    scaled, by_name = scaled_names(sources), {(one.namespace, one.name): one for one in claims}
    for pod in pods_of(sources, partial=True):
        if copies(pod, scaled) > 1:
            yield from _one_machine(pod, by_name)


def _several_machines(path: str, title: str, spec: object, classes: dict[str, str]) -> Iterator[Finding]:
    """A claim for several machines on a class of disks."""
    modes = {str(mode) for mode in listed(look(spec, "accessModes"))}
    name = str(look(spec, "storageClassName") or "")
    provisioner = classes.get(name, "")
    is_block = any(sign in provisioner for sign in _PROVISIONERS) if provisioner else _BLOCK.fullmatch(name) is not None
    if modes & _WORDS and is_block and look(spec, "volumeMode") != "Block":
        message = f"{title} asks for {', '.join(sorted(modes & _WORDS))}, which disks of {name} do not have"
        fix = "Use a class of a file system (EFS, FSx, Filestore), or ReadWriteOnce with one pod."
        yield Finding(rule=_RULE, weight=Weight.HIGH, path=path, line=line_of(spec, "accessModes"), what=message, fix=fix)


def _of_one_step(pod: Pod) -> Iterator[Finding]:
    """A claim of one machine that Argo makes for a workflow, and a template that runs once for each item with it."""
    name = pod.spec.get("name")
    fans = [one for one in walk(pod.owner.body) if one.get("template") == name and any(key in one for key in FANNED_OUT)]
    mounted = {str(look(mount, "name")) for main in pod.mains for mount in listed(main.get("volumeMounts"))}
    for claim in listed(look(pod.owner.body, "spec", "volumeClaimTemplates")) if name and fans else ():
        modes = {str(mode) for mode in listed(look(claim, "spec", "accessModes"))}
        if str(look(claim, "metadata", "name")) in mounted and modes and not modes & _WORDS:
            yield Finding(
                rule=_RULE,
                weight=Weight.MEDIUM,
                path=pod.owner.path,
                line=line_of(look(claim, "spec"), "accessModes"),
                what=f"{pod.owner.title} runs {name} once for each item, and its claim is attached to one machine",
                fix="Use ReadWriteMany on a file system (EFS, FSx, Filestore), or hand files over as artifacts.",
                also=((pod.owner.path, line_of(fans[0])),),
            )


def _one_machine(pod: Pod, claims: Mapping[tuple[str, str], Manifest]) -> Iterator[Finding]:
    """Several pods that share a claim of one machine."""
    for volume in listed(pod.spec.get("volumes")):
        claim = claims.get((pod.owner.namespace, str(look(volume, "persistentVolumeClaim", "claimName"))))
        modes = {str(mode) for mode in listed(look(claim.body, "spec", "accessModes"))} if claim else set()
        if claim and modes and not modes & _WORDS:
            yield Finding(
                rule=_RULE,
                weight=Weight.MEDIUM,
                path=pod.owner.path,
                line=line_of(volume, "persistentVolumeClaim", "claimName"),
                what=f"{pod.owner.title} has several pods, and {claim.title} can be attached to one machine",
                fix="Claim ReadWriteMany from a file system, or give each pod its own (volumeClaimTemplates, ephemeral).",
                also=((claim.path, line_of(claim.body, "spec", "accessModes")),),
            )
