"""
Pseudo parameters of a template.

Account and partition of a deployment are open without changing the form of a name or an ARN, so an example stands for
them. A region decides more than forms, and stays open unless an example is asked for. Conditions get no examples.
"""

import json
import re
from collections.abc import Sequence

from holdfast.catalog.facts import dns_suffix, partition_of
from holdfast.validation.cloudformation.graph import Template
from holdfast.validation.cloudformation.unresolved import UNRESOLVED

EXAMPLE_ACCOUNT = "987654321098"
EXAMPLE_REGION = "us-east-1"
"""No region has a shorter name."""
_ACCOUNT = re.compile(r"(?<!\d)\d{12}(?!\d)")


def pseudo_parameters(*, account: str | None, region: str | None, partition: str | None) -> dict[str, object]:
    """Values by name."""
    partition = (partition_of(region) or "aws") if region else partition
    return {
        "AWS::Region": region or UNRESOLVED,
        "AWS::AccountId": account or UNRESOLVED,
        "AWS::Partition": partition or UNRESOLVED,
        "AWS::URLSuffix": dns_suffix(partition) if partition else UNRESOLVED,
    }


def example_account(templates: Sequence[Template]) -> str | None:
    """Account that templates can be read in: the one that they name, if any; None where they name several."""
    named = {*_ACCOUNT.findall(json.dumps([each.section("Resources") for each in templates], default=repr))}
    named |= {*_ACCOUNT.findall(json.dumps([each.section("Parameters") for each in templates], default=repr))}
    return EXAMPLE_ACCOUNT if not named else named.pop() if len(named) == 1 else None
