"""Helm releases on EKS clusters: installed by their function where Kubernetes runs, else recorded."""

import contextlib
import json
import re
import socket
import threading
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from holdfast.localcloud.aws.cloudformation.resources.custom.calls import answered
from holdfast.localcloud.aws.cloudformation.resources.custom.functions import (
    cluster_of,
    reach_kubernetes,
    where_it_runs,
)
from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    LocalMachine,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
)
from holdfast.localcloud.kubernetes import addons, control
from holdfast_common import KubernetesClient, KubernetesError

SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"/[0-9a-f]{40}(?:[/.]|$)")
REACH_S = 5.0
"""For a name's address and a connection: slow on a machine without internet access."""


class HelmRelease(ResourceHandler):
    """
    A chart in a cluster.

    Release, namespace, chart, pin and values are attributes, for outputs and ``/_holdfast/releases``; "Skipped" names
    an archive that was not available.
    """

    type = "Custom::HoldfastHelmRelease"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        return self._installed(context, properties, None, None)

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        there = None if "Skipped" in made.attributes else made
        machine = where_it_runs(context, properties)
        if there is None and machine is not None and not _unreachable(properties["Archive"].get("Url", "")):
            _take_away(context, machine, old)  # helm takes over nothing that it has not made
        installed = self._installed(context, properties, there, old)
        if there is not None and installed.physical_id != made.physical_id:
            self.delete(context, made, old)  # another release, as CloudFormation takes another physical id
        return installed

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        machine = where_it_runs(context, properties)
        if machine is not None and "Skipped" in made.attributes:
            _take_away(context, machine, properties)
        elif machine is not None:
            answered(context, machine, kind=self.type, request="Delete", properties=properties, made=made)

    def _installed(
        self, context: ResourceContext, properties: Properties, made: Made | None, old: Properties | None
    ) -> Made:
        reach_kubernetes(context, properties)
        record, machine = self._made(properties), where_it_runs(context, properties)
        if machine is None:
            return record
        why = _unreachable(properties["Archive"].get("Url", ""))
        if why:
            stood_in = _stand_in(context, machine, properties)
            beside = "; what stands in for it here is" if stood_in else ""
            remark = (
                f"release {properties['Release']} is not installed{beside}: {why}; "
                "give its archive as eks.chart_archives"
            )
            return replace(record, attributes={**record.attributes, "Skipped": why}, remark=remark)
        physical_id = answered(
            context,
            machine,
            kind=self.type,
            request="Create" if made is None else "Update",
            properties=properties,
            made=made,
            old=None if made is None else old,
            expected=record.physical_id,
        )
        return replace(record, physical_id=physical_id or record.physical_id)

    def _made(self, properties: Properties) -> Made:
        missing = sorted({"Release", "Namespace", "Archive", "ChartPath", "TreeSha256"} - properties.keys())
        if missing:
            raise ResourceError(f"{self.type}: {', '.join(missing)} must be given")
        release, namespace, archive = properties["Release"], properties["Namespace"], properties["Archive"]
        if not SHA256.fullmatch(str(properties["TreeSha256"])):
            raise ResourceError(
                f"release {release}: TreeSha256 is '{properties['TreeSha256']}'; it must be the SHA-256 of the chart's "
                "files, 64 hexadecimal digits"
            )
        if "Url" in archive and not COMMIT.search(archive["Url"]):
            raise ResourceError(
                f"release {release}: {archive['Url']} is not pinned; name a commit of 40 hexadecimal digits, because "
                "branches and tags move"
            )
        if "Url" not in archive and not {"Bucket", "Key"} <= archive.keys():
            raise ResourceError(f"release {release}: Archive must have Url, or Bucket and Key")
        return Made(
            physical_id=f"{namespace}/{release}",
            attributes={
                "Release": release,
                "Namespace": namespace,
                "Archive": archive.get("Url") or f"s3://{archive['Bucket']}/{archive['Key']}",
                "ChartPath": properties["ChartPath"],
                "TreeSha256": properties["TreeSha256"],
                "Values": _values(release, properties.get("Values", "{}")),
            },
        )


def _stand_in(context: ResourceContext, machine: LocalMachine, properties: Properties) -> bool:
    objects = _objects(properties)
    place = _place(context, machine, properties) if objects else None
    if place is None:
        return False
    try:
        addons.install(place, objects, resolve_conflicts="OVERWRITE")
    except KubernetesError as error:
        raise ResourceError(f"release {properties['Release']}: what stands in for it is not made: {error}") from None
    return True


def _take_away(context: ResourceContext, machine: LocalMachine, properties: Properties) -> None:
    objects = _objects(properties)
    place = _place(context, machine, properties) if objects else None
    if place is not None:
        with contextlib.suppress(KubernetesError):  # with the cluster it is gone anyway
            addons.remove(place, objects)


def _place(context: ResourceContext, machine: LocalMachine, properties: Properties) -> KubernetesClient | None:
    cluster = cluster_of(context, properties)
    described = context.client("eks").describe_cluster(name=cluster)["cluster"]
    return control.administrator(machine.home / "kubernetes", described)


def _objects(properties: Properties) -> list[dict[str, Any]]:
    values = json.loads(_values(properties["Release"], properties.get("Values", "{}")))
    try:
        return addons.release_objects(properties["Release"], namespace=properties["Namespace"], values=values)
    except KeyError as error:
        raise ResourceError(f"release {properties['Release']}: no value {error}") from None


def _unreachable(url: str) -> str:
    if not url:
        return ""
    parts, reported = urlsplit(url), [f"no answer within {REACH_S:.0f} s"]

    def connect() -> None:
        try:
            socket.create_connection((parts.hostname or "", parts.port or 443), timeout=REACH_S).close()
            reported[0] = ""
        except OSError as error:
            reported[0] = error.strerror or str(error)

    asking = threading.Thread(target=connect, daemon=True)  # a name's address has no deadline of its own
    asking.start()
    asking.join(timeout=REACH_S)
    return f"{parts.hostname} is not reachable from here ({reported[0]})" if reported[0] else ""


def _values(release: str, given: Any) -> str:
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        raise ResourceError(f"release {release}: Values is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise ResourceError(f"release {release}: Values must be an object")
    return json.dumps(parsed, sort_keys=True)
