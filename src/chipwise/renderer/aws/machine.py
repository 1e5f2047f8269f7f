"""What every EC2 machine of ours is, whoever starts it: `launch.py`, a launch template of Batch, or the engine `ec2`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# Answers that mean "not here, not now": another zone, machine or hour may do better.
NO_CAPACITY = frozenset(
    {
        "InsufficientInstanceCapacity",
        "InsufficientHostCapacity",
        "InsufficientCapacityOnHost",
        "InsufficientFreeAddressesInSubnet",
        "InstanceLimitExceeded",
        "MaxSpotInstanceCountExceeded",
        "SpotMaxPriceTooLow",
        "Unsupported",
        "UnfulfillableCapacity",
        "VcpuLimitExceeded",
    }
)


def disk(gib: int) -> dict[str, object]:
    """The disk of the system, which ends with its machine."""
    return {"VolumeType": "gp3", "VolumeSize": gib, "Throughput": 500, "Encrypted": True, "DeleteOnTermination": True}


def shared_request(**metadata: str) -> dict[str, object]:
    """IMDSv2 only, one hop: containers that share the machine's network have its rights, others have none. A shutdown is the
    end: nobody pays for a machine that sleeps."""
    return {
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1, "HttpEndpoint": "enabled", **metadata},
        "InstanceInitiatedShutdownBehavior": "terminate",
    }


def tag_specifications(tags: Sequence[Mapping[str, str]]) -> list[dict[str, object]]:
    return [{"ResourceType": kind, "Tags": list(tags)} for kind in ("instance", "volume")]
