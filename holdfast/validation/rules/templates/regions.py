"""0xx: regions and partitions: which there are, and what is in them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.catalog.facts import (
    dns_suffix,
    has_type,
    hyperpod_regions,
    hyperpod_types,
    page_fact,
    partition_of,
    regions,
    regions_of,
    zone_ends,
)
from holdfast.validation.cloudformation import Node, Template, Text
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import (
    App,
    Cluster,
    Deployment,
    EnvironmentFile,
    Group,
    LustreFileSystem,
    UnresolvedError,
    body_path,
    text_of,
)
from holdfast.validation.rules.network import vpc_of
from holdfast_common import closest_word

REGIONS = "regions of botocore, resource types by region of cfn-lint"
CLUSTER = "AWS::SageMaker::Cluster"
_ARN = re.compile(r"^arn:(aws[a-z-]*):([a-z0-9-]+):([a-z0-9-]*):(\d{12}|aws|)?:?.*")
_ZONE = re.compile(r"(.+?)([a-z]|\d+)")
"""Name or id of a zone: its family and its end."""
_ENDPOINT = re.compile(r"^(?:cn\.)?com\.amazonaws\.([a-z]{2}(?:-[a-z]+)+-\d)\.[a-z0-9.-]+$")
_REGIONAL = {
    "kms",
    "secretsmanager",
    "ec2",
    "eks",
    "fsx",
    "ecr",
    "logs",
    "sns",
    "sqs",
    "ssm",
    "rds",
    "sagemaker",
    "aps",
    "dynamodb",
    "lambda",
    "elasticfilesystem",
    "acm",
    "backup",
    "grafana",
}


@dataclass(frozen=True)
class _Requirement:
    """Setting of an environment file that makes a resource of a type."""

    path: tuple[str, ...]
    unless: tuple[str, Any] | None = None
    """A key in it, and the value with which it makes none. Default: it always does."""

    def by(self, data: Any) -> bool:
        for part in self.path:
            data = data.get(part) if isinstance(data, Mapping) else None
        left_out = self.unless is not None and isinstance(data, Mapping) and data.get(self.unless[0]) == self.unless[1]
        return data not in (None, False, [], ()) and not left_out


_REQUIRED: Mapping[str, _Requirement] = {
    "AWS::Grafana::Workspace": _Requirement(("observability", "grafana")),
    "AWS::APS::Workspace": _Requirement(("observability", "prometheus")),
    "AWS::SageMaker::MlflowApp": _Requirement(("observability", "mlflow")),
    "AWS::SageMaker::ClusterSchedulerConfig": _Requirement(("eks", "task_governance"), unless=("policy", False)),
    "AWS::SageMaker::ComputeQuota": _Requirement(("eks", "task_governance", "teams")),
    "AWS::EKS::Cluster": _Requirement(("eks",)),
    "AWS::FSx::FileSystem": _Requirement(("storage", "lustre")),
    "AWS::FSx::DataRepositoryAssociation": _Requirement(("storage", "lustre", "datasets")),
    "AWS::RDS::DBInstance": _Requirement(("slurm", "accounting", "create")),
}
"""What settings of an environment file make, where not every region has it."""


@rule("HF030", title="Regions exist", each=(EnvironmentFile, App), source=REGIONS)
def region_exists(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """The name of a region is a direction and a number after a place; one letter off is another region or none."""
    if isinstance(item, EnvironmentFile):
        if deployment.region is not None and partition_of(deployment.region) is None:
            yield _no_region(deployment.at("region"), deployment.region)
        return
    for template in item.values.graph.templates:
        for path, region in (*item.zones(template), *_endpoint_regions(item, template)):
            if partition_of(region) is None:
                yield _no_region(path, region)


@rule(
    "HF031", title="HyperPod is available in the region", each=(EnvironmentFile, App), source=REGIONS, suppressible=True
)
def hyperpod_in_region(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """
    CloudFormation makes HyperPod clusters in some regions only. A region that is newer than the list can be accepted.
    """
    if isinstance(item, EnvironmentFile):
        if item.cloud == "aws" and deployment.region is not None and _lacks(CLUSTER, deployment.region):
            yield _not_there(deployment.at("region"), "HyperPod", deployment.region, CLUSTER)
        return
    for resource in item.values.graph.of_type(CLUSTER):
        region = item.region(resource.template)
        if region is not None and _lacks(CLUSTER, region):
            yield _not_there(f"{body_path(resource)}.Type", "HyperPod", region, CLUSTER)


@rule(
    "HF032", title="The instance types are available in the region", each=Deployment, source=REGIONS, suppressible=True
)
def types_in_region(deployment: Deployment, _: Deployment) -> Iterator[Broken]:
    """
    HyperPod has not every type everywhere. Within a region a zone may still lack it, or have none left: the account
    tells. A type that has come since the list was made can be accepted. Lists name no types of Local Zones, and a size
    whose family is in the region may have come since: neither is judged.
    """
    if deployment.file is not None and deployment.file.cloud != "aws":
        return
    region = region_of(deployment)
    if region is None:
        return
    there = hyperpod_types(region)
    if not there:
        if region in hyperpod_regions():
            raise UnresolvedError(deployment.at("region"))  # HyperPod is there, and no list tells with which types
        return
    cluster, unlisted = deployment.cluster, ""
    families = {each.rpartition(".")[0] for each in there}
    for group in (*cluster.instance_groups, *cluster.restricted_groups):
        for name in group.types:
            others = [each for each in hyperpod_regions() if name in hyperpod_types(each)]
            if name in there or not others:
                continue
            if name.rpartition(".")[0] in families or _in_local_zone(group, cluster, region):
                unlisted = group.at("instance_type")
                continue
            yield refused(
                group.at("instance_type"),
                f"{name} in {region}",
                allowed="types that the region has",
                fix=f"take another type, or one of these regions: {', '.join(others)}",
            )
    if unlisted:
        raise UnresolvedError(unlisted)


def _in_local_zone(group: Group, cluster: Cluster, region: str) -> bool:
    vpc = vpc_of(group, cluster)
    zones = [each.availability_zone for each in vpc.subnets] if vpc is not None else []
    return any(isinstance(zone, str) and zone.startswith(f"{region}-") for zone in zones)


@rule(
    "HF033",
    title="The services used are available in the region",
    each=(EnvironmentFile, App),
    source=REGIONS,
    suppressible=True,
)
def services_in_region(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """
    CloudFormation refuses a template with a resource type that the region lacks: "Unrecognized resource types". What
    has come since the list was made can be accepted.
    """
    if isinstance(item, EnvironmentFile):
        if item.cloud == "aws" and deployment.region is not None:
            yield from _required(item, deployment.region)
        return
    for resource in item.all():
        region = item.region(resource.template)
        if region is not None and resource.type != CLUSTER and _lacks(resource.type, region):
            yield _not_there(f"{body_path(resource)}.Type", resource.type, region, resource.type)


@rule(
    "HF034",
    title="ARNs and service principals belong to the region's partition",
    each=(EnvironmentFile, App),
    source="IAM user guide, 'Amazon Resource Names (ARNs)': partitions aws, aws-cn, aws-us-gov",
)
def partitions(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """
    China and GovCloud are partitions of their own: their ARNs begin with arn:aws-cn and arn:aws-us-gov, and in China
    addresses end with amazonaws.com.cn. An ARN whose partition and region do not belong together names nothing.
    """
    for path, text, region in _texts(item, deployment):
        match = _ARN.match(text)
        if match is None:
            continue
        partition, _, there, _ = match.groups()
        expected = partition_of(there) if there else partition_of(region) if region else None
        if expected is not None and partition != expected:
            yield refused(
                path,
                f"{show(text[:80])} of partition {partition}",
                allowed=f"partition {expected}, that of {there or region}",
                fix=f"write arn:{expected}:" if isinstance(item, EnvironmentFile) else "write arn:${AWS::Partition}:",
            )
    if isinstance(item, App):
        yield from _addresses(item)
        yield from _chinese_services(item)


@rule(
    "HF035",
    title="Resources named by ARN are in the region of the deployment",
    each=(EnvironmentFile, App),
    source="IAM user guide, 'Amazon Resource Names (ARNs)'; each service's page: a resource is used in its region",
)
def region_of_arns(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[Broken]:
    """
    Keys, secrets, file systems, clusters and training plans are of one region. Those of another cannot be used, though
    their ARN has the right form.
    """
    for path, text, region in _texts(item, deployment):
        match = _ARN.match(text)
        if match is None or region is None or match[2] not in _REGIONAL or "*" in text:
            continue
        name = path.rpartition(".")[2]
        if match[3] and match[3] != region and name not in _REPORTED_ELSEWHERE and ".Policy" not in path:
            yield refused(
                path,
                f"{match[2]} of region {match[3]}",
                allowed=f"one of {region}, where it is used",
                fix=f"name one of {region}",
            )


@rule(
    "HF036",
    title="A template names zones and services of one region only",
    each=App,
    source="EC2 user guide, 'Regions and zones'; VPC user guide, 'Interface endpoints': service names hold the region",
)
def one_region(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Zones and endpoint services hold the name of their region. Two regions in one template are two that cannot both be
    the one it is deployed in.
    """
    for template in app.values.graph.templates:
        zones = list(app.zones(template))
        own = template.region or (zones[0][1] if zones else None)
        for path, region in (*zones, *_endpoint_regions(app, template), *app.named_regions(template)):
            own = own or region
            known = template.region is not None and path in {zone for zone, _ in zones}
            if region != own and partition_of(region) is not None and not known:
                yield refused(
                    path, f"a name of region {region}", allowed=f"one of {own}", fix=f"write {own}, or !Ref AWS::Region"
                )


@rule(
    "HF037",
    title="Availability Zones exist in the region",
    each=(EnvironmentFile, App),
    source="EC2 user guide, 'Regions and zones'; zones as moto carries them",
    suppressible=True,
)
def zones_exist(item: EnvironmentFile | App, _: Deployment) -> Iterator[Broken]:
    """
    A region has two to six zones, from the letter a and the id 1 on. Which of them an account sees differs. The zone
    after the last one may have come since the list was made, and Local and Wavelength Zones are not in it: these are
    not checked.
    """
    unknown = []
    for path, zone in _zones_in(item):
        match = _ZONE.fullmatch(zone)
        if match is None:
            continue
        family, end = match.groups()
        known = zone_ends(family)
        beyond = _rank(end) - _rank(known[-1]) if known else 0
        if beyond > 1 or (known and end.startswith("0")):
            last = f"{family}{known[-1]}"
            yield refused(path, zone, allowed=f"{family}{known[0]} to {last}", fix=f"write {last}")
        elif beyond == 1 or (not known and _is_in_a_known_region(zone)):
            unknown.append((path, zone))
    if unknown:
        path, zone = unknown[0]
        raise UnresolvedError(path, why=f"{zone} is not in this version's list of zones")


def _zones_in(item: EnvironmentFile | App) -> Iterator[tuple[str, str]]:
    if isinstance(item, App):
        for subnet, node in item.each("AWS::EC2::Subnet"):
            for name in ("AvailabilityZone", "AvailabilityZoneId"):
                if isinstance(zone := node.get(name).value, str):
                    yield f"{subnet.path}.{name}", zone
        return
    network = item.data.get("network")
    if item.cloud != "aws" or not isinstance(network, Mapping):
        return
    for name in ("availability_zone", "control_plane_availability_zone"):
        for setting in (name, f"{name}_id"):
            if isinstance(zone := network.get(setting), str):
                yield f"network.{setting}", zone
    if item.is_known("further_zones"):
        for index, zone in enumerate(item.further_zones):
            yield f"{item.at('further_zones')}.{index}", zone


def _rank(end: str) -> int:
    return int(end) if end.isdigit() else ord(end)


def _is_in_a_known_region(zone: str) -> bool:
    match = re.match(r"([a-z]{2}(?:-[a-z]+)+-\d)-|([a-z]{2,5}\d)-", zone)
    return match is not None and zone_ends(match[1] or f"{match[2]}-az") != ""


@rule(
    "HF038",
    title="The file system's deployment type is available in the region",
    each=(LustreFileSystem,),
    source="FSx for Lustre user guide, 'Deployment type availability'",
    suppressible=True,
)
def deployment_type_in_region(lustre: LustreFileSystem, deployment: Deployment) -> Iterator[Broken]:
    """
    PERSISTENT_2 is in about half of all regions; in some of them without EFA and with at most 250 MB/s per TiB. A
    region that has got it since can be accepted.
    """
    region = region_of(deployment)
    if region is None or lustre.deployment_type != "PERSISTENT_2" or partition_of(region) != "aws":
        return
    if deployment.file is not None and deployment.file.cloud != "aws":
        return
    there = page_fact("persistent_2_regions")
    if region not in there["all"] and region not in there["without_efa"]:
        yield refused(
            lustre.at("deployment_type") if "deployment_type" in lustre.places else lustre.path,
            f"PERSISTENT_2 in {region}, which does not have it",
            allowed=f"regions that do: {', '.join(there['all'])}",
            fix="take another region, or a file system of another deployment type",
        )
    elif region in there["without_efa"] and (lustre.efa or (lustre.throughput_mbps_per_tib or 0) > 250):
        yield refused(
            lustre.at("efa"),
            f"EFA or more than 250 MB/s per TiB in {region}",
            allowed="PERSISTENT_2 with 125 or 250 MB/s per TiB and without EFA there",
            fix="take 250 MB/s per TiB without EFA, or another region",
        )


_REPORTED_ELSEWHERE = {"training_plan_arn", "TrainingPlanArn", "kms_key", "volume_kms_key", "root_volume_kms_key"}
"""Properties that a rule of their own judges."""


def region_of(deployment: Deployment) -> str | None:
    """Region of a deployment, as given or by its zones."""
    if deployment.region is not None or deployment.app is None:
        return deployment.region
    cluster = next(
        (each for each in deployment.app.values.graph.of_type(CLUSTER) if each.path == deployment.path), None
    )
    return None if cluster is None else deployment.app.region(cluster.template)


def texts_in(data: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Texts in plain data, with dotted paths."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from texts_in(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from texts_in(value, f"{path}.{index}")


def _texts(item: EnvironmentFile | App, deployment: Deployment) -> Iterator[tuple[str, str, str | None]]:
    if isinstance(item, EnvironmentFile):
        for path, text in texts_in(item.data):
            yield path, text, deployment.region
        return
    for resource in item.all():
        region = item.region(resource.template)
        for leaf in item.leaves(resource):
            known = leaf.value if isinstance(leaf.value, str) else _start(leaf)
            if known is not None:
                yield leaf.path, known, region


def _start(leaf: Node) -> str | None:
    """Known start of a text, long enough to hold a region; else empty."""
    if not isinstance(leaf.value, Text):
        return None
    start = leaf.value.start
    return f"{start}*" if start.startswith("arn:") and start.count(":") >= 3 else None


def _addresses(app: App) -> Iterator[Broken]:
    for resource in app.all():
        region = app.region(resource.template)
        partition = partition_of(region) if region else None
        if partition is None:
            continue
        suffix = dns_suffix(partition)
        for leaf in app.leaves(resource):
            text = text_of(leaf.value)
            if text is None or ".amazonaws.com" not in text or "${" in text:
                continue
            host = re.split(r"[/:]", text.removeprefix("https://"))[0]
            wrong = (
                host.endswith(".amazonaws.com.cn")
                if suffix == "amazonaws.com"
                else (host.endswith(".amazonaws.com") and not re.fullmatch(r"[a-z0-9.-]+\.amazonaws\.com", host))
            )
            if wrong:
                yield refused(leaf.path, show(text), allowed=f"addresses that end with {suffix}", fix=f"write {suffix}")


def _chinese_services(app: App) -> Iterator[Broken]:
    for _endpoint, node in app.each("AWS::EC2::VPCEndpoint"):
        service = node.get("ServiceName")
        text = text_of(service.value) or ""
        match = re.match(r"cn\.com\.amazonaws\.([a-z0-9-]+)\.", text)
        if match and partition_of(match[1]) not in ("aws-cn", None):
            yield refused(service.path, show(text), allowed=f"com.amazonaws.{match[1]}.SERVICE", fix="remove cn.")


def _endpoint_regions(app: App, template: Template) -> Iterator[tuple[str, str]]:
    for resource, node in app.each("AWS::EC2::VPCEndpoint"):
        if resource.template is template and not node.get("ServiceRegion").present:
            service = node.get("ServiceName")
            match = _ENDPOINT.match(service.value) if isinstance(service.value, str) else None
            if match:
                yield service.path, match[1]


def _lacks(kind: str, region: str) -> bool:
    return partition_of(region) in ("aws", "aws-cn", "aws-us-gov") and (
        has_type(kind, region) is False or (has_type(kind, region) is None and kind == CLUSTER)
    )


def _required(file: EnvironmentFile, region: str) -> Iterator[Broken]:
    for kind, expected in _REQUIRED.items():
        path = ".".join(expected.path)
        if expected.by(file.data) and _lacks(kind, region):
            without = "" if expected.unless is None else f"write {expected.unless[0]}: false, "
            yield _not_there(path, f"{path} ({kind})", region, kind, without=without)


def _not_there(path: str, what: str, region: str, kind: str, *, without: str = "") -> Broken:
    there = [each for each in regions_of(kind) if partition_of(each) == partition_of(region)] or list(regions_of(kind))
    near = [each for each in there if each.split("-")[0] == region.split("-")[0]] or there
    return refused(
        path,
        f"{what} in {region}",
        allowed=f"regions that have it: {', '.join(there)}",
        fix=f"{without}take {', '.join(near[:4])}, or leave it out",
    )


def _no_region(path: str, region: str) -> Broken:
    meant = closest_word(region, regions())
    return refused(
        path,
        f"region {region}, which does not exist",
        allowed="AWS's regions, such as us-west-2",
        fix=f"did you mean {meant}?" if meant else "write the region's code, as the console's menu shows it",
    )
