"""Requests find their service: ours, moto's, or nobody's."""

import concurrent.futures

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from holdfast.localcloud.aws import PortBusyError, serve


@pytest.fixture(scope="module")
def aws(tmp_path_factory):
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        yield running


@pytest.fixture
def client(aws):
    made = []

    def get(service, host="localhost", region="us-west-2"):
        client = boto3.client(
            service,
            region_name=region,
            **{**aws.client_arguments, "endpoint_url": aws.endpoint.replace("localhost", host)},
            config=Config(retries={"total_max_attempts": 1}),
        )
        made.append(client)
        return client

    yield get
    for one in made:
        one.close()


def test_the_keys_of_a_home_are_of_the_one_account(client):
    assert client("sts").get_caller_identity()["Account"] == "123456789012"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_buckets_are_in_the_path_for_every_name_of_this_machine(client, host):
    s3, bucket = client("s3", host), f"bucket-{host}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.put_object(Bucket=bucket, Key="a/b c+d", Body=b"x")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "a/b c+d"})

    assert s3.list_objects_v2(Bucket=bucket)["Contents"][0]["Key"] == "a/b c+d"
    assert host in url
    assert s3.get_object(Bucket=bucket, Key="a/b c+d")["Body"].read() == b"x"


def test_regions_are_kept_apart(client):
    client("ssm", region="us-west-2").put_parameter(Name="/here", Value="1", Type="String")

    assert client("ssm", region="eu-west-1").describe_parameters()["Parameters"] == []


def test_cloudtrail_knows_of_no_events(client):
    assert client("cloudtrail").lookup_events()["Events"] == []


@pytest.mark.parametrize(
    ("service", "operation", "arguments"),
    [
        ("fsx", "describe_backups", {}),
        ("sagemaker", "list_cluster_operations", {"ClusterName": "x"}),
        ("ec2", "describe_verified_access_groups", {}),
    ],
)
def test_what_nobody_implements_is_told_with_status_501(client, service, operation, arguments):
    with pytest.raises(ClientError) as caught:
        getattr(client(service), operation)(**arguments)

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 501
    assert f"not implemented by the embedded AWS: {service}." in caught.value.response["Error"]["Message"]


def test_many_callers_at_once_are_served(client):
    ssm = client("ssm")

    def put(number):
        ssm.put_parameter(Name=f"/many/{number}", Value="x", Type="String")

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(40)))

    pages = ssm.get_paginator("get_parameters_by_path").paginate(Path="/many")
    assert sum(len(page["Parameters"]) for page in pages) == 40


def test_there_is_one_per_process(aws, tmp_path):
    with pytest.raises(RuntimeError, match="already runs"):
        serve(home=tmp_path)


def test_errors_have_names():
    assert issubclass(PortBusyError, Exception)
