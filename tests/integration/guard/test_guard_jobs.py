"""A job has the rights of its node's role and no others, however it asks."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from footing import TRUST, service_role

from holdfast.localcloud.aws import EmbeddedAws, serve
from holdfast.localcloud.home import Keys, signed_headers
from holdfast.localcloud.hyperpod.api import RoleSessions

REGION, ACCOUNT = "us-west-2", "123456789012"
DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
FORM, JSON = "application/x-www-form-urlencoded", "application/x-amz-json-1.1"
RIGHTS = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": ["arn:aws:s3:::*"]},
        {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::job-data/out/*"},
        {"Effect": "Allow", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::job-data/*"},
        {"Effect": "Deny", "Action": "s3:DeleteObject", "Resource": "arn:aws:s3:::job-data/kept/*"},
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": "arn:aws:logs:*:*:log-group:/aws/sagemaker/Clusters/*:log-stream:*",
        },
        {
            "Effect": "Allow",
            "Action": "cloudwatch:PutMetricData",
            "Resource": "*",
            "Condition": {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/Clusters"}},
        },
        {"Effect": "Allow", "Action": ["sagemaker:ListClusters", "iam:GetUser", "sts:AssumeRole"], "Resource": "*"},
    ],
}


class Lab:
    """An embedded AWS with a cluster, a session of the role of its nodes, and clients of both."""

    def __init__(self, aws: EmbeddedAws) -> None:
        self.aws, self.made = aws, {}
        iam, s3 = self.owner("iam"), self.owner("s3")
        service_role(iam, "admin")
        self.role = iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
        iam.put_role_policy(RoleName="nodes", PolicyName="nodes", PolicyDocument=json.dumps(RIGHTS))
        for name in ("sagemaker-scripts", "job-data"):
            s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
            s3.put_object(Bucket=name, Key="on_create.sh", Body=b"true")
        for key in ("kept/1", "gone/1", "gone/2"):
            s3.put_object(Bucket="job-data", Key=key, Body=b"x")
        group = {
            "InstanceGroupName": "g",
            "InstanceType": "ml.m5.xlarge",
            "InstanceCount": 1,
            "ExecutionRole": f"arn:aws:iam::{ACCOUNT}:role/admin",
        }
        self.owner("sagemaker").create_cluster(ClusterName="lab", InstanceGroups=[group])
        self.owner("logs").create_log_group(logGroupName="/aws/sagemaker/Clusters/lab/1")
        self.owner("logs").create_log_group(logGroupName="/other")
        told = json.loads(RoleSessions(sts=self.owner("sts")).document(self.role))
        self.keys = Keys(
            access_key_id=told["AccessKeyId"],
            secret_access_key=told["SecretAccessKey"],
            session_token=told["Token"],
        )

    def owner(self, service: str) -> Any:
        return self.client(service, **self.aws.client_arguments)

    def job(self, service: str) -> Any:
        return self.client(service, **{**self.aws.client_arguments, **self.keys.boto})

    def client(self, service: str, **reach: str) -> Any:
        key = (service, *reach.values())
        if key not in self.made:
            config = Config(retries={"total_max_attempts": 1}, parameter_validation=False)
            self.made[key] = boto3.client(service, region_name=REGION, config=config, **reach)
        return self.made[key]

    def close(self) -> None:
        for one in self.made.values():
            one.close()

    def raw(self, service: str, body: str, *, path: str = "/", method: str = "POST", **headers: str) -> tuple[int, str]:
        """A request of the job's that no SDK would send."""
        content = body.encode()
        url = f"{self.aws.endpoint}{path}"
        signature = signed_headers(self.keys, method=method, url=url, region=REGION, service=service, body=content)
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.aws.port, timeout=20)
        try:
            connection.request(method, path, body=content, headers={**signature, **more})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def nodes(self) -> list[str]:
        found = self.owner("sagemaker").list_cluster_nodes(ClusterName="lab")["ClusterNodeSummaries"]
        return [one["InstanceId"] for one in found]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        made = Lab(running)
        yield made
        made.close()


def refused(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    code = caught.value.response["Error"]["Code"]
    assert code in DENIED, caught.value
    return str(caught.value)


def test_a_job_is_its_role_and_does_what_that_may(lab: Lab) -> None:
    s3 = lab.job("s3")

    assert lab.job("sts").get_caller_identity()["Arn"] == f"arn:aws:sts::{ACCOUNT}:assumed-role/nodes/SageMaker"
    assert s3.get_object(Bucket="sagemaker-scripts", Key="on_create.sh")["Body"].read() == b"true"
    assert s3.list_objects_v2(Bucket="job-data", Prefix="kept/")["KeyCount"] == 1
    s3.put_object(Bucket="job-data", Key="out/model", Body=b"x" * 100)
    assert lab.job("sagemaker").list_clusters()["ClusterSummaries"]
    lab.job("logs").create_log_stream(logGroupName="/aws/sagemaker/Clusters/lab/1", logStreamName="job")
    metric = [{"MetricName": "loss", "Value": 1.0}]
    lab.job("cloudwatch").put_metric_data(Namespace="/aws/sagemaker/Clusters", MetricData=metric)


def test_a_job_does_not_become_root_by_a_lifecycle_script_and_a_new_node(lab: Lab) -> None:
    before = lab.nodes()
    s3, sagemaker = lab.job("s3"), lab.job("sagemaker")

    told = refused(s3.put_object, Bucket="sagemaker-scripts", Key="on_create.sh", Body=b"id > /tmp/x")
    assert (
        f"User: arn:aws:sts::{ACCOUNT}:assumed-role/nodes/SageMaker is not authorized to perform: s3:PutObject on "
        "resource: arn:aws:s3:::sagemaker-scripts/on_create.sh because no identity-based policy allows" in told
    )
    refused(sagemaker.batch_replace_cluster_nodes, ClusterName="lab", NodeIds=before)
    refused(sagemaker.batch_reboot_cluster_nodes, ClusterName="lab", NodeIds=before)
    refused(sagemaker.batch_delete_cluster_nodes, ClusterName="lab", NodeIds=before)
    refused(sagemaker.update_cluster, ClusterName="lab", InstanceGroups=[])
    refused(sagemaker.delete_cluster, ClusterName="lab")
    assert lab.nodes() == before
    assert lab.owner("s3").get_object(Bucket="sagemaker-scripts", Key="on_create.sh")["Body"].read() == b"true"


def test_a_job_does_not_get_more_rights(lab: Lab) -> None:
    iam, sts, s3 = lab.job("iam"), lab.job("sts"), lab.job("s3")
    everything = json.dumps({"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*", "Principal": "*"}]})

    refused(iam.put_role_policy, RoleName="nodes", PolicyName="more", PolicyDocument=everything)
    refused(iam.create_access_key, UserName="x")
    refused(iam.update_assume_role_policy, RoleName="admin", PolicyDocument=everything)
    refused(s3.put_bucket_policy, Bucket="sagemaker-scripts", Policy=everything)
    with pytest.raises(ClientError, match="MissingAuthenticationToken"):
        sts.assume_role_with_web_identity(RoleArn=lab.role, RoleSessionName="xx", WebIdentityToken="x" * 10)
    refused(lab.job("cloudformation").create_stack, StackName="x", TemplateBody="{}")
    refused(lab.job("secretsmanager").list_secrets)
    refused(lab.job("eks").list_clusters)
    refused(lab.job("lambda").list_functions)


def test_a_role_is_assumed_when_it_trusts_the_one_that_asks(lab: Lab) -> None:
    arn = f"arn:aws:iam::{ACCOUNT}:role/admin"
    refused(lab.job("sts").assume_role, RoleArn=arn, RoleSessionName="xx")
    refused(lab.job("sts").assume_role, RoleArn=f"arn:aws:iam::{ACCOUNT}:role/none", RoleSessionName="xx")
    trust = {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": ACCOUNT}}]}
    lab.owner("iam").create_role(RoleName="friend", AssumeRolePolicyDocument=json.dumps(trust))

    made = lab.job("sts").assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/friend", RoleSessionName="xx")

    assert made["Credentials"]["AccessKeyId"].startswith("ASIA")


def test_what_is_named_in_a_body_or_a_header_is_judged_too(lab: Lab) -> None:
    s3 = lab.job("s3")
    copy = {"Bucket": "job-data", "Key": "out/copy"}

    s3.copy_object(**copy, CopySource="sagemaker-scripts/on_create.sh")
    s3.delete_objects(Bucket="job-data", Delete={"Objects": [{"Key": "gone/1"}]})
    refused(s3.delete_objects, Bucket="job-data", Delete={"Objects": [{"Key": "gone/2"}, {"Key": "kept/1"}]})
    refused(s3.delete_object, Bucket="job-data", Key="kept/1")
    refused(s3.put_object_tagging, Bucket="job-data", Key="out/copy", Tagging={"TagSet": []})
    refused(s3.put_bucket_lifecycle_configuration, Bucket="job-data", LifecycleConfiguration={"Rules": []})
    refused(lab.job("logs").create_log_stream, logGroupName="/other", logStreamName="job")
    refused(lab.job("cloudwatch").put_metric_data, Namespace="mine", MetricData=[])
    assert lab.owner("s3").list_objects_v2(Bucket="job-data", Prefix="gone/")["KeyCount"] == 1


SMUGGLED = "Action=PutRolePolicy&RoleName=nodes&PolicyName=more&PolicyDocument=%7B%7D&Version=2010-05-08"


@pytest.mark.parametrize(
    ("service", "path", "body", "headers"),
    [
        ("iam", "/?Action=GetUser", SMUGGLED, {"Content_Type": FORM}),
        ("iam", "/", f"Action=GetUser&{SMUGGLED}", {"Content_Type": FORM}),
        ("iam", "/?Action=GetUser", SMUGGLED, {"Content_Type": "text/plain"}),
        ("iam", "/?Action=GetUser&Action=PutRolePolicy", "", {}),
        ("iam", "/", SMUGGLED, {"Content_Type": FORM, "X_Amz_Target": "IAM.GetUser"}),
        ("iam", "/", "", {"Action": "PutRolePolicy", "X_Amz_Target": "IAM.GetUser"}),
        ("sagemaker", "/?Action=DeleteCluster", "{}", {"Content_Type": JSON, "X_Amz_Target": "SageMaker.ListClusters"}),
        (
            "sagemaker",
            "/",
            '{"NameContains": "&Action=DeleteModel&ModelName=x&"}',
            {"Content_Type": JSON, "X_Amz_Target": "SageMaker.ListClusters"},
        ),
    ],
)
def test_a_job_names_one_action_and_that_is_judged(
    lab: Lab, service: str, path: str, body: str, headers: dict[str, str]
) -> None:
    status, told = lab.raw(service, body, path=path, **headers)

    assert status in (400, 403)
    assert "more than one action" in told or "not authorized" in told
    assert lab.owner("iam").list_role_policies(RoleName="nodes")["PolicyNames"] == ["nodes"]


def test_a_job_does_not_speak_with_another_service_than_it_signed_for(lab: Lab) -> None:
    form = f"Action=AssumeRoleWithWebIdentity&RoleArn=arn:aws:iam::{ACCOUNT}:role/admin&RoleSessionName=xx"

    for headers in ({"Content_Type": FORM}, {"X_Amz_Target": "AWSCognitoIdentityService.GetId"}):
        status, told = lab.raw("s3", form, path="/sagemaker-scripts", **headers)
        assert status in (400, 403, 404, 405)
        assert "AccessKeyId" not in told


def test_a_job_does_not_choose_an_account_or_the_private_plane(lab: Lab) -> None:
    told = lab.raw("sts", "Action=GetCallerIdentity", Content_Type=FORM, x_moto_account_id="999999999999")
    assert (told[0], ACCOUNT in told[1]) == (200, True)

    for path, method in (("/_holdfast/hyperpod/requests", "GET"), ("/_holdfast/hyperpod/report", "POST")):
        assert lab.raw("holdfast", "{}", path=path, method=method)[0] == 403


def test_a_policy_holds_from_the_next_request_on(lab: Lab) -> None:
    statement = {"Effect": "Allow", "Action": "ssm:GetParameter", "Resource": "arn:aws:ssm:*:*:parameter/mine"}
    allow = {"Version": "2012-10-17", "Statement": [statement]}
    iam, ssm = lab.owner("iam"), lab.job("ssm")
    for name in ("/mine", "/theirs"):
        lab.owner("ssm").put_parameter(Name=name, Value="x", Type="String")
    refused(ssm.get_parameter, Name="/mine")

    iam.put_role_policy(RoleName="nodes", PolicyName="ssm", PolicyDocument=json.dumps(allow))
    assert ssm.get_parameter(Name="/mine")["Parameter"]["Value"] == "x"
    refused(ssm.get_parameter, Name="/theirs")

    iam.delete_role_policy(RoleName="nodes", PolicyName="ssm")
    refused(ssm.get_parameter, Name="/mine")


def test_a_session_without_its_token_or_of_a_role_that_is_gone_does_nothing(lab: Lab) -> None:
    reach = {**lab.aws.client_arguments, **lab.keys.boto}
    del reach["aws_session_token"]
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        lab.client("s3", **reach).list_objects_v2(Bucket="job-data")
    iam = lab.owner("iam")
    role = iam.create_role(RoleName="gone", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    iam.put_role_policy(RoleName="gone", PolicyName="all", PolicyDocument=json.dumps(RIGHTS))
    made = json.loads(RoleSessions(sts=lab.owner("sts")).document(role))
    iam.delete_role_policy(RoleName="gone", PolicyName="all")
    iam.delete_role(RoleName="gone")
    keys = Keys(
        access_key_id=made["AccessKeyId"], secret_access_key=made["SecretAccessKey"], session_token=made["Token"]
    )

    refused(lab.client("s3", **{**lab.aws.client_arguments, **keys.boto}).list_objects_v2, Bucket="job-data")
