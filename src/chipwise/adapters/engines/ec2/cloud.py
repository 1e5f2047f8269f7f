"""What the engine asks of AWS, each answer in plain values, each error one of ours. One region, one session.

Lists are read to their end, in pages; a list that was cut off in the middle is an error and never an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chipwise.errors import MissingExtra, NotFound

from .config import Config
from .errors import translated

JOB, ATTEMPT, PLACE = "chipwise:job", "chipwise:attempt", "chipwise:place"
GPU_IMAGE = "/aws/service/deeplearning/ami/{}/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"
NEURON_IMAGE = "/aws/service/neuron/dlami/base/amazon-linux-2023/latest/image_id"
CPU_IMAGE = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-{}"
AT_ONCE = 200  # machines that are ended by one request
_ABSENT = ("InvalidInstanceID.NotFound",)

InstanceData = Mapping[str, Any]
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Image:
    id: str
    root: str  # name of its root disk
    gib: int  # that it needs at least


@dataclass(slots=True)
class Cloud:
    config: Config
    _session: Any = None
    _clients: dict[str, Any] = field(default_factory=dict)
    _images: dict[str, Image] = field(default_factory=dict)
    _subnets: list[tuple[str, str]] | None = None

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._session = self._session or _session(self.config)
            self._clients[service] = _client(self._session, self.config, service)
        return self._clients[service]

    # Machines

    def machines(self, key: Key | None = None) -> list[InstanceData]:
        """All of the place, or those of one attempt; also those that ended within the last hour or so."""
        filters = [{"Name": f"tag:{PLACE}", "Values": [self.config.place]}]
        if key is not None:
            filters += [{"Name": f"tag:{JOB}", "Values": [key[0]]}, {"Name": f"tag:{ATTEMPT}", "Values": [str(key[1])]}]
        with translated("ec2:DescribeInstances"):
            pages = (
                self.client("ec2")
                .get_paginator("describe_instances")
                .paginate(Filters=filters, PaginationConfig={"PageSize": 1000})
            )
            return [one for page in pages for group in page["Reservations"] for one in group["Instances"]]

    def terminate(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), AT_ONCE):
            with translated("ec2:TerminateInstances", _ABSENT):
                self.client("ec2").terminate_instances(InstanceIds=list(ids[start : start + AT_ONCE]))

    # What machines are made from

    def template(self, name: str, token: str, data: InstanceData, tags: Sequence[InstanceData]) -> None:
        """Made once: a second request, after an answer that never came, finds it there."""
        with translated("ec2:CreateLaunchTemplate", ("InvalidLaunchTemplateName.AlreadyExistsException",)):
            self.client("ec2").create_launch_template(
                LaunchTemplateName=name,
                ClientToken=token,
                LaunchTemplateData=data,
                TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
            )

    def templates(self) -> dict[str, Key | None]:
        """Names of those of the place, with the attempt that each was made for."""
        with translated("ec2:DescribeLaunchTemplates"):
            pages = (
                self.client("ec2")
                .get_paginator("describe_launch_templates")
                .paginate(Filters=[{"Name": f"tag:{PLACE}", "Values": [self.config.place]}])
            )
            return {one["LaunchTemplateName"]: key_of(one) for page in pages for one in page["LaunchTemplates"]}

    def remove_templates(self, names: Sequence[str]) -> None:
        filters = [{"Name": "launch-template-name", "Values": list(names)}]
        with translated("ec2:DescribeLaunchTemplates"):
            templates = self.client("ec2").describe_launch_templates(Filters=filters)["LaunchTemplates"]
        for template in templates:
            with translated("ec2:DeleteLaunchTemplate", ("InvalidLaunchTemplateId.NotFound",)):
                self.client("ec2").delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])

    def fleet(self, request: InstanceData) -> InstanceData:
        with translated("ec2:CreateFleet"):
            answer: InstanceData = self.client("ec2").create_fleet(**request)
        return answer

    def image(self, parameter: str) -> Image:
        """What the engine's settings name, whatever its architecture; else what this SSM parameter does."""
        parameter = self.config.image_parameter or parameter
        wanted = self.config.image or parameter
        if wanted in self._images:
            return self._images[wanted]
        name = self.config.image
        if not name:
            with translated("ssm:GetParameter"):
                name = self.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
        images: list[InstanceData] = []
        with translated("ec2:DescribeImages"):
            images = self.client("ec2").describe_images(ImageIds=[name])["Images"]
        if not images:
            raise NotFound(f"There is no machine image {name} in {self.config.region}.", remedy="Check the engine's image.")
        sizes = [one["Ebs"].get("VolumeSize", 0) for one in images[0].get("BlockDeviceMappings", []) if "Ebs" in one]
        image = Image(name, images[0].get("RootDeviceName") or "/dev/xvda", max([self.config.root_gib, *sizes]))
        self._images[wanted] = image
        return image

    def subnets(self) -> list[tuple[str, str]]:
        """Each as (zone, id)."""
        if self._subnets is None:
            ids = list(self.config.subnets)
            query: dict[str, Any] = {"SubnetIds": ids} if ids else {"Filters": [{"Name": "default-for-az", "Values": ["true"]}]}
            with translated("ec2:DescribeSubnets"):
                subnets = self.client("ec2").describe_subnets(**query)["Subnets"]
                self._subnets = [(one["AvailabilityZone"], one["SubnetId"]) for one in subnets]
        return self._subnets or []


def key_of(resource: InstanceData) -> Key | None:
    tags = {one["Key"]: one["Value"] for one in resource.get("Tags", ())}
    number = tags.get(ATTEMPT, "")
    return (tags[JOB], int(number)) if tags.get(JOB) and number.isdecimal() else None


def _session(config: Config) -> Any:
    try:
        import boto3
    except ImportError as error:
        raise MissingExtra("The ec2 engine", "aws") from error
    with translated("a session"):
        session: Any = boto3.Session(profile_name=config.profile, region_name=config.region)
    return session


def _client(session: Any, config: Config, service: str) -> Any:
    from botocore.config import Config as Settings

    settings = Settings(
        retries={"mode": "standard", "total_max_attempts": config.tries},
        connect_timeout=config.timeout_s,
        read_timeout=config.timeout_s,
        user_agent_extra="chipwise",
    )
    with translated(f"a client for {service}"):
        client: Any = session.client(service, endpoint_url=config.endpoint_url, config=settings)
    return client
