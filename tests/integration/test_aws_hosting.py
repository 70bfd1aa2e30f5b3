"""CloudFormation through the host: its requests are parsed, its answers serialized, its state kept."""

import json
import time

import boto3
from botocore.exceptions import ClientError

from holdfast.localcloud.aws import serve

PARAMETER = {"Type": "AWS::SSM::Parameter", "Properties": {"Name": "/p", "Type": "String", "Value": "1"}}
TEMPLATE = json.dumps(
    {
        "Resources": {"P": PARAMETER},
        "Outputs": {"Name": {"Value": {"Ref": "P"}}},
    }
)


def stack_of(aws):
    client = boto3.client(
        "cloudformation",
        region_name="us-west-2",
        **aws.client_arguments,
    )
    try:
        return client.describe_stacks(StackName="one")["Stacks"][0]
    except ClientError:
        client.create_stack(StackName="one", TemplateBody=TEMPLATE)
        deadline = time.monotonic() + 60
        while (stack := client.describe_stacks(StackName="one")["Stacks"][0])["StackStatus"] == "CREATE_IN_PROGRESS":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        return stack
    finally:
        client.close()


def test_a_stack_is_made_and_kept(tmp_path):
    with serve(home=tmp_path) as aws:
        before = stack_of(aws)
    with serve(home=tmp_path) as aws:
        after = stack_of(aws)

    assert (before["StackStatus"], before["Outputs"][0]["OutputValue"]) == ("CREATE_COMPLETE", "/p")
    assert after["StackId"] == before["StackId"]
    assert after["StackStatus"] == "CREATE_COMPLETE"
