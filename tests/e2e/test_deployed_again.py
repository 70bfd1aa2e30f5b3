"""
First deployments without capacity; and deploy, delete, deploy again with ``on_delete: Retain``: data, logs and their
network stay, nothing of them is in the way, and the second deployment continues the logs.

Sources: CloudFormation template reference, "DeletionPolicy attribute"; user guide, "Import AWS resources into a
CloudFormation stack automatically".
"""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployments import NAMES, ROOT, Cloud, document, synthesise
from inventory import inventory

from holdfast.localcloud.aws import serve

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ON_AWS = [name for name in NAMES if not name.startswith("local")]


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with serve(home=tmp_path_factory.mktemp("again") / "cloud", hyperpod="simulated", skip_waits=True) as aws:
        made = Cloud(aws.client_arguments)
        yield made
        made.close()


@pytest.mark.parametrize("name", ON_AWS)
def test_what_was_deleted_is_deployed_again(name: str, account: Cloud, tmp_path: Path) -> None:
    shipped = yaml.safe_load((ROOT / "environments" / f"{name}.yaml").read_text())
    cloud = account.at(shipped["region"])
    stack, template = synthesise(document(name, cloud, stack=f"again-{name}", on_delete="Retain"), cloud, tmp_path)

    first = changed(cloud, stack, template)
    assert first == "CREATE_COMPLETE", cloud.why(stack)
    gone = cloud.delete(stack)
    assert gone["StackStatus"] == "DELETE_COMPLETE", cloud.why(gone["StackId"])
    left = inventory(cloud)
    refused = changed(cloud, stack, template)
    second = changed(cloud, stack, template, ImportExistingResources=True)
    why = cloud.why(stack)
    events = {
        event["LogicalResourceId"]
        for page in cloud.of("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack)
        for event in page["StackEvents"]
        if event["ResourceStatus"] == "IMPORT_COMPLETE"
    }

    assert second == "CREATE_COMPLETE", why
    assert "[AWS::EarlyValidation::ResourceExistenceCheck]" in refused
    assert events == named_groups(template)
    assert not {line for line in left if f"again-{name}" in line and line.startswith(("eks ", "sagemaker "))}


def test_what_runs_on_nodes_is_installed_by_a_second_deployment(account: Cloud, tmp_path: Path) -> None:
    found = document("eks-p5", account, stack="later")
    addons, outputs = [], []
    for install in (False, True):
        found["eks"]["install_on_nodes"] = install
        (tmp_path / str(install)).mkdir()
        stack, template = synthesise(found, account, tmp_path / str(install))
        made = account.update(stack, template) if install else account.create(stack, template)
        addons.append(set(account.of("eks").list_addons(clusterName="later")["addons"]))
        outputs.append({output["OutputKey"] for output in made["Outputs"]})
        assert made["StackStatus"] == ("UPDATE_COMPLETE" if install else "CREATE_COMPLETE"), account.why(stack)

    assert addons[0] == {"eks-pod-identity-agent", "kube-proxy", "vpc-cni"}
    assert {"coredns", "aws-fsx-csi-driver", *addons[0]} < addons[1]
    assert outputs[0] - outputs[1] == {"NotInstalled"}


@pytest.mark.parametrize(("install", "status"), [(False, "CREATE_COMPLETE"), (True, "ROLLBACK_COMPLETE")])
def test_a_deployment_without_capacity_rolls_back_unless_it_installs_nothing_on_nodes(
    install: bool, status: str, account: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.localcloud.aws.sagemaker.clusters.PROVISIONING", timedelta(days=1))
    found = document("eks-p5", account, stack=f"scarce-{install}".lower())
    found["eks"]["install_on_nodes"] = install
    stack, template = synthesise(found, account, tmp_path)

    made = account.create(stack, template)
    account.delete(stack)

    assert made["StackStatus"] == status
    assert bool([line for line in account.why(made["StackId"]) if "no node of HyperPod cluster" in line]) is install


def changed(cloud: Cloud, stack: str, template: dict[str, Any], **more: Any) -> str:
    """The stack's status after a change set of it, as the CDK CLI makes one; or why the change set failed."""
    client, named = cloud.of("cloudformation"), {"StackName": stack, "ChangeSetName": "cdk-deploy"}
    key = f"{stack}.template.json"
    cloud.of("s3").put_object(Bucket=cloud.bucket, Key=key, Body=json.dumps(template).encode())
    client.create_change_set(
        **named,
        ChangeSetType="CREATE",
        TemplateURL=f"https://{cloud.bucket}.s3.{cloud.region}.amazonaws.com/{key}",
        Capabilities=["CAPABILITY_IAM"],
        **more,
    )
    made = client.describe_change_set(**named)
    if made["Status"] == "FAILED":
        client.delete_change_set(**named)
        return str(made["StatusReason"])
    client.execute_change_set(**named)
    return str(cloud.settled(stack)["StackStatus"])


def named_groups(template: dict[str, Any]) -> set[str]:
    """The log groups that outlive the stack under a name that the next one takes."""
    return {
        key
        for key, definition in template["Resources"].items()
        if definition["Type"] == "AWS::Logs::LogGroup"
        and definition.get("DeletionPolicy") == "RetainExceptOnCreate"
        and isinstance(definition["Properties"].get("LogGroupName"), str)
    }
