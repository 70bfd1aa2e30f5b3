"""CDK tokens: values that only the deployment knows."""

import json
import re

from aws_cdk import Stack
from constructs import IConstruct

_TOKEN = re.compile(r"\{Token\[|-1\.8881545897\d*e\+289")
"""A token in text or in a list, and one as a number (aws-cdk-lib 2.275, core/lib/private/encoding)."""


def has_token(value: object) -> bool:
    """True if a value contains a token: text, number, or anywhere in a list or mapping."""
    return _TOKEN.search(_text(value)) is not None


def json_text(scope: IConstruct, value: object) -> str:
    """Value as JSON. Tokens are joined by CloudFormation, without keys that are None."""
    text = _text(value)
    return Stack.of(scope).to_json_string(value) if _TOKEN.search(text) else text


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=lambda _: "{Token[")
