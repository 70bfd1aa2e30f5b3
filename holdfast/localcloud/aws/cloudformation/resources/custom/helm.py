"""Helm releases on EKS clusters: recorded, as nothing here runs Kubernetes."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

import json
import re
from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.custom.functions import reach_kubernetes
from holdfast.localcloud.aws.cloudformation.resources.handlers import Context, Handler, Made, Properties, ResourceError

SHA256 = re.compile(r"[0-9a-f]{64}")
COMMIT = re.compile(r"/[0-9a-f]{40}(?:[/.]|$)")


class HelmRelease(Handler):
    """
    A chart in a cluster, as Holdfast's installer function would install it.

    Release, namespace, chart, pin and values are attributes, so that outputs and ``/_holdfast/releases`` tell them.
    """

    type = "Custom::HoldfastHelmRelease"

    def create(self, context: Context, properties: Properties) -> Made:
        reach_kubernetes(context, properties)
        return self._made(properties)

    def update(self, context: Context, made: Made, properties: Properties, old: Properties) -> Made:
        reach_kubernetes(context, properties)
        return self._made(properties)

    def delete(self, context: Context, made: Made, properties: Properties) -> None:
        return None

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


def _values(release: str, given: Any) -> str:
    try:
        parsed = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        raise ResourceError(f"release {release}: Values is not JSON: {error}") from None
    if not isinstance(parsed, dict):
        raise ResourceError(f"release {release}: Values must be an object")
    return json.dumps(parsed, sort_keys=True)
