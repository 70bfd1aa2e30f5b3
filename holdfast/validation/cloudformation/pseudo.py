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


def example_of(templates: Sequence[Template]) -> tuple[str | None, str]:
    """Account and partition that templates can be read in: the account that they name; None where they name several."""
    sections = [each.section(name) for each in templates for name in ("Parameters", "Resources")]
    named = {*_ACCOUNT.findall(json.dumps(sections, default=repr))}
    account = EXAMPLE_ACCOUNT if not named else named.pop() if len(named) == 1 else None
    return account, "aws"
