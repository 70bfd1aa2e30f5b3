"""
Network of Lustre servers.

Source: FSx for Lustre user guide, limit-access-security-groups (TCP 988 and 1018 to 1023, in and out, among the group);
words: aws/aws-parallelcluster issue 6181. FSx probes port 988 at creation.
"""

from collections.abc import Iterable, Mapping
from ipaddress import ip_network
from typing import Any

from holdfast.localcloud.aws.common import ServiceError

LNET = 988
CLOSED = (
    "The file system cannot be created because the default security group in the subnet provided or the provided "
    "security groups do not permit Lustre LNET network traffic on port 988"
)


def check_lnet(groups: Iterable[Mapping[str, Any]], *, subnet: str) -> None:
    """Reject security groups, as EC2 describes them, that block Lustre traffic among their members."""
    listed = list(groups)
    names = {str(group["GroupId"]) for group in listed}
    for side in ("IpPermissions", "IpPermissionsEgress"):
        if not any(_lets(rule, names, subnet) for group in listed for rule in group[side]):
            raise ServiceError("InvalidNetworkSettings", CLOSED)


def _lets(rule: Mapping[str, Any], names: set[str], subnet: str) -> bool:
    every = rule["IpProtocol"] == "-1"
    if not every and not (rule["IpProtocol"] in ("tcp", "6") and rule["FromPort"] <= LNET <= rule["ToPort"]):
        return False
    among = any(pair.get("GroupId") in names for pair in rule.get("UserIdGroupPairs", ()))
    place = ip_network(subnet)
    return among or any(place.subnet_of(_v4(one["CidrIp"])) for one in rule.get("IpRanges", ()))


def _v4(block: str) -> Any:
    return ip_network(block, strict=False)
