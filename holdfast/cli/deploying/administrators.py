"""
The organisation's roles that an environment names as administrators of Kubernetes, in an account of the embedded AWS.

On AWS they are there before anything is deployed. A fresh embedded account has none, so those that are missing are
made; one that is there is left as it is.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role(/(?:[\x21-\x7e]+/)?)([\w+=,.@-]{1,64})", re.ASCII)
DESCRIPTION = "Stands for a role of the organisation, which administers Kubernetes"


def make_missing_roles(iam: Any, arns: Iterable[str], *, account: str) -> list[str]:
    """
    Make the roles of this account that are not there, which its own principals may then assume.

    Args:
        iam: A client of IAM.
        account: Twelve digits; roles of another account are not made.

    Returns:
        Names of those that were made.
    """
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
    """Whom such a role trusts: whoever in the account has the right to assume it."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "sts:AssumeRole"}
        ],
    }
