"""The smaller services of our own: what they keep over a restart, refuse, and pass on."""

import json
import urllib.request

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from footing import service_role

from holdfast.localcloud.aws import serve
from holdfast.localcloud.home import signed_headers


class Cloud:
    """One embedded AWS after the other in the same home."""

    def __init__(self, home):
        self._home, self._clients = home, {}
        self.running = serve(home=home, hyperpod="simulated")

    def __call__(self, service):
        if service not in self._clients:
            config = Config(retries={"total_max_attempts": 1})
            self._clients[service] = boto3.client(
                service, region_name="us-west-2", config=config, **self.running.client_arguments
            )
        return self._clients[service]

    def stop(self):
        for one in self._clients.values():
            one.close()
        self._clients.clear()
        self.running.stop()

    def restart(self):
        self.stop()
        self.running = serve(home=self._home, hyperpod="simulated")


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    made = Cloud(tmp_path_factory.mktemp("cloud"))
    yield made
    made.stop()


@pytest.fixture(scope="module")
def eks(cloud):
    """An EKS cluster called lab, and its role."""
    ec2 = cloud("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.1.{number}.0/24", AvailabilityZone=f"us-west-2{zone}")["Subnet"][
            "SubnetId"
        ]
        for number, zone in enumerate("ab")
    ]
    role = service_role(cloud("iam"), "lab")
    settings = {"name": "lab", "roleArn": role, "resourcesVpcConfig": {"subnetIds": subnets}}
    first = cloud("eks").create_cluster(**settings)["cluster"]["status"]
    cloud("eks").get_waiter("cluster_active").wait(name="lab", WaiterConfig={"Delay": 0.05})
    return {"settings": settings, "role": role, "first": first}


def refusal(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response["Error"]["Code"]


def test_a_cluster_is_made_in_a_moment_and_only_once(cloud, eks):
    assert eks["first"] == "CREATING"
    assert refusal(cloud("eks").create_cluster, **eks["settings"]) == "ResourceInUseException"
    assert refusal(cloud("eks").describe_cluster, name="none") == "ResourceNotFoundException"


def test_access_entries_need_an_authentication_mode_that_knows_them(cloud, eks):
    entry = {"clusterName": "lab", "principalArn": eks["role"], "type": "HYPERPOD_LINUX"}
    before = refusal(cloud("eks").create_access_entry, **entry)
    cloud("eks").update_cluster_config(name="lab", accessConfig={"authenticationMode": "API_AND_CONFIG_MAP"})
    made = cloud("eks").create_access_entry(**entry)["accessEntry"]

    assert before == "InvalidRequestException"
    assert made["kubernetesGroups"] == ["system:nodes"]
    assert refusal(cloud("eks").create_access_entry, **entry) == "ResourceInUseException"


def test_what_the_services_hold_survives_a_restart(cloud, eks):
    cloud("eks").get_waiter("cluster_active").wait(name="lab", WaiterConfig={"Delay": 0.05})
    workspace = cloud("amp").create_workspace(alias="kept")["workspaceId"]
    cloud("eks").create_addon(clusterName="lab", addonName="vpc-cni")
    cloud("sagemaker").create_mlflow_app(Name="kept", ArtifactStoreUri="s3://x", RoleArn=eks["role"])
    cloud("cloudwatch").put_composite_alarm(AlarmName="any", AlarmRule="TRUE")
    cloud.restart()

    assert cloud("amp").describe_workspace(workspaceId=workspace)["workspace"]["alias"] == "kept"
    assert cloud("eks").describe_addon(clusterName="lab", addonName="vpc-cni")["addon"]["status"] == "ACTIVE"
    assert cloud("sagemaker").list_mlflow_apps()["Summaries"][0]["Name"] == "kept"
    kinds = ["CompositeAlarm"]
    assert cloud("cloudwatch").describe_alarms(AlarmTypes=kinds)["CompositeAlarms"][0]["AlarmName"] == "any"


def test_events_reach_topics_log_groups_and_queues_with_their_input_transformed(cloud):
    sns, sqs, events, logs = cloud("sns"), cloud("sqs"), cloud("events"), cloud("logs")
    topic = sns.create_topic(Name="t")["TopicArn"]
    urls = [sqs.create_queue(QueueName=name)["QueueUrl"] for name in ("direct", "behind")]
    direct, behind = (
        sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"] for url in urls
    )
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=behind)
    logs.create_log_group(logGroupName="/events")
    events.put_rule(Name="r", EventPattern='{"source": ["lab"], "detail": {"n": [{"numeric": [">", 1]}]}}')
    transformed = {"InputPathsMap": {"n": "$.detail.n"}, "InputTemplate": '"n is <n>"'}
    log_group = "arn:aws:logs:us-west-2:123456789012:log-group:/events"
    events.put_targets(
        Rule="r",
        Targets=[
            {"Id": "queue", "Arn": direct, "InputTransformer": transformed},
            {"Id": "topic", "Arn": topic},
            {"Id": "log", "Arn": log_group},
            {"Id": "other", "Arn": "arn:aws:lambda:us-west-2:123456789012:function:f"},
        ],
    )
    entry = {"Source": "lab", "DetailType": "d"}
    answer = events.put_events(Entries=[{**entry, "Detail": '{"n": 1}'}, {**entry, "Detail": '{"n": 2}'}])
    messages = [sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", []) for url in urls]

    assert answer["FailedEntryCount"] == 0
    assert [message["Body"] for message in messages[0]] == ['"n is 2"']
    assert json.loads(json.loads(messages[1][0]["Body"])["Message"])["detail"] == {"n": 2}
    assert len(logs.describe_log_streams(logGroupName="/events")["logStreams"]) == 1
    broken = events.put_events(Entries=[{**entry, "Detail": "no JSON"}])
    assert broken["Entries"][0]["ErrorCode"] == "MalformedDetail"


def test_the_key_of_a_log_group_can_be_changed(cloud):
    logs = cloud("logs")
    logs.create_log_group(logGroupName="/keyed")
    logs.associate_kms_key(logGroupName="/keyed", kmsKeyId="arn:aws:kms:us-west-2:123456789012:key/k")
    during = logs.describe_log_groups(logGroupNamePrefix="/keyed")["logGroups"][0].get("kmsKeyId")
    logs.disassociate_kms_key(logGroupName="/keyed")

    assert during == "arn:aws:kms:us-west-2:123456789012:key/k"
    assert "kmsKeyId" not in logs.describe_log_groups(logGroupNamePrefix="/keyed")["logGroups"][0]
    assert refusal(logs.associate_kms_key, logGroupName="/none", kmsKeyId="k") == "ResourceNotFoundException"


def test_releases_of_stacks_are_told(cloud):
    release = {
        "ServiceToken": "arn:aws:lambda:us-west-2:123456789012:function:helm",
        "Release": "device-plugin",
        "Namespace": "kube-system",
        "Archive": {"Bucket": "charts", "Key": "a.tar.gz"},
        "ChartPath": "charts/device-plugin",
        "TreeSha256": "b" * 64,
        "Values": '{"replicas": 2}',
    }
    template = {"Resources": {"R": {"Type": "Custom::HoldfastHelmRelease", "Properties": release}}}
    cloud("cloudformation").create_stack(StackName="charts", TemplateBody=json.dumps(template))
    cloud("cloudformation").get_waiter("stack_create_complete").wait(StackName="charts", WaiterConfig={"Delay": 0.05})

    url = f"{cloud.running.endpoint}/_holdfast/releases"
    signature = signed_headers(cloud.running.keys, method="GET", url=url, region="us-west-2", service="holdfast")
    with urllib.request.urlopen(urllib.request.Request(url, headers=signature)) as answer:
        told = json.load(answer)["releases"][0]

    assert (told["StackName"], told["Release"], told["Values"]) == ("charts", "device-plugin", '{"replicas": 2}')


def test_an_operation_that_nobody_has_says_so(cloud):
    with pytest.raises(ClientError, match=r"not implemented by the embedded AWS: eks\.ListFargateProfiles"):
        cloud("eks").list_fargate_profiles(clusterName="lab")
