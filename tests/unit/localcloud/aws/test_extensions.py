"""Extensions of clusters under Slurm."""

import json
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.localcloud.aws.common import ServiceError
from holdfast.localcloud.aws.sagemaker.records import Extensions

ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghij12"
NAME = "sagemaker-observability"


@dataclass
class Cluster:
    name: str = "lab"
    nodes: dict[str, None] = field(default_factory=lambda: {"i-1": None, "i-2": None})
    settings: dict[str, Any] = field(
        default_factory=lambda: {"NodeProvisioningMode": "Continuous", "Orchestrator": {"Slurm": {}}}
    )


class Clusters:
    def __init__(self) -> None:
        self.lock, self.only = threading.RLock(), Cluster()

    def find(self, _: str) -> Cluster:
        return self.only


@pytest.fixture
def clusters() -> Clusters:
    return Clusters()


@pytest.fixture
def extensions(clusters: Clusters) -> Extensions:
    return Extensions(account="123456789012", region="us-west-2", clusters=clusters)  # type: ignore[arg-type]


def refusal(call: Any, **arguments: Any) -> str:
    with pytest.raises(ServiceError) as caught:
        call(**arguments)
    return f"{caught.value.code}: {caught.value}"


def test_an_extension_is_created_once_and_described_with_its_nodes(extensions: Extensions) -> None:
    arn = extensions.create_cluster_extension(ClusterArn=ARN, ExtensionName=NAME, ClientToken="t")["ExtensionArn"]
    again = extensions.create_cluster_extension(ClusterArn=ARN, ExtensionName=NAME, ClientToken="t")
    described = extensions.describe_cluster_extension(ClusterArn=ARN, ExtensionArn=arn)

    assert again == {"ExtensionArn": arn}
    assert described["ExtensionDetails"]["ExtensionVersion"] == "1.0.0"
    assert described["NodeSummary"]["TotalCount"] == 2
    listed = extensions.list_cluster_extensions(ClusterArn=ARN)["Extensions"]
    assert [each["ExtensionName"] for each in listed] == [NAME]
    assert "ResourceInUse" in refusal(extensions.create_cluster_extension, ClusterArn=ARN, ExtensionName=NAME)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"NodeProvisioningMode": None}, "not Continuous"),
        ({"Orchestrator": {"Eks": {}}}, "not orchestrated by Slurm"),
    ],
)
def test_a_cluster_that_takes_no_extensions_refuses_them(
    extensions: Extensions, clusters: Clusters, changed: dict[str, Any], message: str
) -> None:
    clusters.only.settings |= changed
    assert message in refusal(extensions.create_cluster_extension, ClusterArn=ARN, ExtensionName=NAME)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ConfigurationValues": "level: ADVANCED"}, "JSON object"),
        ({"ConfigurationValues": "[]"}, "JSON object"),
        ({"ExtensionVersion": "9.9.9"}, "9.9.9"),
    ],
)
def test_a_configuration_or_version_that_is_not_offered_is_refused(
    extensions: Extensions, arguments: dict[str, str], message: str
) -> None:
    assert message in refusal(extensions.create_cluster_extension, ClusterArn=ARN, ExtensionName=NAME, **arguments)


def test_an_update_changes_what_it_names_and_null_removes(extensions: Extensions) -> None:
    before = {"prometheus": {"remoteWriteUrl": "https://x"}, "metricsProvider": {"nodeMetrics": {"level": "BASIC"}}}
    arn = extensions.create_cluster_extension(
        ClusterArn=ARN, ExtensionName=NAME, ConfigurationValues=json.dumps(before)
    )["ExtensionArn"]
    changes = {"prometheus": None, "metricsProvider": {"ncclMetrics": {"level": "ENABLED"}}}
    extensions.update_cluster_extension(ClusterArn=ARN, ExtensionArn=arn, ConfigurationValues=json.dumps(changes))
    details = extensions.describe_cluster_extension(ClusterArn=ARN, ExtensionArn=arn)["ExtensionDetails"]

    assert json.loads(details["ConfigurationValues"]) == {
        "metricsProvider": {"nodeMetrics": {"level": "BASIC"}, "ncclMetrics": {"level": "ENABLED"}}
    }


def test_an_extension_of_another_cluster_is_not_found(extensions: Extensions) -> None:
    arn = extensions.create_cluster_extension(ClusterArn=ARN, ExtensionName=NAME)["ExtensionArn"]
    other = ARN.replace("abc", "xyz")
    assert "ResourceNotFound" in refusal(extensions.describe_cluster_extension, ClusterArn=other, ExtensionArn=arn)
