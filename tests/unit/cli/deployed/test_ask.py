"""One question to AWS: the answer and the errors of botocore, for real AWS and for the embedded one."""

from pathlib import Path
from typing import Any, Literal

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from holdfast.cli.deployed import AwsError, Context, Session, UnreachableError
from holdfast.localcloud import LocalCloud


def context(monkeypatch: pytest.MonkeyPatch, client: Any, *, cloud: Literal["embedded", "aws"] = "embedded") -> Context:
    monkeypatch.setattr("holdfast.cli.deployed.sessions._client", lambda *_: client)
    session = Session(
        environment="lab", cloud=cloud, region="us-west-2", stack_name="s", cluster_name="c", port=9, profile=""
    )
    return Context(session=session, local=LocalCloud(home=Path("/nowhere"), port=9))


def client() -> Any:
    return botocore.session.get_session().create_client(
        "sagemaker", region_name="us-west-2", endpoint_url="http://127.0.0.1:9", aws_access_key_id="a",
        aws_secret_access_key="b", config=Config(retries={"total_max_attempts": 1}),
    )  # fmt: skip


def test_a_refusal_has_the_code_and_the_message_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    made = client()
    with Stubber(made) as stub:
        stub.add_client_error("describe_cluster", "ResourceNotFound", "no cluster c")
        with pytest.raises(AwsError, match=r"^ResourceNotFound: no cluster c$") as caught:
            context(monkeypatch, made).ask("sagemaker", "DescribeCluster", ClusterName="c")
    assert caught.value.code == "ResourceNotFound"


def test_an_embedded_aws_that_does_not_answer_is_named_with_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreachableError, match=r"the embedded AWS at http://\S+:9 does not answer"):
        context(monkeypatch, client()).ask("sagemaker", "DescribeCluster", ClusterName="c")


def test_aws_that_does_not_answer_is_botocores_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EndpointConnectionError):
        context(monkeypatch, client(), cloud="aws").ask("sagemaker", "DescribeCluster", ClusterName="c")
