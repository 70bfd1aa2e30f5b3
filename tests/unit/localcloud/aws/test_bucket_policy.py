"""moto gets policies without the statements whose conditions it would ignore; callers get what they put."""

import json

from holdfast.localcloud.aws.host import for_caller, for_moto

DENY = {"Effect": "Deny", "Principal": "*", "Action": "s3:*", "Resource": "*", "Condition": {"Bool": {"x": "false"}}}
ALLOW = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}


def test_conditional_denials_are_hidden_from_moto_and_shown_to_callers():
    body = json.dumps({"Version": "2012-10-17", "Statement": [DENY, ALLOW]}, indent=1).encode()
    kept = for_moto(body)

    assert json.loads(kept)["Statement"] == [ALLOW]
    assert for_caller(kept) == body


def test_other_policies_and_nonsense_pass_unchanged():
    for body in (json.dumps({"Statement": [ALLOW]}).encode(), b"nonsense", b"[]"):
        assert for_moto(body) == body
        assert for_caller(body) == body
