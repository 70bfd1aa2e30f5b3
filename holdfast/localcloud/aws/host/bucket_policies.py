"""Bucket policies between callers and moto.

moto enforces bucket policies but ignores their conditions, so a conditional Deny (the CDK's "enforce SSL":
deny everything when aws:SecureTransport is false) would deny everything. The embedded AWS listens on loopback
only and counts its transport as secure, so such statements must not bite. moto therefore gets the policy without
its conditional Deny statements, and the original as an extra member; reading a policy gives the original back.
"""

import json
from typing import Any

ORIGINAL = "HoldfastOriginal"


def for_moto(body: bytes) -> bytes:
    """The policy that moto is to enforce; anything that is no policy passes unchanged, for moto to judge."""
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
    """The policy as it was put."""
    try:
        original = json.loads(body)[ORIGINAL]
    except (ValueError, KeyError, TypeError):
        return body
    return str(original).encode()


def _conditional_deny(statement: Any) -> bool:
    return isinstance(statement, dict) and statement.get("Effect") == "Deny" and bool(statement.get("Condition"))
