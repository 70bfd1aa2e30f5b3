"""EKS beside a control plane that offers a real Kubernetes, played here by the test."""

import contextlib
import json
import urllib.error
import urllib.request

import boto3
import pytest
from botocore.exceptions import ClientError
from footing import service_role

from holdfast.localcloud.aws import serve
from holdfast.localcloud.home import signed_headers

NAME = "lab"


@pytest.fixture(scope="module")
def aws(tmp_path_factory):
    with serve(home=tmp_path_factory.mktemp("cloud")) as running:
        yield running


@pytest.fixture(scope="module")
def account(aws):
    """The role and the subnets of a cluster."""
    ec2 = client(aws, "ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone=f"us-west-2{zone}")["Subnet"][
            "SubnetId"
        ]
        for number, zone in enumerate("ab")
    ]
    return {"roleArn": service_role(client(aws, "iam"), "eks"), "resourcesVpcConfig": {"subnetIds": subnets}}


@pytest.fixture
def eks(aws, account):
    ask(aws, "GET", "watch?version=-1&timeout_s=0&kubernetes=1.20.2")
    made = client(aws, "eks")
    made.create_cluster(name=NAME, **account)
    yield made
    arn = f"arn:aws:eks:us-west-2:123456789012:cluster/{NAME}"
    for end in (lambda: made.delete_cluster(name=NAME), lambda: tell(aws, arn=arn, status="Deleted")):
        with contextlib.suppress(ClientError, urllib.error.HTTPError):
            end()
    ask(aws, "GET", "watch?version=-1&timeout_s=0")
    made.close()


def client(aws, service):
    return boto3.client(service, region_name="us-west-2", **aws.client_arguments)


def ask(aws, method, path, body=b""):
    url = f"{aws.endpoint}/_holdfast/hyperpod/{path}"
    headers = signed_headers(aws.keys, method=method, url=url, region="us-west-2", service="holdfast", body=body)
    request = urllib.request.Request(url, data=body or None, headers=headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def tell(aws, **became):
    empty = {"endpoint": "", "authority": "", "runs": "", "message": ""}
    return ask(aws, "POST", "kubernetes", json.dumps({**empty, **became}).encode())


def described(eks):
    return eks.describe_cluster(name=NAME)["cluster"]


def test_a_cluster_is_created_until_its_api_server_is_ready(aws, eks):
    told = described(eks)
    assert told["status"] == "CREATING"
    assert "endpoint" not in told
    assert "certificateAuthority" not in told
    tell(aws, arn=told["arn"], status="ACTIVE", endpoint="https://127.0.0.1:1", authority="Y2E=", runs="1.20.2")
    told = described(eks)
    assert (told["status"], told["endpoint"]) == ("ACTIVE", "https://127.0.0.1:1")
    assert told["certificateAuthority"] == {"data": "Y2E="}
    assert told["version"] != "1.20.2", "the version that was asked for"
    assert not told.keys() & {"awaits", "runs", "creator"}


def test_a_control_plane_that_does_not_start_fails_its_cluster(aws, eks):
    tell(aws, arn=described(eks)["arn"], status="FAILED", message="the API server is not ready")
    told = described(eks)
    assert told["status"] == "FAILED"
    assert told["health"]["issues"][0]["message"] == "the API server is not ready"


def test_a_cluster_that_is_being_created_cannot_be_changed(eks):
    with pytest.raises(ClientError, match="not in ACTIVE state but in CREATING"):
        eks.update_cluster_version(name=NAME, version="1.36")


def test_a_cluster_is_deleted_when_nothing_of_it_is_left(aws, eks):
    arn = described(eks)["arn"]
    tell(aws, arn=arn, status="ACTIVE", endpoint="https://127.0.0.1:1", authority="Y2E=", runs="1.20.2")
    eks.delete_cluster(name=NAME)
    assert described(eks)["status"] == "DELETING"
    tell(aws, arn=arn, status="ACTIVE", endpoint="https://127.0.0.1:2", authority="Y2E=", runs="1.20.2")
    assert described(eks)["status"] == "DELETING", "a late word does not bring it back"
    tell(aws, arn=arn, status="Deleted")
    with pytest.raises(eks.exceptions.ResourceNotFoundException):
        described(eks)


def test_where_the_binaries_are_gone_a_cluster_becomes_a_record(aws, eks):
    tell(aws, arn=described(eks)["arn"], status="ACTIVE")
    told = described(eks)
    assert told["status"] == "ACTIVE"
    assert told["endpoint"].endswith(".gr7.us-west-2.eks.amazonaws.com")


def test_without_an_offer_a_cluster_is_a_record_at_once(aws, account):
    ask(aws, "GET", "watch?version=-1&timeout_s=0")
    eks = client(aws, "eks")
    eks.create_cluster(name="plain", **account)
    eks.get_waiter("cluster_active").wait(name="plain", WaiterConfig={"Delay": 0.05})
    assert "endpoint" in eks.describe_cluster(name="plain")["cluster"]
    eks.delete_cluster(name="plain")
    eks.close()


def test_what_became_of_an_unknown_cluster_is_not_recorded(aws):
    with pytest.raises(urllib.error.HTTPError, match="404"):
        tell(aws, arn="arn:aws:eks:us-west-2:123456789012:cluster/none", status="ACTIVE")
