"""
Principals, user names and groups of access entries, and EKS's defaults. Pure.

Source: EKS user guide, creating-access-entries (read 2026-11-23; table of user names from
awsdocs/amazon-eks-user-guide, 2024-12-18), and the CreateAccessEntry API reference. Messages:
terraform-aws-modules/terraform-aws-eks 2915 and 2969, aws-ia/terraform-aws-eks-blueprints 1920. Assumed: user name of
HYPERPOD_LINUX, groups of types other than EC2_LINUX.
"""

import re

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.eks import errors

TYPES = ("STANDARD", "EC2", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "HYBRID_LINUX", "HYPERPOD_LINUX")
FOR_NODES = frozenset(TYPES) - {"STANDARD", "EC2"}
"""Entries of these types take neither groups nor policies."""
RESERVED = ("system:", "eks:", "aws:", "amazon:", "iam:")
BY_INSTANCE = ("EC2", "EC2_LINUX", "EC2_WINDOWS")
SESSION = re.compile(r"\{\{SessionName(?:Raw)?\}\}")
PRINCIPAL = re.compile(r"arn:aws[a-z-]*:iam::(?P<account>\d{12}):(?P<kind>root|user/.+|role/.+)")


def check_principal(arn: str, *, kind: str, account: str) -> None:
    """Reject invalid principals. Raise ServiceError (InvalidParameterException)."""
    found = PRINCIPAL.fullmatch(arn)
    if found is None or "/aws-service-role/" in arn:
        raise invalid_principal()
    if kind != "STANDARD" and not (found["kind"].startswith("role/") and found["account"] == account):
        raise errors.invalid_parameter(f"An access entry of type {kind} is for a role of the cluster's account")


def invalid_principal() -> ServiceError:
    return errors.invalid_parameter("The specified principalArn is invalid: invalid principal.")


def check_username(username: str) -> None:
    """Raise ServiceError (InvalidParameterException) for an invalid name."""
    for prefix in RESERVED:
        if username.startswith(prefix):
            raise errors.invalid_parameter(f"The username must not begin with {prefix}")
    session = SESSION.search(username)
    if session is not None and ":" not in username[: session.start()]:
        raise errors.invalid_parameter(f"The username must contain a colon before {session[0]}")


def check_groups(groups: list[str]) -> None:
    """Raise ServiceError (InvalidParameterException) for an invalid group."""
    for group in groups:
        for prefix in RESERVED:
            if group.startswith(prefix):
                message = f"The kubernetes group name {group} is invalid, it cannot start with {prefix}"
                raise errors.invalid_parameter(message)


def default_username(arn: str, *, kind: str) -> str:
    """Return EKS's user name for an entry without one; names in braces are filled in at log-in."""
    if kind in BY_INSTANCE:
        return "system:node:{{EC2PrivateDNSName}}"
    if kind in FOR_NODES:
        return "system:node:{{SessionName}}"
    head, _, name = arn.partition(":role/")
    if not name:
        return arn
    partition, account = head.split(":")[1], head.split(":")[4]
    return f"arn:{partition}:sts::{account}:assumed-role/{name.rpartition('/')[2]}/{{{{SessionName}}}}"


def groups_of(kind: str, given: list[str]) -> list[str]:
    """Return the groups of an entry; those of nodes are EKS's."""
    if kind not in FOR_NODES:
        return list(given)
    return ["system:nodes", *(["eks:kube-proxy-windows"] if kind == "EC2_WINDOWS" else [])]
