"""AWS's errors as ours, in one table; and what of them means that there is no machine to be had now.

A fleet tells errors in an answer that is otherwise fine, by the same codes: `of_code` is for both ways.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from chipwise.adapters.wire.aws_codes import BUSY, CREDENTIALS, NO_RIGHT, REFUSED_KEYS
from chipwise.errors import ChipwiseError, MissingExtra, NotAllowed, NotFound, OutsideFailed, TryLater
from chipwise.renderer.aws.machine import NO_CAPACITY

POLICY = "The rights that the engine needs are in docs/running/ec2-policy.json."
KEYS = "Check the credentials, for example with: aws sts get-caller-identity"
LATER = "It is tried again."


class NoCapacity(TryLater):
    """EC2 answered, and has no machine now. The same request would get the same answer: another attempt is needed."""


class AskedOtherwise(TryLater):
    """A fleet was asked for before by this token, with other settings. What that gave may be there: nothing else may be asked
    for in its attempt."""


# code: kind, what is said before AWS's words, remedy.
TABLE: dict[str, tuple[type[OutsideFailed], str, str]] = {
    **dict.fromkeys(CREDENTIALS, (NotAllowed, "No AWS credentials were found", KEYS)),
    **dict.fromkeys(REFUSED_KEYS, (NotAllowed, "AWS refuses the credentials", KEYS)),
    **dict.fromkeys(NO_RIGHT, (NotAllowed, "AWS does not allow {action}", POLICY)),
    **dict.fromkeys((*BUSY, "ResponseParserError"), (TryLater, "AWS cannot answer {action} now", LATER)),
    "ProfileNotFound": (NotAllowed, "The AWS profile does not exist", "Check ~/.aws/config and AWS_PROFILE."),
    "NoRegionError": (NotAllowed, "No region is set", "Set the engine's region, such as eu-west-1."),
    "InvalidAMIID.NotFound": (NotFound, "The machine image does not exist", "Check the engine's image in this region."),
    "InvalidAMIID.Malformed": (NotFound, "The machine image is not valid", "An image is written like ami-0123456789abcdef0."),
    "InvalidAMIID.Unavailable": (NotFound, "The machine image cannot be used", "Check the engine's image in this region."),
    "ParameterNotFound": (NotFound, "The SSM parameter of the machine image does not exist", "Set the engine's image."),
    "InvalidSubnetID.NotFound": (NotFound, "A subnet does not exist", "Check the engine's subnets in this region."),
    "InvalidSubnetID.Malformed": (NotFound, "A subnet is not valid", "A subnet is written like subnet-0123456789abcdef0."),
    "InvalidGroup.NotFound": (NotFound, "A security group does not exist", "Check the engine's security groups."),
    "InvalidGroupId.Malformed": (NotFound, "A security group is not valid", "A group is written like sg-0123456789abcdef0."),
    "InvalidIamInstanceProfile.NotFound": (NotFound, "The instance profile does not exist", POLICY),
    "InvalidInstanceType": (NotFound, "A machine type does not exist", "Check the job's places."),
    "InvalidParameterValue": (NotFound, "AWS does not take a setting", "Check image, profile, subnets and machine types."),
    "InvalidParameterCombination": (NotFound, "AWS does not take these settings together", "Check image and machine types."),
    "NoSuchBucket": (NotFound, "The bucket does not exist", "Create it, or set the engine's keep."),
    "QueueDoesNotExist": (NotFound, "The queue of interruption events does not exist", "Check the engine's queue_url."),
}
TABLE["AWS.SimpleQueueService.NonExistentQueue"] = TABLE["QueueDoesNotExist"]

# Names of quotas by the first letters of a machine type; the standard one has many.
_QUOTAS = (
    (("g", "vt"), "G and VT"),
    (("p5", "p6"), "P5 and P6"),
    (("p",), "P"),
    (("inf",), "Inf"),
    (("trn",), "Trn"),
    (("dl",), "DL"),
    (("f",), "F"),
    (("hpc",), "HPC"),
    (("x",), "X"),
    (("u-",), "High Memory"),
)
_STANDARD = "Standard (A, C, D, H, I, M, R, T, Z)"
_LIMIT = re.compile(r"limit of (\d+)")


def quota(machine: str, spot: bool) -> str:
    """The name by which Service Quotas lists it."""
    family = next((name for starts, name in _QUOTAS if machine.startswith(starts)), _STANDARD)
    return f"All {family} Spot Instance Requests" if spot else f"Running On-Demand {family} instances"


def of_code(code: str, message: str, action: str, machine: str = "", spot: bool = False) -> OutsideFailed:
    message = " ".join(message.split())[:300].rstrip(".")
    if code in ("VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"):
        match = _LIMIT.search(message)
        kind = NotAllowed if match is not None and int(match[1]) == 0 else NoCapacity
        limit = f" is {int(match[1])} vCPUs" if match is not None else " is used up"
        return kind(
            f"The quota {quota(machine, spot)!r}{limit}, and {machine or 'this machine'} needs more.",
            remedy="Ask for a higher value in Service Quotas, or name other machines.",
        )
    if code == "IdempotentParameterMismatch":
        return AskedOtherwise("The engine's settings changed while the fleet was being made.", remedy=LATER)
    if code in NO_CAPACITY:
        return NoCapacity(f"{code}: {message}", remedy=LATER)
    if code.isdecimal() and code.startswith("5"):
        code = "503"
    kind_of, meaning, remedy = TABLE.get(code, (OutsideFailed, "AWS failed on {action}", ""))
    return kind_of(f"{meaning.format(action=action)}: {message or code}", remedy=remedy or None)


@contextmanager
def translated(action: str, ignoring: Sequence[str] = ()) -> Iterator[None]:
    """`ignoring`: codes that mean that there is nothing to do."""
    try:
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
        from botocore.parsers import ResponseParserError
    except ImportError as error:
        raise MissingExtra("The ec2 engine", "aws") from error
    try:
        yield
    except ClientError as error:
        details = error.response.get("Error", {})
        code, status = str(details.get("Code", "")), int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code in ignoring:
            return
        if code not in TABLE and code not in NO_CAPACITY and (status >= 500 or status == 429):
            code = "503"
        raise of_code(code, str(details.get("Message", "")), action) from error
    except HTTPClientError as error:  # no connection, a time that was over, a connection that was cut
        raise TryLater(f"AWS cannot be reached for {action}: {_short(error)}", remedy=LATER) from error
    except (BotoCoreError, ResponseParserError) as error:
        raise of_code(type(error).__name__, str(error), action) from error
    except ChipwiseError:
        raise
    except RecursionError:  # its client follows redirects without counting them
        raise NotFound(f"The address for {action} redirects in a loop.", remedy="Check the endpoint.") from None
    except ValueError as error:  # an address or a region that cannot be one
        raise NotFound(f"AWS's client refuses its settings: {_short(error)}", remedy="Check region and endpoint.") from error


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
