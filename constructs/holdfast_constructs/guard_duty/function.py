"""Lambda: delete GuardDuty's endpoint and security group in a VPC, when the VPC is deleted."""

import json
import time
import urllib.request
from collections.abc import Callable
from typing import Any

import boto3

MARGIN_S = 30
PAUSE_S = 10
MANAGED = {"Name": "tag:GuardDutyManaged", "Values": ["true"]}


def handler(event: dict[str, Any], context: Any) -> None:
    """Answer one request of CloudFormation."""
    reason = None
    try:
        if event["RequestType"] == "Delete":
            place = {"Name": "vpc-id", "Values": [event["ResourceProperties"]["VpcId"]]}
            clear(boto3.client("ec2"), place, lambda: context.get_remaining_time_in_millis() / 1000)
    except Exception as error:  # noqa: BLE001 - CloudFormation waits for an answer
        reason = str(error) or type(error).__name__
    print(json.dumps({"request": event["RequestType"], "reason": reason}))
    answer(event, reason)


def clear(ec2: Any, place: dict[str, Any], left_s: Callable[[], float]) -> None:
    """GuardDuty makes them again while its agent runs, so that this is asked for until nothing is there."""
    while True:
        pages = ec2.get_paginator("describe_vpc_endpoints").paginate(Filters=[place, MANAGED])
        endpoints = [found for page in pages for found in page["VpcEndpoints"] if found["State"].lower() != "deleted"]
        fresh = [found["VpcEndpointId"] for found in endpoints if found["State"].lower() != "deleting"]
        if fresh:
            ec2.delete_vpc_endpoints(VpcEndpointIds=fresh)
        if not endpoints:
            break
        if left_s() < MARGIN_S:
            raise TimeoutError(f"GuardDuty's endpoint {endpoints[0]['VpcEndpointId']} is not deleted yet; try again")
        time.sleep(PAUSE_S)
    for group in ec2.describe_security_groups(Filters=[place, MANAGED])["SecurityGroups"]:
        ec2.delete_security_group(GroupId=group["GroupId"])


def answer(event: dict[str, Any], reason: str | None) -> None:
    """Put the outcome where CloudFormation waits for it."""
    body = {
        "Status": "FAILED" if reason else "SUCCESS",
        "Reason": reason or "done",
        "PhysicalResourceId": event.get("PhysicalResourceId") or event["ResourceProperties"]["VpcId"],
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
    }
    data, no_type = json.dumps(body).encode(), {"Content-Type": ""}
    request = urllib.request.Request(event["ResponseURL"], data, no_type, method="PUT")  # noqa: S310
    urllib.request.urlopen(request, timeout=60).close()  # noqa: S310
