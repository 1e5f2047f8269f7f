"""The rendered scripts of AWS, executed against a running moto server: what they start, what they fall back to, and that
nothing is left behind."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aws_stand_in import AMI, Aws, started
from chipwise.renderer.aws.endpoint import endpoint
from chipwise.renderer.deployment import Deployment
from chipwise.renderer.layout import pods
from chipwise.renderer.named_targets import target
from deployments import deployment
from render_checks import program
from small_runs import small

pytest.importorskip("moto")
pytestmark = pytest.mark.e2e

ON_AWS = "clouds=[aws]"
OLD = "ml.g4dn.xlarge"  # moto knows the machine types of some years ago only


@pytest.fixture(scope="module")
def server() -> Iterator[Aws]:
    with started() as running:
        yield running


@pytest.fixture
def aws(server: Aws) -> Aws:
    server.reset()
    return server


def written(folder: Path, name: str, planned: Deployment) -> Path:
    for file in target(name).render(planned):
        (folder / file.path).write_text(file.text)
    return folder


def changed(script: Path, **values: object) -> None:
    """Other settings beside a program."""
    path = script.with_suffix(".json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def alive(aws: Aws, region: str) -> list[Any]:
    found = aws.client("ec2", region).describe_instances()["Reservations"]
    return [one for group in found for one in group["Instances"] if one["State"]["Name"] not in ("terminated", "shutting-down")]


def own_groups(aws: Aws, region: str) -> list[str]:
    found = aws.client("ec2", region).describe_security_groups()["SecurityGroups"]
    return [one["GroupName"] for one in found if one["GroupName"].startswith("chipwise-")]


def private_subnet(aws: Aws, region: str) -> str:
    return str(aws.client("ec2", region).describe_subnets()["Subnets"][0]["SubnetId"])


def profile(aws: Aws, region: str) -> str:
    iam = aws.client("iam", region)
    iam.create_instance_profile(InstanceProfileName="worker")
    return "worker"


SERVE = deployment("serve", ON_AWS)
TRAIN = deployment("train", ON_AWS)
BATCH = deployment("batch", ON_AWS)


def job_options(aws: Aws, planned: Deployment) -> list[str]:
    region = planned.node.region
    return [
        "--image",
        "example.com/trainer:1",
        "--keep",
        "s3://bucket/run",
        "--instance-profile",
        profile(aws, region),
        "--subnet",
        private_subnet(aws, region),
        "--no-watch",
    ]


class TestEc2:
    def test_without_up_nothing_starts(self, aws: Aws, tmp_path: Path) -> None:
        done = aws.run(written(tmp_path, "ec2", SERVE) / "launch.py")
        assert (done.returncode, "dry run: fine" in done.stdout) == (0, True), done.stderr
        assert alive(aws, SERVE.node.region) == []
        assert own_groups(aws, SERVE.node.region) == []

    def test_up_starts_what_the_plan_says_and_down_removes_all(self, aws: Aws, tmp_path: Path) -> None:
        script, region = written(tmp_path, "ec2", SERVE) / "launch.py", SERVE.node.region
        done = aws.run(script, "--up", "--open-to", "10.0.0.0/8")
        assert done.returncode == 0, done.stderr
        found = alive(aws, region)
        assert [one["InstanceType"] for one in found] == [SERVE.node.machine] * SERVE.machines
        assert [one["ImageId"] for one in found] == [AMI] * SERVE.machines
        tags = {tag["Key"]: tag["Value"] for tag in found[0]["Tags"]}
        assert tags["chipwise-deployment"] == SERVE.name
        assert tags.items() >= dict(SERVE.labels).items()
        groups = aws.client("ec2", region).describe_security_groups(GroupNames=[f"chipwise-{SERVE.name}"])["SecurityGroups"]
        rules = groups[0]["IpPermissions"]
        assert [(rule["FromPort"], rule["IpRanges"][0]["CidrIp"]) for rule in rules] == [(8000, "10.0.0.0/8")]
        disk = aws.client("ec2", region).describe_volumes()["Volumes"][0]
        assert (disk["Encrypted"], disk["VolumeType"]) == (True, "gp3")
        again = aws.run(script, "--up")
        assert again.returncode == 1
        assert "runs already" in again.stderr
        assert aws.run(script, "--down").returncode == 0
        assert alive(aws, region) == []
        assert own_groups(aws, region) == []

    def test_several_machines_come_with_efa_close_together_and_know_their_head(self, aws: Aws, tmp_path: Path) -> None:
        script, region = written(tmp_path, "ec2", TRAIN) / "launch.py", TRAIN.node.region
        done = aws.run(script, "--up", *job_options(aws, TRAIN))
        assert done.returncode == 0, done.stderr
        asked = next(form for action, form in aws.asked if action == "RunInstances" and "DryRun" not in form)
        assert asked["InstanceMarketOptions.MarketType"] == "spot"
        assert asked["MetadataOptions.HttpTokens"] == "required"
        assert asked["Placement.GroupName"] in aws.placement_groups
        kinds = [value for key, value in asked.items() if key.endswith("InterfaceType")]
        assert sorted(kinds) == sorted(["interface"] + ["efa-only"] * TRAIN.node.interfaces)
        assert (asked["MinCount"], asked["MaxCount"]) == (str(TRAIN.machines), str(TRAIN.machines))
        found = alive(aws, region)
        heads = {tag["Value"] for one in found for tag in one["Tags"] if tag["Key"] == "chipwise-head"}
        assert len(found) == TRAIN.machines
        assert heads <= {one["PrivateIpAddress"] for one in found}
        assert len(heads) == 1
        assert aws.run(script, "--down").returncode == 0
        assert (alive(aws, region), own_groups(aws, region), aws.placement_groups) == ([], [], set())

    def test_no_spot_capacity_leads_to_other_machines_and_to_the_full_price_if_told(self, aws: Aws, tmp_path: Path) -> None:
        aws.refuse = lambda action, form: (
            "InsufficientInstanceCapacity"
            if action == "RunInstances" and form.get("InstanceMarketOptions.MarketType") == "spot"
            else None
        )
        script, options = written(tmp_path, "ec2", TRAIN) / "launch.py", job_options(aws, TRAIN)
        refused = aws.run(script, "--up", *options)
        assert (refused.returncode, "--or-on-demand" in refused.stderr) == (1, True), refused.stderr
        assert alive(aws, TRAIN.node.region) == []
        done = aws.run(script, "--up", "--or-on-demand", *options)
        assert done.returncode == 0, done.stderr
        told = [line.split()[1:3] for line in done.stdout.splitlines() if line.startswith("no:")]
        assert told == [[one.machine, "(spot)"] for one in (TRAIN.node, *TRAIN.alternatives)]
        found = alive(aws, TRAIN.node.region)
        assert {(one["InstanceType"], one.get("InstanceLifecycle")) for one in found} == {(TRAIN.node.machine, None)}

    def test_independent_machines_take_what_there_is_from_each(self, aws: Aws, tmp_path: Path) -> None:
        few = written(tmp_path, "ec2", BATCH) / "launch.py"
        changed(few, MACHINES=3)
        aws.refuse = lambda action, form: (
            "InsufficientInstanceCapacity"
            if action == "RunInstances" and form["InstanceType"] == BATCH.node.machine and "DryRun" not in form
            else None
        )
        done = aws.run(few, "--up", "--or-on-demand", *job_options(aws, BATCH))
        assert done.returncode == 0, done.stderr
        found = alive(aws, BATCH.node.region)  # moto gives the least that is asked for: one at a time
        assert len(found) == 3
        assert BATCH.node.machine not in {one["InstanceType"] for one in found}
        ranks = [tag["Value"] for one in found for tag in one["Tags"] if tag["Key"] == "chipwise-first-rank"]
        assert sorted(ranks) == ["0", "1", "2"]

    def test_when_no_attempt_succeeds_nothing_is_left(self, aws: Aws, tmp_path: Path) -> None:
        aws.refuse = lambda action, form: "InsufficientInstanceCapacity" if action == "RunInstances" else None
        done = aws.run(written(tmp_path, "ec2", TRAIN) / "launch.py", "--up", *job_options(aws, TRAIN))
        assert done.returncode == 1
        assert f"Only 0 of {TRAIN.machines}" in done.stderr
        region = TRAIN.node.region
        assert (alive(aws, region), own_groups(aws, region), aws.placement_groups) == ([], [], set())

    def test_an_error_after_the_start_ends_the_machines(self, aws: Aws, tmp_path: Path) -> None:
        aws.refuse = lambda action, form: "UnauthorizedOperation" if action == "CreateTags" else None
        done = aws.run(written(tmp_path, "ec2", TRAIN) / "launch.py", "--up", *job_options(aws, TRAIN))
        assert done.returncode == 2
        assert "UnauthorizedOperation" in done.stderr
        assert f"ended {TRAIN.machines} machines" in done.stdout
        assert alive(aws, TRAIN.node.region) == []

    @pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
    def test_ctrl_c_while_waiting_ends_the_machines(self, aws: Aws, tmp_path: Path, sent: signal.Signals) -> None:
        script, released = written(tmp_path, "ec2", SERVE) / "launch.py", threading.Event()

        def hold(action: str, form: Mapping[str, str]) -> str | None:
            """The waiter asks whether machines run; it gets no answer until the signal was sent."""
            if action == "DescribeInstances" and "InstanceId.1" in form:
                released.wait(30)
            return None

        aws.refuse = hold
        process = subprocess.Popen(
            [sys.executable, str(script), "--up"],
            env=aws.environment(),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(400):
            if any(action == "DescribeInstances" and "InstanceId.1" in form for action, form in list(aws.asked)):
                break
            time.sleep(0.05)
        assert len(alive(aws, SERVE.node.region)) == SERVE.machines
        process.send_signal(sent)
        time.sleep(0.5)
        released.set()
        _, told = process.communicate(timeout=300)
        assert (process.returncode, "ending what was started" in told) == (130, True), told
        assert alive(aws, SERVE.node.region) == []
        assert own_groups(aws, SERVE.node.region) == []

    def test_the_aws_cli_script_does_the_same(self, aws: Aws, tmp_path: Path) -> None:
        program("aws")
        planned = replace(TRAIN, alternatives=(replace(TRAIN.node, machine="p5en.48xlarge"),))
        script, region = written(tmp_path, "ec2", planned) / "launch.sh", TRAIN.node.region
        options = ["image=example.com/trainer:1", "keep=s3://bucket/run", f"profile={profile(aws, region)}"]
        public = aws.run(script, "check", *options)
        assert (public.returncode, "private subnet" in public.stderr) == (1, True), public.stderr
        options.append(f"subnet={private_subnet(aws, region)}")
        checked = aws.run(script, "check", *options)
        assert (checked.returncode, "dry run: fine" in checked.stdout) == (0, True), checked.stderr
        aws.refuse = lambda action, form: (
            "InsufficientInstanceCapacity"
            if action == "RunInstances" and form.get("InstanceType") == TRAIN.node.machine and "DryRun" not in form
            else None
        )
        done = aws.run(script, "up", *options)
        assert done.returncode == 0, done.stderr
        found = alive(aws, region)
        assert [one["InstanceType"] for one in found] == ["p5en.48xlarge"] * TRAIN.machines
        assert len({tag["Value"] for one in found for tag in one["Tags"] if tag["Key"] == "chipwise-head"}) == 1
        assert aws.run(script, "down").returncode == 0
        assert (alive(aws, region), own_groups(aws, region), aws.placement_groups) == ([], [], set())


def role(aws: Aws, name: str = "worker-role") -> str:
    iam = aws.client("iam", "us-east-1")
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []}))
    return str(made["Role"]["Arn"])


ECR = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/program:1"


class TestSageMaker:
    def test_a_training_job_has_spot_checkpoints_and_an_end(self, aws: Aws, tmp_path: Path) -> None:
        script, region = written(tmp_path, "sagemaker", TRAIN) / "sagemaker_job.py", TRAIN.node.region
        options = ["--role", role(aws), "--image", ECR, "--bucket", "s3://bucket/run"]
        shown = aws.run(script, *options)
        assert (shown.returncode, "Nothing was started" in shown.stdout) == (0, True), shown.stderr
        client = aws.client("sagemaker", region)
        assert client.list_training_jobs()["TrainingJobSummaries"] == []
        done = aws.run(script, *options, "--up")
        assert done.returncode == 0, done.stderr
        (one,) = client.list_training_jobs()["TrainingJobSummaries"]
        job = client.describe_training_job(TrainingJobName=one["TrainingJobName"])
        assert job["EnableManagedSpotTraining"]
        assert job["StoppingCondition"]["MaxWaitTimeInSeconds"] >= job["StoppingCondition"]["MaxRuntimeInSeconds"]
        assert job["CheckpointConfig"] == {"S3Uri": "s3://bucket/run/checkpoints", "LocalPath": "/checkpoints"}
        assert job["ResourceConfig"]["InstanceType"] == f"ml.{TRAIN.node.machine}"
        assert job["ResourceConfig"]["InstanceCount"] == TRAIN.machines
        tags = {tag["Key"]: tag["Value"] for tag in client.list_tags(ResourceArn=job["TrainingJobArn"])["Tags"]}
        assert tags["chipwise-deployment"] == TRAIN.name
        assert aws.run(script, "--down").returncode == 0

    @pytest.mark.parametrize("mode", ["real-time", "asynchronous", "serverless"])
    def test_an_endpoint_comes_up_scales_and_goes(self, aws: Aws, tmp_path: Path, mode: str) -> None:
        region = SERVE.node.region
        for file in endpoint(SERVE, mode, ""):
            (tmp_path / file.path).write_text(file.text)
        script = tmp_path / "sagemaker_endpoint.py"
        changed(script, MACHINE=OLD, MEMORY_MB=2048)
        done = aws.run(script, "--role", role(aws), "--image", ECR, "--bucket", "s3://bucket/run", "--up")
        assert done.returncode == 0, done.stderr
        client, scaling = aws.client("sagemaker", region), aws.client("application-autoscaling", region)
        config = client.describe_endpoint_config(EndpointConfigName=SERVE.name)
        assert ("ServerlessConfig" in config["ProductionVariants"][0]) == (mode == "serverless")
        assert ("AsyncInferenceConfig" in config) == (mode == "asynchronous")
        targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
        assert [one["MaxCapacity"] for one in targets] == ([] if mode == "serverless" else [12])
        alarms = aws.client("cloudwatch", region)
        woken = [one["MetricName"] for one in alarms.describe_alarms(AlarmNamePrefix="chipwise-")["MetricAlarms"]]
        assert woken == (["HasBacklogWithoutCapacity"] if mode == "asynchronous" else [])
        assert aws.run(script, "--down").returncode == 0
        assert alarms.describe_alarms(AlarmNamePrefix="chipwise-")["MetricAlarms"] == []
        assert client.list_endpoints()["Endpoints"] == []
        assert client.list_models()["Models"] == []
        assert scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"] == []

    def test_an_endpoint_that_does_not_come_up_is_removed(self, aws: Aws, tmp_path: Path) -> None:
        aws.refuse = lambda action, form: "ResourceLimitExceeded" if action == "CreateEndpoint" else None
        script = written(tmp_path, "sagemaker", SERVE) / "sagemaker_endpoint.py"
        changed(script, MACHINE=OLD)
        done = aws.run(script, "--role", role(aws), "--image", ECR, "--up")
        assert (done.returncode, "ResourceLimitExceeded" in done.stderr) == (2, True), done.stderr
        client = aws.client("sagemaker", SERVE.node.region)
        assert client.list_models()["Models"] == []
        assert client.list_endpoint_configs()["EndpointConfigs"] == []


class TestBatch:
    def ready(self, aws: Aws, region: str) -> list[str]:
        name, iam = profile(aws, region), aws.client("iam", region)
        service = role(aws)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName="worker-role")
        arn = iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Arn"]
        return ["--image", ECR, "--instance-profile", arn, "--loses-work", "--service-role", service]

    def test_an_array_job_runs_and_all_of_it_goes(self, aws: Aws, tmp_path: Path) -> None:
        render = deployment("render", ON_AWS, "chip_count={min: 3}")
        script, region = written(tmp_path, "batch", render) / "batch_job.py", render.node.region
        options = self.ready(aws, region)
        assert "Nothing was created" in aws.run(script, *options).stdout
        done = aws.run(script, *options, "--up")
        assert done.returncode == 0, done.stderr
        client = aws.client("batch", region)
        (place,) = client.describe_compute_environments()["computeEnvironments"]
        assert place["computeResources"]["type"] == "SPOT"
        assert place["computeResources"]["instanceTypes"][0] == render.node.machine
        assert place["tags"]["chipwise-deployment"] == render.name
        (made,) = client.describe_job_definitions(status="ACTIVE")["jobDefinitions"]
        needs = {one["type"]: one["value"] for one in made["containerProperties"]["resourceRequirements"]}
        assert needs["GPU"] == "1"
        form = next(form for action, form in aws.asked if "arrayProperties" in form)
        assert form["arrayProperties"] == str({"size": pods(render)})
        gone = aws.run(script, "--down")
        assert gone.returncode == 0, gone.stderr
        assert client.describe_job_queues()["jobQueues"] == []
        assert client.describe_compute_environments()["computeEnvironments"] == []
        assert own_groups(aws, region) == []

    def test_a_job_over_several_machines_is_a_multinode_job_with_efa(self, aws: Aws, tmp_path: Path) -> None:
        steady = replace(TRAIN, purchase="on-demand")
        script, region = written(tmp_path, "batch", steady) / "batch_job.py", steady.node.region
        done = aws.run(script, *self.ready(aws, region), "--subnet", private_subnet(aws, region), "--up")
        assert done.returncode == 0, done.stderr
        client = aws.client("batch", region)
        form = next(form for action, form in aws.asked if "nodeProperties" in form)
        assert f"'numNodes': {steady.machines}" in form["nodeProperties"]
        template = aws.client("ec2", region).describe_launch_template_versions(LaunchTemplateName=f"chipwise-{steady.name}")
        cards = template["LaunchTemplateVersions"][0]["LaunchTemplateData"]["NetworkInterfaces"]
        assert [one["InterfaceType"] for one in cards] == ["interface"] + ["efa-only"] * steady.node.interfaces
        assert aws.placement_groups == {f"chipwise-{steady.name}"}
        assert aws.run(script, "--down").returncode == 0
        assert client.describe_job_queues()["jobQueues"] == []
        assert aws.placement_groups == set()

    def test_what_fails_half_way_is_removed(self, aws: Aws, tmp_path: Path) -> None:
        render = deployment("render", ON_AWS, "chip_count={min: 3}")
        script, region = written(tmp_path, "batch", render) / "batch_job.py", render.node.region
        options = self.ready(aws, region)
        aws.refuse = lambda action, form: "ClientException" if "jobQueueName" in form else None
        done = aws.run(script, *options, "--up")
        assert done.returncode == 2, done.stdout
        assert aws.client("batch", region).describe_compute_environments()["computeEnvironments"] == []
        assert own_groups(aws, region) == []


class TestEcs:
    def group(self, aws: Aws, region: str) -> str:
        client, scaling = aws.client("ec2", region), aws.client("autoscaling", region)
        client.create_launch_template(
            LaunchTemplateName="machines", LaunchTemplateData={"ImageId": AMI, "InstanceType": "g6e.xlarge"}
        )
        scaling.create_auto_scaling_group(
            AutoScalingGroupName="g",
            MinSize=0,
            MaxSize=1,
            DesiredCapacity=0,
            AvailabilityZones=[f"{region}a"],
            LaunchTemplate={"LaunchTemplateName": "machines", "Version": "$Latest"},
        )
        return str(scaling.describe_auto_scaling_groups()["AutoScalingGroups"][0]["AutoScalingGroupARN"])

    def test_a_service_with_gpus_comes_up_and_goes(self, aws: Aws, tmp_path: Path) -> None:
        script, region = written(tmp_path, "ecs", SERVE) / "ecs_deploy.py", SERVE.node.region
        assert "Nothing was created" in aws.run(script).stdout
        done = aws.run(script, "--up", "--auto-scaling-group", self.group(aws, region))
        assert done.returncode == 0, done.stderr
        client = aws.client("ecs", region)
        (service,) = client.describe_services(cluster=SERVE.name, services=[SERVE.name])["services"]
        assert service["desiredCount"] == SERVE.machines
        task = client.describe_task_definition(taskDefinition=SERVE.name)["taskDefinition"]
        assert task["containerDefinitions"][0]["resourceRequirements"] == [{"type": "GPU", "value": "1"}]
        (logs,) = aws.client("logs", region).describe_log_groups(logGroupNamePrefix="/chipwise/")["logGroups"]
        assert (logs["logGroupName"], logs["retentionInDays"]) == (f"/chipwise/{SERVE.name}", 30)
        scaling = aws.client("autoscaling", region)
        scaling.update_auto_scaling_group(AutoScalingGroupName="g", MinSize=1, MaxSize=1, NewInstancesProtectedFromScaleIn=True)
        gone = aws.run(script, "--down")
        assert gone.returncode == 0, gone.stderr
        (group,) = scaling.describe_auto_scaling_groups()["AutoScalingGroups"]
        assert (group["DesiredCapacity"], group["Instances"]) == (0, [])
        assert client.describe_capacity_providers(capacityProviders=[f"cw-{SERVE.name}"])["capacityProviders"] == []
        assert [one for one in client.describe_clusters(clusters=[SERVE.name])["clusters"] if one["status"] == "ACTIVE"] == []


class TestLambda:
    def test_objects_that_arrive_reach_the_function_through_a_queue(self, aws: Aws, tmp_path: Path) -> None:
        photos = small(deployment("batch", ON_AWS), "s3://uploads/photos/")
        script, region = written(tmp_path, "serverless", photos) / "lambda_deploy.py", photos.node.region
        s3, sqs = aws.client("s3", region), aws.client("sqs", region)
        s3.create_bucket(Bucket="uploads", CreateBucketConfiguration={"LocationConstraint": region})
        done = aws.run(script, "--up", "--image", ECR, "--role", role(aws))
        assert done.returncode == 0, done.stderr
        functions = aws.client("lambda", region)
        assert functions.get_function(FunctionName=photos.name)["Configuration"]["MemorySize"] <= 10240
        (mapping,) = functions.list_event_source_mappings(FunctionName=photos.name)["EventSourceMappings"]
        assert mapping["EventSourceArn"].endswith(f":{photos.name}")
        (told,) = s3.get_bucket_notification_configuration(Bucket="uploads")["QueueConfigurations"]
        assert told["Filter"]["Key"]["FilterRules"] == [{"Name": "prefix", "Value": "photos/"}]
        gone = aws.run(script, "--down")
        assert gone.returncode == 0, gone.stderr
        assert functions.list_functions()["Functions"] == []
        assert sqs.list_queues().get("QueueUrls", []) == []
        assert "QueueConfigurations" not in s3.get_bucket_notification_configuration(Bucket="uploads")
