"""
Extensions of clusters under Slurm. Records only: nothing is installed on the nodes.

Source: SageMaker API reference, CreateClusterExtension to UpdateClusterExtension. Words of errors are assumed.
"""

# ruff: noqa: N803 - arguments bear the names of the API members

import copy
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.localcloud.aws.common import Record, RecordStore, ServiceError, between, now, page, tag_dict
from holdfast.localcloud.aws.sagemaker.clusters import HyperPodClusters
from holdfast.localcloud.aws.sagemaker.store import new_id

VERSIONS: Mapping[str, tuple[str, ...]] = {"sagemaker-observability": ("1.0.0",)}
"""By extension, the highest first. Assumed: the API reference names one of each as an example."""
STATUS = {"CREATING": "Creating", "UPDATING": "Updating", "DELETING": "Deleting"}


def _missing(key: Any) -> ServiceError:
    return ServiceError("ResourceNotFound", f"Could not find the extension {key}.")


class Extensions:
    def __init__(self, *, account: str, region: str, clusters: HyperPodClusters) -> None:
        self.records = RecordStore(_missing)
        self._account, self._region, self._clusters = account, region, clusters

    def create_cluster_extension(
        self,
        *,
        ClusterArn: str,
        ExtensionName: str,
        ExtensionVersion: str = "",
        ConfigurationValues: str = "{}",
        Tags: list[dict[str, str]] | None = None,
        ClientToken: str = "",
    ) -> dict[str, Any]:
        version, settings = _version(ExtensionName, ExtensionVersion), _settings(ConfigurationValues)
        with self._clusters.lock:
            self._check_takes_extensions(ClusterArn)
            contents = (each.content for each in self._of(ClusterArn))
            there = next((each for each in contents if each["ExtensionName"] == ExtensionName), None)
            if there is not None:
                if ClientToken and there["ClientToken"] == ClientToken:
                    return {"ExtensionArn": there["ExtensionArn"]}
                raise ServiceError("ResourceInUse", f"The cluster already has the extension {ExtensionName}.")
            cluster = ClusterArn.rpartition("/")[2]
            owner = f"arn:aws:sagemaker:{self._region}:{self._account}:extension/sagemaker-{cluster}"
            arn = f"{owner}/{ExtensionName}/{new_id()}"
            moment = now()
            content = {
                "ExtensionArn": arn,
                "ClusterArn": ClusterArn,
                "ExtensionName": ExtensionName,
                "ExtensionVersion": version,
                "ConfigurationValues": json.dumps(settings),
                "CreationTime": moment,
                "LastModifiedTime": moment,
                "ClientToken": ClientToken,
                "Tags": tag_dict(Tags),
            }
            self.records.add(arn, content)
            return {"ExtensionArn": arn}

    def describe_cluster_extension(self, *, ClusterArn: str, ExtensionArn: str) -> dict[str, Any]:
        with self._clusters.lock:
            record = self._find(ClusterArn, ExtensionArn)
            nodes = len(self._clusters.find(ClusterArn).nodes)
            return {
                "ExtensionDetails": _shown(record),
                "NodeSummary": {"TotalCount": nodes, "ActiveCount": 0 if record.busy else nodes},
                "Health": {"Issues": []},
            }

    def list_cluster_extensions(
        self,
        *,
        ClusterArn: str,
        CreationTimeAfter: datetime | None = None,
        CreationTimeBefore: datetime | None = None,
        MaxResults: int | None = None,
        NextToken: str | None = None,
    ) -> dict[str, Any]:
        left_out = {"ClusterArn", "ConfigurationValues", "LastModifiedTime"}
        with self._clusters.lock:
            self._clusters.find(ClusterArn)
            listed = [
                {key: value for key, value in each.items() if key not in left_out}
                for each in map(_shown, self._of(ClusterArn))
                if between(each["CreationTime"], CreationTimeAfter, CreationTimeBefore)
            ]
        shown, more = page(listed, size=MaxResults, token=NextToken)
        return {"Extensions": shown, **more}

    def list_cluster_extension_versions(
        self, *, ExtensionName: str, MaxResults: int | None = None, NextToken: str | None = None
    ) -> dict[str, Any]:
        found = [{"ExtensionVersion": version} for version in VERSIONS.get(ExtensionName, ())]
        shown, more = page(found, size=MaxResults, token=NextToken)
        return {"ExtensionVersions": shown, **more}

    def update_cluster_extension(
        self,
        *,
        ClusterArn: str,
        ExtensionArn: str,
        ExtensionVersion: str = "",
        ConfigurationValues: str = "{}",
        ClientToken: str = "",  # noqa: ARG002 - the same update again changes nothing
    ) -> dict[str, Any]:
        changes = _settings(ConfigurationValues)
        with self._clusters.lock:
            record = self._find(ClusterArn, ExtensionArn)
            if record.leaving:
                raise ServiceError("ConflictException", f"The extension {ExtensionArn} is being deleted.")
            content = record.content
            version = _version(content["ExtensionName"], ExtensionVersion or content["ExtensionVersion"])
            settings = _changed(json.loads(content["ConfigurationValues"]), changes)
            content |= {
                "ExtensionVersion": version,
                "ConfigurationValues": json.dumps(settings),
                "LastModifiedTime": now(),
            }
            record.begin("UPDATING")
            return {"ExtensionArn": ExtensionArn}

    def delete_cluster_extension(self, *, ClusterArn: str, ExtensionArn: str) -> dict[str, Any]:
        with self._clusters.lock:
            self._find(ClusterArn, ExtensionArn).begin("DELETING")
            return {"ExtensionArn": ExtensionArn}

    def _check_takes_extensions(self, cluster_arn: str) -> None:
        cluster = self._clusters.find(cluster_arn)
        if "Slurm" not in cluster.settings.get("Orchestrator", {}):
            raise ServiceError("ValidationException", f"Cluster {cluster.name} is not orchestrated by Slurm.")
        if cluster.settings.get("NodeProvisioningMode") != "Continuous":
            raise ServiceError("ValidationException", f"NodeProvisioningMode of {cluster.name} is not Continuous.")

    def _find(self, cluster_arn: str, extension_arn: str) -> Record:
        record = self.records.get(extension_arn)
        if record.content["ClusterArn"] != cluster_arn:
            raise _missing(extension_arn)
        return record

    def _of(self, cluster_arn: str) -> list[Record]:
        return [each for each in self.records.values() if each.content["ClusterArn"] == cluster_arn]


def _version(name: str, given: str) -> str:
    known = VERSIONS.get(name, ())
    if not known or given not in ("", *known):
        raise ServiceError("ValidationException", f"Extension {name} {given or 'of any version'} is not offered.")
    return given or known[0]


def _settings(text: str) -> dict[str, Any]:
    try:
        settings = json.loads(text)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise ServiceError("ValidationException", "ConfigurationValues is not a JSON object.")
    return settings


def _changed(settings: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with changes; null removes one, and what is left out stays."""
    result = dict(settings)
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = _changed(result[name], value)
        else:
            result[name] = value
    return result


def _shown(record: Record) -> dict[str, Any]:
    content = {key: value for key, value in copy.deepcopy(record.content).items() if key not in ("Tags", "ClientToken")}
    return {**content, "Status": STATUS.get(record.status(settled=""), "Active")}
