"""Codes of cfn-lint that are not passed on, each with the reason."""

import re
from collections.abc import Mapping

LEFT_OUT: Mapping[str, str] = {
    "E1002": "HF020 reports the size",
    "E2531": "HF811 and HF815 report a runtime, by the day of the facts",
    "E2533": "HF811 and HF815 report a runtime, by the day of the facts",
    "E3004": "HF023 names the whole circle, and none that conditions exclude",
    "E3043": "HF070 also reports nested outputs, and reads the templates of an assembly",
    "E3059": "HF062 and HF215 also read values of mappings and parameters",
    "E3060": "HF062 also reads values of mappings and parameters",
    "W1020": "`Fn::Sub` without a variable changes nothing",
    "W2531": "HF811 and HF815 report a runtime, by the day of the facts",
    "W3687": "ports beside the protocol -1 change nothing",
    "W3002": "a nested template beside this one is read, as `aws cloudformation package` does",
    "W3005": "`DependsOn` beside a reference changes nothing; the CDK writes it",
    "W3010": "capacity for HyperPod is in one zone, which a template has to name",
}
DESCRIPTION = ("E3001", "Additional properties are not allowed ('Description' was unexpected)")
"""CloudFormation takes a Description of a resource, as the CDK does (aws-cdk, pull request 10522)."""
NAMES = frozenset({"E1010", "E1019", "E1020", "E3005", "E6101"})
"""Names that exist: unknown where a macro may add resources."""
FAILED = frozenset({"E0001", "E0002", "E0003"})
"""A transform, a rule or a setting of cfn-lint failed: not a fact about the template."""
FORMS = frozenset({"E3017", "E3018"})
"""Reported of a value that fits none of several forms, together with what is wrong inside it."""
UNKNOWN = "E3002"
"""Inside such a value, of a property of another form."""
PATTERN = "E3031"
"""Reported with the length or the format of the same value."""
SAME = "E3019"
"""Reported at each of the resources with one identifier."""
PLACEHOLDER = re.compile(
    r"'(vpc-12345|[ps]-(12345|67890)|rtb-(12345|57890|67890)[ps]|ami-1234|dummy[^']*|1\.2\.3\.4/5)'"
)
"""Value of the CDK until its lookups are done (aws-cdk-lib, ``DUMMY_VPC_PROPS`` of aws-ec2)."""
