"""The private plane between the SageMaker service and the HyperPod control plane, played here by the test."""

import json
import re
import threading
import urllib.error
import urllib.request

import boto3
import pytest
from footing import service_role

from holdfast.localcloud.aws import serve
from holdfast.localcloud.home import signed_headers
from holdfast.localcloud.hyperpod.api import PlaneClient


@pytest.fixture(scope="module")
def aws(tmp_path_factory):
    with serve(home=tmp_path_factory.mktemp("cloud")) as running:
        yield running


@pytest.fixture
def sagemaker(aws):
    arguments = {
        "region_name": "us-west-2",
        **aws.client_arguments,
    }
    client = boto3.client("sagemaker", **arguments)
    iam = boto3.client("iam", **arguments)
    role = "arn:aws:iam::123456789012:role/nodes"
    if not iam.list_roles()["Roles"]:
        service_role(iam, "nodes")
    group = {"InstanceGroupName": "g", "InstanceType": "ml.m5.xlarge", "InstanceCount": 2, "ExecutionRole": role}
    client.group = group
    client.arn = client.create_cluster(ClusterName="lab", InstanceGroups=[group])["ClusterArn"]
    yield client
    if client.list_clusters()["ClusterSummaries"]:
        if client.describe_cluster(ClusterName="lab")["ClusterStatus"] != "Deleting":
            client.delete_cluster(ClusterName="lab")
        post(aws, cluster_arn=client.arn, cluster_status="Deleted")
    client.close()
    iam.close()


def get(aws, path):
    return ask(aws, "GET", path)


def post(aws, **body):
    return ask(aws, "POST", "report", json.dumps(body).encode())


def ask(aws, method, path, body=b""):
    url = f"{aws.endpoint}/_holdfast/hyperpod/{path}"
    headers = signed_headers(aws.keys, method=method, url=url, region="us-west-2", service="holdfast", body=body)
    request = urllib.request.Request(url, data=body or None, headers=headers, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def nodes(sagemaker):
    found = sagemaker.list_cluster_nodes(ClusterName="lab")["ClusterNodeSummaries"]
    return [(node["InstanceId"], node["InstanceStatus"]["Status"]) for node in found]


def all_running(aws, sagemaker):
    said = [{"instance_id": node, "status": "Running"} for node, status in nodes(sagemaker) if status == "Pending"]
    post(aws, cluster_arn=sagemaker.arn, cluster_status="InService", nodes=said)


def status(sagemaker):
    told = sagemaker.describe_cluster(ClusterName="lab")
    group = told["InstanceGroups"][0]
    return told["ClusterStatus"], group["CurrentCount"], group["TargetCount"], group["Status"]


def test_a_cluster_is_what_the_control_plane_reports(aws, sagemaker):
    assert status(sagemaker) == ("Creating", 0, 2, "Creating")
    assert [state for _, state in nodes(sagemaker)] == ["Pending", "Pending"]

    all_running(aws, sagemaker)

    assert status(sagemaker) == ("InService", 2, 2, "InService")


def test_watchers_wake_when_a_caller_changes_something(aws, sagemaker):
    version = get(aws, "watch?version=0")["version"]
    assert get(aws, f"watch?version={version}&timeout_s=0.1")["version"] == version
    seen = []
    watcher = threading.Thread(target=lambda: seen.append(get(aws, f"watch?version={version}&timeout_s=10")["version"]))
    watcher.start()
    sagemaker.delete_cluster(ClusterName="lab")
    watcher.join(timeout=5)

    assert seen[0] > version


@pytest.mark.parametrize("kubernetes", ["", "1.20.2"], ids=["without binaries", "with binaries"])
def test_a_control_plane_is_answered_whether_its_home_has_binaries_of_kubernetes_or_not(aws, kubernetes):
    plane = PlaneClient(endpoint=aws.endpoint, region="us-west-2", keys=aws.keys)

    assert plane.watch(version=-1, kubernetes=kubernetes, timeout_s=0.1) >= 0


def test_a_failed_creation_names_its_reason(aws, sagemaker):
    first = nodes(sagemaker)[0][0]
    post(
        aws,
        cluster_arn=sagemaker.arn,
        cluster_status="Failed",
        failure_message=f"instance {first} of group g failed in step users",
        nodes=[{"instance_id": first, "status": "Failure", "message": "exit 1"}],
        events=[{"resource_type": "Instance", "instance_group": "g", "instance_id": first, "description": "no",
                 "level": "Error"}],
    )  # fmt: skip

    told = sagemaker.describe_cluster(ClusterName="lab")
    event = sagemaker.list_cluster_events(ClusterName="lab", NodeId=first)["Events"][0]
    detail = sagemaker.describe_cluster_event(ClusterName="lab", EventId=event["EventId"])["EventDetails"]
    assert (told["ClusterStatus"], "step users" in told["FailureMessage"]) == ("Failed", True)
    assert (detail["EventLevel"], detail["Description"], detail["InstanceId"]) == ("Error", "no", first)


def test_scaling_in_asks_for_the_last_nodes_and_ends_when_they_are_gone(aws, sagemaker):
    all_running(aws, sagemaker)
    (first, _), (last, _) = nodes(sagemaker)
    sagemaker.update_cluster(ClusterName="lab", InstanceGroups=[{**sagemaker.group, "InstanceCount": 1}])

    assert status(sagemaker) == ("Updating", 2, 1, "Updating")
    assert get(aws, "requests")["requests"] == [
        {"cluster_arn": sagemaker.arn, "instance_id": last, "action": "delete"}
    ]  # fmt: skip
    gone = [{"instance_id": last, "status": "NotFound"}]
    post(aws, cluster_arn=sagemaker.arn, cluster_status="InService", nodes=gone)
    assert status(sagemaker) == ("InService", 1, 1, "InService")
    assert nodes(sagemaker) == [(first, "Running")]


def test_an_update_that_fails_is_taken_back(aws, sagemaker):
    all_running(aws, sagemaker)
    sagemaker.update_cluster(ClusterName="lab", InstanceGroups=[{**sagemaker.group, "InstanceCount": 3}])
    new = nodes(sagemaker)[2][0]
    post(aws, cluster_arn=sagemaker.arn, cluster_status="RollingBack", failure_message="step users failed")
    assert status(sagemaker)[:3] == ("RollingBack", 2, 2)
    assert [one["instance_id"] for one in get(aws, "requests")["requests"]] == [new]

    gone = [{"instance_id": new, "status": "NotFound"}]
    post(aws, cluster_arn=sagemaker.arn, cluster_status="InService", nodes=gone)

    assert status(sagemaker) == ("InService", 2, 2, "InService")
    assert sagemaker.describe_cluster(ClusterName="lab")["FailureMessage"] == "step users failed"


def test_requests_stay_until_they_are_answered(aws, sagemaker):
    all_running(aws, sagemaker)
    (first, _), (second, _) = nodes(sagemaker)
    sagemaker.batch_reboot_cluster_nodes(ClusterName="lab", NodeIds=[first])
    sagemaker.batch_replace_cluster_nodes(ClusterName="lab", NodeIds=[second])
    assert [one["action"] for one in get(aws, "requests")["requests"]] == ["reboot", "replace"]

    again = sagemaker.batch_replace_cluster_nodes(ClusterName="lab", NodeIds=[second])["Failed"][0]
    assert again["ErrorCode"] == "InstanceIdInUse"
    new = "i-0123456789abcdef0"
    post(
        aws,
        cluster_arn=sagemaker.arn,
        nodes=[
            {"instance_id": first, "status": "Pending"},
            {"instance_id": new, "status": "Pending", "replaces": second},
        ],
    )
    assert get(aws, "requests")["requests"] == []
    post(aws, cluster_arn=sagemaker.arn, nodes=[{"instance_id": one, "status": "Running"} for one in (first, new)])
    assert dict(nodes(sagemaker)) == {first: "Running", new: "Running"}


def test_a_deleted_cluster_is_gone_when_reported(aws, sagemaker):
    sagemaker.delete_cluster(ClusterName="lab")
    assert status(sagemaker)[0] == "Deleting"
    assert {one["action"] for one in get(aws, "requests")["requests"]} == {"delete"}

    post(aws, cluster_arn=sagemaker.arn, cluster_status="Deleted")

    assert sagemaker.list_clusters()["ClusterSummaries"] == []


@pytest.mark.parametrize(
    "body", [{"cluster_arn": "nope"}, {"cluster_status": "Great"}, {"nodes": [{"status": "Running"}]}]
)
def test_reports_that_make_no_sense_are_refused(aws, sagemaker, body):
    with pytest.raises(urllib.error.HTTPError) as caught:
        post(aws, **{"cluster_arn": sagemaker.arn, **body})

    assert caught.value.code in (400, 404)
    caught.value.close()


def test_a_report_from_before_new_software_was_asked_for_does_not_end_the_update(aws, sagemaker):
    all_running(aws, sagemaker)
    sagemaker.update_cluster_software(
        ClusterName="lab", InstanceGroups=[{"InstanceGroupName": "g", "ImageReleaseVersion": "2.0.0"}]
    )
    before = [name for name, _ in nodes(sagemaker)]

    post(aws, cluster_arn=sagemaker.arn, cluster_status="InService")
    assert status(sagemaker)[0] == "SystemUpdating"

    updated(aws, sagemaker, *before)
    assert status(sagemaker)[0] == "InService"
    assert [name for name, _ in nodes(sagemaker)] == before


# --- software updates


def updated(aws, sagemaker, *names, ended="Running", **more):
    """The control plane has given these nodes a new root volume."""
    for told in ({"status": "SystemUpdating"}, {"status": ended, **more}):
        post(aws, cluster_arn=sagemaker.arn, nodes=[{"instance_id": name, **told} for name in names])


def asked_for(aws, action):
    return [one["instance_id"] for one in get(aws, "requests")["requests"] if one["action"] == action]


def software(sagemaker):
    (group,) = sagemaker.describe_cluster(ClusterName="lab")["InstanceGroups"]
    return group["Status"], group["SoftwareUpdateStatus"], group.get("CurrentImageReleaseVersion")


def update_software(sagemaker, version="2.0.0", **deployment):
    sagemaker.update_cluster_software(
        ClusterName="lab",
        InstanceGroups=[{"InstanceGroupName": "g", "ImageReleaseVersion": version}],
        **({"DeploymentConfig": deployment} if deployment else {}),
    )


@pytest.mark.documented("HP-117", "HP-118")
def test_new_software_goes_to_all_nodes_of_a_group_at_once_under_the_same_ids(aws, sagemaker):
    all_running(aws, sagemaker)
    names = [name for name, _ in nodes(sagemaker)]
    update_software(sagemaker)
    assert asked_for(aws, "update") == names
    updated(aws, sagemaker, names[0])
    assert software(sagemaker) == ("SystemUpdating", "InProgress", None)
    updated(aws, sagemaker, *names[1:])
    assert software(sagemaker) == ("InService", "Succeeded", "2.0.0")
    told = sagemaker.describe_cluster_node(ClusterName="lab", NodeId=names[0])["NodeDetails"]
    assert told["CurrentImageReleaseVersion"] == "2.0.0"
    assert told["LastSoftwareUpdateTime"] > told["LaunchTime"]


@pytest.mark.documented("HP-119")
def test_software_that_the_nodes_have_changes_nothing(aws, sagemaker):
    all_running(aws, sagemaker)
    names = [name for name, _ in nodes(sagemaker)]
    update_software(sagemaker)
    updated(aws, sagemaker, *names)
    update_software(sagemaker)
    assert (asked_for(aws, "update"), software(sagemaker)[1], status(sagemaker)[0]) == ([], "Succeeded", "InService")
    sagemaker.update_cluster_software(ClusterName="lab")
    assert (asked_for(aws, "update"), status(sagemaker)[0]) == ([], "InService")


@pytest.mark.documented("HP-120")
def test_a_node_that_fails_puts_the_nodes_before_it_back_and_the_message_names_it(aws, sagemaker):
    all_running(aws, sagemaker)
    first, second = (name for name, _ in nodes(sagemaker))
    update_software(sagemaker)
    updated(aws, sagemaker, first)
    updated(aws, sagemaker, second, ended="Failure", message="the script failed")
    assert software(sagemaker)[1] == "RollbackInProgress"
    assert asked_for(aws, "update") == [first, second]
    updated(aws, sagemaker, first, second)
    assert software(sagemaker) == ("InService", "RollbackComplete", None)
    told = sagemaker.describe_cluster(ClusterName="lab")
    assert told["FailureMessage"] == f"The software update of instance {second} failed: the script failed"

    update_software(sagemaker)
    for _ in range(2):
        updated(aws, sagemaker, first, second, ended="Failure", message="again")
    assert software(sagemaker)[1] == "Failed"


# --- what is under way with a node


def asked(call, *ids):
    answer = call(ClusterName="lab", NodeIds=list(ids))
    failed = [(one.get("ErrorCode") or one["Code"], one["Message"]) for one in answer.get("Failed", ())]
    return answer.get("Successful", []), failed


def report(aws, sagemaker, node, status, **more):
    post(aws, cluster_arn=sagemaker.arn, nodes=[{"instance_id": node, "status": status, **more}])


@pytest.mark.documented("HP-110")
def test_a_node_with_an_operation_under_way_is_in_use_until_it_works_again(aws, sagemaker):
    all_running(aws, sagemaker)
    (first, _), (second, _) = nodes(sagemaker)
    assert asked(sagemaker.batch_replace_cluster_nodes, first) == ([first], [])
    for call in (sagemaker.batch_replace_cluster_nodes, sagemaker.batch_reboot_cluster_nodes):
        (done, ((code, words),)) = asked(call, first)
        assert (done, code) == ([], "InstanceIdInUse")
        assert re.fullmatch(
            r"Node has active replacement operation \(started: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\). "
            r"Wait for completion or retry if operation is stale\.",
            words,
        )
    new = "i-00000000000000abc"
    report(aws, sagemaker, new, "Pending", replaces=first)
    assert asked(sagemaker.batch_replace_cluster_nodes, new)[1][0][0] == "InstanceIdInUse"
    assert asked(sagemaker.batch_delete_cluster_nodes, new)[1][0][0] == "NodeIdInUse"
    report(aws, sagemaker, new, "Running")
    assert asked(sagemaker.batch_reboot_cluster_nodes, new, second) == ([new, second], [])


@pytest.mark.documented("HP-110")
def test_an_operation_that_stands_still_keeps_its_node_in_use_and_says_since_when(aws, sagemaker):
    all_running(aws, sagemaker)
    (first, _), _ = nodes(sagemaker)
    asked(sagemaker.batch_reboot_cluster_nodes, first)
    report(aws, sagemaker, first, "Pending")  # the reboot has begun, and nothing more is heard of it
    words = {asked(sagemaker.batch_replace_cluster_nodes, first)[1][0] for _ in range(2)}
    ((code, said),) = words
    assert (code, said.split(" (")[0]) == ("InstanceIdInUse", "Node has active reboot operation")
    report(aws, sagemaker, first, "Failure", message="it did not come back")
    assert asked(sagemaker.batch_replace_cluster_nodes, first) == ([first], [])


@pytest.mark.documented("HP-116")
def test_a_request_takes_up_to_25_nodes(aws, sagemaker):
    all_running(aws, sagemaker)
    unknown = [f"i-{number:017x}" for number in range(26)]
    for call in (sagemaker.batch_replace_cluster_nodes, sagemaker.batch_reboot_cluster_nodes):
        with pytest.raises(sagemaker.exceptions.ClientError, match="Member must have length less than or equal to 25"):
            asked(call, *unknown)
        assert {code for code, _ in asked(call, *unknown[:25])[1]} == {"InstanceIdNotFound"}


@pytest.mark.documented("HP-111")
def test_an_instance_that_is_not_there_yet_is_neither_rebooted_nor_replaced(aws, sagemaker):
    all_running(aws, sagemaker)
    sagemaker.update_cluster(ClusterName="lab", InstanceGroups=[{**sagemaker.group, "InstanceCount": 3}])
    new = next(name for name, state in nodes(sagemaker) if state == "Pending")
    for call in (sagemaker.batch_replace_cluster_nodes, sagemaker.batch_reboot_cluster_nodes):
        (_, ((code, words),)) = asked(call, new)
        assert (code, "is in Pending status" in words) == ("InvalidInstanceStatus", True)
    report(aws, sagemaker, new, "ShuttingDown")
    assert asked(sagemaker.batch_reboot_cluster_nodes, new)[1][0][0] == "InvalidInstanceStatus"
    assert asked(sagemaker.batch_delete_cluster_nodes, new)[1][0][0] == "InvalidNodeStatus"


def check(sagemaker, *ids, kinds=("InstanceStress",), group="g"):
    named = {"InstanceIds": list(ids)} if ids else {}
    wanted = [{"InstanceGroupName": group, "DeepHealthChecks": list(kinds), **named}]
    return sagemaker.start_cluster_health_check(ClusterName="lab", DeepHealthCheckConfigurations=wanted)


@pytest.mark.documented("HP-112")
def test_a_deep_health_check_is_asked_for_and_ends_with_the_status_of_its_instance(aws, sagemaker):
    all_running(aws, sagemaker)
    (first, _), (second, _) = nodes(sagemaker)
    assert check(sagemaker, first)["ClusterArn"] == sagemaker.arn
    assert get(aws, "requests")["requests"] == [
        {"cluster_arn": sagemaker.arn, "instance_id": first, "action": "check InstanceStress"}
    ]
    report(aws, sagemaker, first, "DeepHealthCheckInProgress")
    assert nodes(sagemaker) == [(first, "DeepHealthCheckInProgress"), (second, "Running")]
    assert "active deep health check operation" in asked(sagemaker.batch_reboot_cluster_nodes, first)[1][0][1]
    with pytest.raises(sagemaker.exceptions.ClientError, match="cannot be checked: it is deep health check"):
        check(sagemaker, first)
    report(aws, sagemaker, first, "Running")
    assert get(aws, "requests")["requests"] == []
    told = sagemaker.list_cluster_events(ClusterName="lab", NodeId=first)["Events"]
    assert any("Deep health check InstanceStress of instance" in event["Description"] for event in told)
    check(sagemaker, kinds=("InstanceConnectivity", "InstanceStress"))
    assert len(get(aws, "requests")["requests"]) == 2


@pytest.mark.documented("HP-112")
def test_a_deep_health_check_of_what_is_not_there_is_refused_as_a_whole(aws, sagemaker):
    with pytest.raises(sagemaker.exceptions.ClientError, match="only when it is InService"):
        check(sagemaker)
    all_running(aws, sagemaker)
    (first, _), _ = nodes(sagemaker)
    for arguments, words in (
        ({"group": "other"}, "does not exist in cluster"),
        ({"ids": (first, "i-00000000")}, "is not in instance group 'g'"),
        ({"ids": (first,), "kinds": ("InstanceConnectivity",)}, "requires at least 2 instances"),
        ({"kinds": ("InterNode",)}, "enum value set"),
    ):
        with pytest.raises(sagemaker.exceptions.ClientError, match=words):
            check(sagemaker, *arguments.pop("ids", ()), **arguments)
    assert get(aws, "requests")["requests"] == []
