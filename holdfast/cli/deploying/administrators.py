"""
Administrator roles of Kubernetes in an account of the embedded AWS.

On AWS they exist before the deployment. In a fresh embedded account, missing ones are created; existing ones stay.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role(/(?:[\x21-\x7e]+/)?)([\w+=,.@-]{1,64})", re.ASCII)
DESCRIPTION = "Stands for a role of the organisation, which administers Kubernetes"


def make_missing_roles(iam: Any, arns: Iterable[str], *, account: str) -> list[str]:
    """Create the missing roles of this account (twelve digits), and return their names."""
    made = []
    for arn in arns:
        found = ROLE.fullmatch(arn)
        if found is None or found[1] != account:
            continue
        try:
            iam.create_role(
                RoleName=found[3],
                Path=found[2],
                Description=DESCRIPTION,
                AssumeRolePolicyDocument=json.dumps(trust(account)),
            )
        except iam.exceptions.EntityAlreadyExistsException:
            continue
        made.append(found[3])
    return made


def trust(account: str) -> dict[str, Any]:
    """Trust policy: the account, whose principals need the right to assume the role."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "sts:AssumeRole"}
        ],
    }
