"""
Bucket policies between callers and moto.

moto enforces bucket policies but ignores their conditions, so the CDK's conditional Deny ("enforce SSL") would deny
everything. Loopback counts as secure transport. So moto gets the policy without conditional Deny statements, and the
original as an extra member, which readers get back.
"""

import json
from typing import Any

ORIGINAL = "HoldfastOriginal"


def for_moto(body: bytes) -> bytes:
    """Return the policy for moto; text that is no policy passes unchanged."""
    try:
        policy = json.loads(body)
        statements = policy["Statement"]
    except (ValueError, KeyError, TypeError):
        return body
    listed = statements if isinstance(statements, list) else [statements]
    enforced = [statement for statement in listed if not _conditional_deny(statement)]
    if len(enforced) == len(listed):
        return body
    return json.dumps({**policy, "Statement": enforced, ORIGINAL: body.decode()}).encode()


def for_caller(body: bytes) -> bytes:
    try:
        original = json.loads(body)[ORIGINAL]
    except (ValueError, KeyError, TypeError):
        return body
    return str(original).encode()


def _conditional_deny(statement: Any) -> bool:
    return isinstance(statement, dict) and statement.get("Effect") == "Deny" and bool(statement.get("Condition"))
