"""6xx: attributes that properties take, and links of file systems."""

from collections.abc import Iterator
from typing import Any

from holdfast.validation.cloudformation import Node, Reference, Resource
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment, text_of
from holdfast.validation.rules.storage.names import ASSOCIATION, FILE_SYSTEM
from holdfast.validation.rules.storage.volumes import has_plain_parts

_ATTRIBUTES = {
    ("FsxLustreConfig", "DnsName"): (FILE_SYSTEM, "DNSName", "the DNS name of a file system"),
    ("FsxLustreConfig", "MountName"): (FILE_SYSTEM, "LustreMountName", "the mount name of a Lustre file system"),
    ("FsxOpenZfsConfig", "DnsName"): (FILE_SYSTEM, "DNSName", "the DNS name of a file system"),
    ("AccountingDatabase", "Endpoint"): ("AWS::RDS::DBInstance", "Endpoint.Address", "the address of a database"),
    ("AccountingDatabase", "SecretArn"): ("AWS::SecretsManager::Secret", "Ref", "the ARN of a secret"),
    ("Eks", "ClusterArn"): ("AWS::EKS::Cluster", "Arn", "the ARN of an EKS cluster"),
    ("LinkOfData", "FileSystemId"): (FILE_SYSTEM, "Ref", "the id of a file system"),
}
_KINDS_OF_MOUNTS = {"FsxLustreConfig": "LUSTRE", "FsxOpenZfsConfig": "OPENZFS"}


@rule(
    "HF651",
    title="Attributes are the ones that mounts, slurmdbd and HyperPod need",
    each=App,
    source="CloudFormation reference, 'Return values' of AWS::FSx::FileSystem, AWS::RDS::DBInstance, AWS::EKS::Cluster",
)
def attributes(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Nodes mount by DNS name and mount name, not by id; slurmdbd takes the address of its database, not its name or port;
    HyperPod takes the ARN of an EKS cluster, not its name.
    """
    for cluster, properties in app.each("AWS::SageMaker::Cluster"):
        orchestrator = properties.get("Orchestrator")
        places = [
            (("AccountingDatabase", name), orchestrator.get("Slurm", "AccountingDatabase", name))
            for name in ("Endpoint", "SecretArn")
        ]
        places.append((("Eks", "ClusterArn"), orchestrator.get("Eks", "ClusterArn")))
        for group in properties.get("InstanceGroups").items() or ():
            for config in group.get("InstanceStorageConfigs").items() or ():
                for kind in ("FsxLustreConfig", "FsxOpenZfsConfig"):
                    for name in ("DnsName", "MountName"):
                        places += [((kind, name), config.get(kind, name))] * ((kind, name) in _ATTRIBUTES)
                yield from _one_file_system(app, config.get("FsxLustreConfig"))
        for key, node in places:
            yield from _attribute(key, node)
        yield from _database_port(app, cluster, properties)
        for group in properties.get("InstanceGroups").items() or ():
            capacity = group.get("CapacityRequirements")
            if {"Spot", "OnDemand"} <= set(capacity.keys() or ()):
                yield refused(
                    capacity.path, "Spot and OnDemand", allowed="one of the two", fix="remove the one that is not meant"
                )
    for _association, node in app.each(ASSOCIATION):
        yield from _attribute(("LinkOfData", "FileSystemId"), node.get("FileSystemId"))
        linked = node.get("FileSystemId").resource(FILE_SYSTEM)
        made = app.node(linked).get("FileSystemType").text() if linked is not None else None
        if linked is not None and isinstance(made, str) and made != "LUSTRE":
            yield refused(
                node.get("FileSystemId").path,
                f"{linked.logical_id}, a file system of type {made}",
                allowed="a file system of type LUSTRE",
                fix="name a Lustre file system",
            )
    for file_system, node in app.each(FILE_SYSTEM):
        metadata = node.get("LustreConfiguration", "MetadataConfiguration")
        if metadata.get("Mode").value == "AUTOMATIC" and metadata.get("Iops").present:
            yield refused(
                f"{metadata.path}.Iops",
                f"Iops with the mode AUTOMATIC on {file_system.logical_id}",
                allowed="Iops with USER_PROVISIONED",
                fix="remove Iops, or write Mode: USER_PROVISIONED",
            )
    for quota, node in app.each("AWS::SageMaker::ComputeQuota", "AWS::SageMaker::ClusterSchedulerConfig"):
        arn = node.get("ClusterArn")
        if isinstance(arn.value, Reference) and arn.value.resource.type == "AWS::EKS::Cluster":
            yield refused(
                arn.path,
                f"the ARN of an EKS cluster in {quota.logical_id}",
                allowed="that of the HyperPod cluster",
                fix="write Fn::GetAtt of the HyperPod cluster's ClusterArn",
            )


@rule(
    "HF652",
    title="Data repository associations have an S3 path and a file system that takes them",
    each=App,
    source="FSx API reference, CreateDataRepositoryAssociation",
)
def data_repository_associations(app: App, _: Deployment) -> Iterator[Broken]:
    """
    DataRepositoryPath is s3://bucket/prefix. A data repository association is on a file system of type PERSISTENT_2 or
    SCRATCH_2 with Lustre 2.12 or newer, and with neither ImportPath nor ExportPath. The bucket is in the file system's
    region.
    """
    for association, node in app.each(ASSOCIATION):
        path = node.get("DataRepositoryPath")
        if isinstance(path.value, Reference):
            yield refused(
                path.path,
                f"{path.value.resource.logical_id}, which is no S3 URI",
                allowed="s3://bucket/prefix",
                fix="write !Sub s3://${Bucket}/prefix",
            )
        folder = text_of(node.get("FileSystemPath").value)
        if folder is not None and not folder.startswith(("/", "${")):
            yield refused(
                f"{association.path}.FileSystemPath", show(folder), allowed="a path from /", fix=f"write /{folder}"
            )
        elif folder is not None and "${" not in folder and not has_plain_parts(folder):
            yield refused(
                f"{association.path}.FileSystemPath",
                show(folder),
                allowed="a path without '//', '.' and '..'",
                fix="write the path of the folder itself, such as /data",
            )


def _attribute(key: tuple[str, str], node: Node) -> Iterator[Broken]:
    kind, attribute, what = _ATTRIBUTES[key]
    if not isinstance(node.value, Reference):
        return
    resource, given = node.value.resource, node.value.attribute
    if resource.type == FILE_SYSTEM and key[0] in _KINDS_OF_MOUNTS:
        found = resource.body.get("Properties", {}).get("FileSystemType")
        if isinstance(found, str) and found != _KINDS_OF_MOUNTS[key[0]]:
            yield refused(
                node.path,
                f"{resource.logical_id}, a file system of type {found}",
                allowed=f"one of type {_KINDS_OF_MOUNTS[key[0]]} in {key[0]}",
                fix="name a file system of that type, or use the configuration of the other",
            )
            return
    if resource.type.startswith("Custom::") or resource.type in (
        "AWS::CloudFormation::Stack",
        "AWS::CloudFormation::CustomResource",
    ):
        return
    written = f"Ref {resource.logical_id}" if given == "Ref" else f"{resource.logical_id}.{given}"
    if resource.type == kind and given != attribute and not (attribute == "Ref" and given in ("Id", "Arn")):
        right = f"Ref {resource.logical_id}" if attribute == "Ref" else f"Fn::GetAtt {resource.logical_id}.{attribute}"
        yield refused(node.path, written, allowed=what, fix=f"write {right}")
    elif resource.type != kind and kind in (FILE_SYSTEM, "AWS::EKS::Cluster"):
        yield refused(
            node.path, f"{written}, of type {resource.type}", allowed=what, fix=f"name a resource of type {kind}"
        )


def _one_file_system(app: App, config: Node) -> Iterator[Broken]:
    name: Any = config.get("DnsName").value
    mount: Any = config.get("MountName").value
    made = name.resource if isinstance(name, Reference) and name.resource.type == FILE_SYSTEM else None
    kind = None if made is None else app.node(made).get("LustreConfiguration", "DeploymentType").text()
    if made is not None and isinstance(mount, str) and isinstance(kind, str) and kind != "SCRATCH_1":
        yield refused(
            f"{config.path}.MountName",
            f"{show(mount)} for {made.logical_id}, whose mount name FSx makes up",
            allowed=f"Fn::GetAtt {made.logical_id}.LustreMountName",
            fix=f"write Fn::GetAtt {made.logical_id}.LustreMountName",
        )
    both = isinstance(name, Reference) and isinstance(mount, Reference)
    if both and name.resource is not mount.resource and name.resource.type == mount.resource.type == FILE_SYSTEM:
        yield refused(
            f"{config.path}.MountName",
            f"the mount name of {mount.resource.logical_id} with the DNS name of {name.resource.logical_id}",
            allowed="both of one file system",
            fix=f"write Fn::GetAtt {name.resource.logical_id}.LustreMountName",
        )


def _database_port(app: App, cluster: Resource, properties: Node) -> Iterator[Broken]:
    accounting = properties.get("Orchestrator", "Slurm", "AccountingDatabase")
    endpoint, port = accounting.get("Endpoint").value, accounting.get("Port").integer()
    if not isinstance(endpoint, Reference) or endpoint.resource.type != "AWS::RDS::DBInstance":
        return
    own = app.node(endpoint.resource).get("Port").integer()
    has = own if isinstance(own, int) else 3306 if own is None else None
    asked = port if isinstance(port, int) else 3306 if port is None else None
    if has is not None and asked is not None and has != asked:
        yield refused(
            f"{accounting.path}.Port",
            f"port {asked} in {cluster.logical_id}",
            allowed=f"{has}, that of {endpoint.resource.logical_id}",
            fix=f"write {has}",
        )
