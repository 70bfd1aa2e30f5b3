"""Sessions of roles: their tags, and the policy that limits them."""

import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from eks_lab import ACCOUNT, EksLab


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EksLab]:
    made = EksLab(tmp_path_factory.mktemp("sessions"))
    yield made
    made.stop()


def by(lab: EksLab, role: str, service: str, **how: Any) -> Any:
    return lab.client(service, **lab.session(role, **how).boto)


def test_a_policy_can_ask_for_a_sessions_tags(lab: EksLab) -> None:
    role = lab.role("tagged")
    allowed = "arn:aws:ssm:*:*:parameter/${aws:PrincipalTag/team}/*"
    statement = {"Effect": "Allow", "Action": "ssm:PutParameter", "Resource": allowed}
    rights = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    lab.client("iam").put_role_policy(RoleName="tagged", PolicyName="a", PolicyDocument=rights)
    ssm = by(lab, role, "ssm", Tags=[{"Key": "team", "Value": "red"}])

    assert ssm.put_parameter(Name="/red/a", Value="x", Type="String")["Version"] == 1
    with pytest.raises(ClientError, match="AccessDenied"):
        ssm.put_parameter(Name="/blue/a", Value="x", Type="String")


@pytest.mark.parametrize(
    "tags",
    [
        [{"Key": f"k{number}", "Value": "v"} for number in range(51)],
        [{"Key": "k" * 129, "Value": "v"}],
        [{"Key": "k", "Value": "v" * 257}],
    ],
)
def test_rejects_more_tags_than_sts_takes(lab: EksLab, tags: list[dict[str, str]]) -> None:
    with pytest.raises(ClientError, match="ValidationError"):
        lab.client("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/eks", RoleSessionName="mary", Tags=tags)


def test_a_session_hands_its_tags_on(lab: EksLab) -> None:
    root = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    statement = {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}
    condition = {"StringEquals": {"aws:PrincipalTag/team": "red"}}
    trust = {"Version": "2012-10-17", "Statement": [{**statement, "Condition": condition}]}
    second = lab.role("second", trust=trust)
    first = lab.role("first", actions=("sts:AssumeRole",))

    made = by(lab, first, "sts", Tags=[{"Key": "team", "Value": "red"}]).assume_role(
        RoleArn=second, RoleSessionName="mary"
    )
    assert made["AssumedRoleUser"]["Arn"].endswith(":assumed-role/second/mary")
    with pytest.raises(ClientError, match="AccessDenied"):
        by(lab, first, "sts").assume_role(RoleArn=second, RoleSessionName="mary")


@pytest.mark.parametrize(
    ("policy", "lists"),
    [
        ('{"Statement": [{"Effect": "Allow", "Action": "s3:List*", "Resource": "*"}]}', True),
        ('{"Statement": [{"Effect": "Allow", "Action": "ssm:*", "Resource": "*"}]}', False),
        ('{"Statement": [{"Effect": "Deny", "Action": "s3:*", "Resource": "*"}]}', False),
        ("not JSON", False),
        ("[]", False),
    ],
)
def test_a_sessions_policy_takes_away_and_gives_nothing(lab: EksLab, policy: str, lists: bool) -> None:
    name = f"limited-{zlib.crc32(policy.encode())}"
    s3 = by(lab, lab.role(name, actions=("s3:*",)), "s3", Policy=policy)
    if lists:
        assert s3.list_buckets()["Buckets"] == []
    else:
        with pytest.raises(ClientError, match="AccessDenied"):
            s3.list_buckets()
    with pytest.raises(ClientError, match="AccessDenied"):
        by(lab, lab.role(f"{name}-2", actions=("s3:*",)), "ssm", Policy=policy).put_parameter(
            Name="/a", Value="x", Type="String"
        )


def test_the_owner_asks_as_a_service_only_for_what_trusts_it(lab: EksLab) -> None:
    sts = lab.client("sts")
    sts.meta.events.register(
        "before-call", lambda params, **_: params["headers"].update({"X-Holdfast-Service": "pods.eks.amazonaws.com"})
    )
    with pytest.raises(ClientError, match=r"pods\.eks\.amazonaws\.com is not authorized to perform: sts:AssumeRole"):
        sts.assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/eks", RoleSessionName="mary")
