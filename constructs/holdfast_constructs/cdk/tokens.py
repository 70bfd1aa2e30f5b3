"""Values that only the deployment knows, as the CDK writes them: told from plain ones without asking it each time."""

import json
import re

from aws_cdk import Stack
from constructs import IConstruct

_TOKEN = re.compile(r"\{Token\[|-1\.8881545897\d*e\+289")
"""A token in text or in a list, and one as a number (aws-cdk-lib 2.275, core/lib/private/encoding)."""


def has_token(value: object) -> bool:
    """Whether there is a token in a value: in text, in a number, or anywhere in a list or mapping of them."""
    return _TOKEN.search(_text(value)) is not None


def json_text(scope: IConstruct, value: object) -> str:
    """A value as JSON. With tokens CloudFormation puts it together, and the CDK leaves out what is None."""
    text = _text(value)
    return Stack.of(scope).to_json_string(value) if _TOKEN.search(text) else text


def _text(value: object) -> str:
    """JSON, with a token for what only the CDK can write."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=lambda _: "{Token[")
