"""Naming an engine: what is wrong is told in a sentence with a remedy, and nothing is written down."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from command import ROOT, Chipwise

TYPED = "kind: batch\nname: x\nmodel: llama-3.1-8b\nitems: 5\nprogram: {command: ['true']}\n"
TRAIN = "examples/finetune/workload.yaml"


def engines(chipwise: Chipwise, text: str) -> None:
    chipwise.config_dir.mkdir(parents=True, exist_ok=True)
    (chipwise.config_dir / "engines.yaml").write_text(text)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("--engine kubernets -- true", 2, "Did you mean kubernetes?"),
        ("--engine local --context prod -- true", 2, "--context does not apply to this machine."),
        ("--machine g5.xlarge --spot -- true", 2, "--machine, --spot does not apply to this machine."),
        ("--image a:1 -- true", 2, "Name another with --engine"),
        ("--budget 5 -- true", 2, "--budget cannot be enforced"),
        ("--engine kubernetes -- true", 3, "There is no kubeconfig"),
        (f"--engine kubernetes {TRAIN}", 3, "There is no kubeconfig"),
        ("--engine ec2 -- true", 2, "ec2.keep: is required."),
        (f"--stage-engine train {TRAIN}", 2, "Write --stage-engine STAGE=ENGINE."),
        ("--stage-engine a=local -- true", 2, "A command has no stages."),
        ("--machine g5.xlarge examples/run/heat.yaml", 2, "--machine does not apply to this machine."),
        (f"--simulate --engine kubernetes {TRAIN}", 2, "A simulation uses no engine"),
    ],
)
def test_what_cannot_be_reached_is_told_and_leaves_no_job(chipwise: Chipwise, arguments: str, code: int, said: str) -> None:
    done = chipwise("run", *arguments.split())
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err
    assert chipwise("ps", "--all", "--json").json == []
    assert not (chipwise.data_dir / "run" / "places").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("box: {kind: kubernets}", "box.kind: 'kubernets' is not a kind of engine"),
        ("local: {kind: kubernetes}", "local.kind"),
        ("box: 3", "box: is not a mapping of fields"),
        ("- box", "engines.yaml"),
        ("ec2: {region: eu-west-1, kep: s3://b/x}", "Did you mean keep?"),
        ("ec2: {region: eu-west-1, keep: s3://b/x, root_gib: big}", "ec2.root_gib"),
        ("ec2: {region: eu-west-1, keep: b/x}", "is not a place in S3"),
        ("ec2: {region: eu-west-1, keep: 's3://b/x', idle_minutes: 0.1}", "less than a minute"),
        ("ec2: {region: eu-west-1, keep: s3://b/x, regions: 3}", "ec2.regions"),
        ("ec2: {region: eu-west-1, keep: s3://b/x, regions: {eu-north-1: {subnts: [a]}}}", "Did you mean subnets?"),
        ("ec2: {region: eu-west-1, keep: s3://b/x, regions: {eu-north-1: 3}}", "ec2.regions.eu-north-1"),
        ("ec2: {region: eu-west-1, keep: s3://b/x, regions: {eu-west-1: {image: ami-1}}}", "eu-west-1 is named twice"),
        ("ec2: {region: eu-west-1, keep: s3://b/x, regions: ['a.example/x?']}", "a region is written like eu-west-1"),
        ("ec2: {region: eu-west-1, keep: s3://b/x, regions: ['']}", "a region is written like eu-west-1"),
        ("ec2: {region: ../x, keep: s3://b/x}", "ec2.region: '../x' is not valid: a region is written like eu-west-1"),
        ("ec2: {region: eu-west-1, keep: s3://b/x, regions: [eu-north-1, 3]}", "names of regions belong here"),
        ("ec2: {region: [", "engines.yaml:1: not valid YAML"),
        ("\x00", ""),
    ],
)
def test_a_bad_file_of_engines_is_told_with_its_field(chipwise: Chipwise, text: str, said: str) -> None:
    engines(chipwise, text)
    done = chipwise("run", "--engine", "ec2" if "ec2" in text else "box", "--machine", "m5.large", "--", "true")
    assert done.code == 2, done.err
    assert said in done.err
    assert "Traceback" not in done.err


def test_what_only_plays_is_no_engine_for_a_job(chipwise: Chipwise) -> None:
    done = chipwise("run", "--engine", "simulated", "--", "true")
    assert (done.code, "Use --simulate, or one of local, ec2, kubernetes." in done.err) == (2, True)


def test_a_stage_that_is_not_there_is_told(chipwise: Chipwise, tmp_path: Path) -> None:
    path = tmp_path / "work.yaml"
    path.write_text(TYPED)
    done = chipwise("run", "--stage-engine", "nowhere=local", str(path))
    assert (done.code, "has no stage nowhere. Its stages: none." in done.err) == (2, True)


def test_a_command_at_a_cloud_needs_a_machine_that_is_known(chipwise: Chipwise) -> None:
    engines(chipwise, "ec2: {region: eu-west-1, keep: s3://b/x}")
    assert "--machine" in chipwise("run", "--engine", "ec2", "--", "true").err
    done = chipwise("run", "--engine", "ec2", "--machine", "g5.xlrge", "--budget", "5", "--", "true")
    assert (done.code, "Did you mean g5.xlarge" in done.err) == (2, True)


def test_a_secret_of_this_machine_does_not_travel(chipwise: Chipwise) -> None:
    engines(chipwise, "ec2: {region: eu-west-1, keep: s3://b/x}")
    words = ("run", "--engine", "ec2", "--machine", "m5.large", "--secret", "TOKEN", "--", "true")
    done = chipwise(*words, TOKEN="hidden")
    assert done.code == 2
    assert "--secret TOKEN=NAME/KEY" in done.err
    assert "hidden" not in done.err


@pytest.mark.parametrize(
    ("told", "region", "others"),
    [
        ("regions: [eu-north-1, eu-west-1]", "eu-north-1", ["eu-west-1"]),
        ("regions: {eu-north-1: , eu-west-1: {image: ami-1}}", "eu-north-1", ["eu-west-1"]),
        ("region: eu-west-1, regions: [eu-west-1, eu-north-1]", "eu-west-1", ["eu-north-1"]),
        ("region: eu-west-1, regions: ", "eu-west-1", []),
    ],
)
def test_regions_may_be_told_in_one_list(chipwise: Chipwise, told: str, region: str, others: list[str]) -> None:
    from chipwise.adapters.engines.ec2.settings import Settings

    fields = Settings.model_validate({**yaml.safe_load(f"{{{told}}}"), "keep": "s3://b/x"})
    assert (fields.region, list(fields.regions)) == (region, others)


def test_the_page_of_engines_tells_their_fields() -> None:
    from chipwise.adapters.engines.kubernetes.settings import Settings

    page = Path(ROOT / "docs/running/engines.md").read_text()
    assert all(f"`{name}`" in page for name in Settings.model_fields)


def test_the_tutorial_of_ec2_tells_its_settings() -> None:
    from chipwise.adapters.engines.ec2.settings import Settings

    page = Path(ROOT / "docs/tutorial/run-on-ec2.md").read_text()
    assert all(f"`{name}`" in page for name in Settings.model_fields if name != "endpoint_url")
