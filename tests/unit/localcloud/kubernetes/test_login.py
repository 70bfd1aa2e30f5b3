"""How kubectl and the commands log in: tokens as the AWS CLI makes them, kubeconfigs, roles of administrators."""

import base64
import datetime
import json
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import botocore.session
from botocore.model import ServiceId
from botocore.signers import RequestSigner

from holdfast.cli.deploying import make_missing_roles
from holdfast.cli.kubernetes import exec_credential, kubeconfig, token
from holdfast.localcloud.home import Keys

NOW = datetime.datetime(2026, 11, 23, 4, 0, 0, tzinfo=datetime.UTC)
KEYS = Keys(access_key_id="AKIDEXAMPLE", secret_access_key="secret/+key", session_token="FQ+/=token")


def test_the_signature_is_botocores(monkeypatch: Any) -> None:
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda remove_tzinfo=True: NOW.replace(tzinfo=None))
    session = botocore.session.get_session()
    session.set_credentials(KEYS.access_key_id, KEYS.secret_access_key, KEYS.session_token)
    client = session.create_client("sts", region_name="us-west-2")
    signer = RequestSigner(ServiceId("STS"), "us-west-2", "sts", "v4", session.get_credentials(), client.meta.events)
    asked = {
        "method": "GET",
        "url": "https://sts.us-west-2.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15",
        "body": {},
        "headers": {"x-k8s-aws-id": "mine"},
        "context": {},
    }
    theirs = signer.generate_presigned_url(asked, operation_name="", expires_in=60, region_name="us-west-2")

    ours = token(KEYS, cluster="mine", region="us-west-2", sts_endpoint="https://sts.us-west-2.amazonaws.com")

    assert parse_qs(urlsplit(url_in(ours)).query) == parse_qs(urlsplit(theirs).query)


def url_in(text: str) -> str:
    assert text.startswith("k8s-aws-v1.")
    encoded = text.removeprefix("k8s-aws-v1.")
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()


def test_keys_of_a_user_have_no_session_token() -> None:
    plain = Keys(access_key_id="A", secret_access_key="B")

    query = parse_qs(urlsplit(url_in(token(plain, cluster="c", region="r", sts_endpoint="http://h:1"))).query)

    assert "X-Amz-Security-Token" not in query
    assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]


def test_the_kubeconfig_holds_no_secret_and_names_who_prints_one() -> None:
    text = kubeconfig(
        name="arn", endpoint="https://127.0.0.1:1", authority_data="Q0E=", command=["/h", "kubernetes", "token"],
        environment={"HOLDFAST_HOME": "/home"},
    )  # fmt: skip
    config = json.loads(text)

    program = config["users"][0]["user"]["exec"]
    assert [program["command"], *program["args"]] == ["/h", "kubernetes", "token"]
    assert program["env"] == [{"name": "HOLDFAST_HOME", "value": "/home"}]
    assert config["current-context"] == config["contexts"][0]["name"] == "arn"
    assert config["clusters"][0]["cluster"]["certificate-authority-data"] == "Q0E="


def test_the_answer_of_the_plugin_says_until_when_a_token_is_good() -> None:
    answer = exec_credential("t", expires_at=NOW)

    assert answer["status"] == {"expirationTimestamp": "2026-11-23T04:00:00Z", "token": "t"}
    assert (
        answer["apiVersion"]
        == json.loads(kubeconfig(name="n", endpoint="", authority_data="", command=["x"], environment={}))["users"][0][
            "user"
        ]["exec"]["apiVersion"]
    )


class FakeIam:
    """Roles by name."""

    class ExistsError(Exception):
        pass

    exceptions = SimpleNamespace(EntityAlreadyExistsException=ExistsError)

    def __init__(self, *there: str) -> None:
        self.roles: dict[str, dict[str, Any]] = {name: {} for name in there}

    def create_role(self, **role: Any) -> None:
        if role["RoleName"] in self.roles:
            raise self.ExistsError
        self.roles[role["RoleName"]] = role


def test_roles_that_are_missing_are_made_with_their_path_and_trust_their_account() -> None:
    iam = FakeIam("There")
    arns = [
        "arn:aws:iam::123456789012:role/There",
        "arn:aws:iam::123456789012:role/team/sub/New",
        "arn:aws:iam::999999999999:role/Elsewhere",
        "arn:aws:iam::123456789012:user/nobody",
    ]

    made = make_missing_roles(iam, arns, account="123456789012")

    assert made == ["New"]
    assert sorted(iam.roles) == ["New", "There"]
    assert iam.roles["New"]["Path"] == "/team/sub/"
    (said,) = json.loads(iam.roles["New"]["AssumeRolePolicyDocument"])["Statement"]
    assert said["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}
