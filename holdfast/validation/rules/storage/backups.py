"""6xx: file systems and databases of templates, as FSx's and RDS's pages say: backups, data repositories, mounts."""

import re
from collections.abc import Iterator
from typing import Any

from holdfast.catalog.facts import rds_versions
from holdfast.validation.cloudformation import Node, Reference, Resource
from holdfast.validation.engine import Broken, refused, rule, said
from holdfast.validation.model import App, Deployment, references_in, text_of
from holdfast.validation.rules.storage.volumes import has_plain_parts

BACKUPS = "FSx for Lustre user guide, 'Protecting your data with backups'"
FILE_SYSTEM, ASSOCIATION = "AWS::FSx::FileSystem", "AWS::FSx::DataRepositoryAssociation"
_ATTRIBUTES = {
    ("FsxLustreConfig", "DnsName"): (FILE_SYSTEM, "DNSName", "the DNS name of a file system"),
    ("FsxLustreConfig", "MountName"): (FILE_SYSTEM, "LustreMountName", "the mount name of a Lustre file system"),
    ("FsxOpenZfsConfig", "DnsName"): (FILE_SYSTEM, "DNSName", "the DNS name of a file system"),
    ("AccountingDatabase", "Endpoint"): ("AWS::RDS::DBInstance", "Endpoint.Address", "the address of a database"),
    ("AccountingDatabase", "SecretArn"): ("AWS::SecretsManager::Secret", "Ref", "the ARN of a secret"),
    ("Eks", "ClusterArn"): ("AWS::EKS::Cluster", "Arn", "the ARN of an EKS cluster"),
    ("LinkOfData", "FileSystemId"): (FILE_SYSTEM, "Ref", "the id of a file system"),
}


_PORTS = {"LUSTRE": (988, *range(1018, 1024)), "OPENZFS": (111, 2049, 20001, 20002, 20003)}
_ALL_PORTS = {
    "LUSTRE": "TCP 988 and 1018-1023 from the nodes and the file system itself",
    "OPENZFS": "TCP and UDP 111, 2049 and 20001-20003 from the nodes",
}
_KINDS_OF_MOUNTS = {"FsxLustreConfig": "LUSTRE", "FsxOpenZfsConfig": "OPENZFS"}
_CLOCK = r"([01]\d|2[0-3]):[0-5]\d"


@rule("HF650", title="File systems with data repository associations have no backups", each=App, source=BACKUPS)
def backups_of_linked(app: App, _: Deployment) -> Iterator[Broken]:
    """
    "Backups are supported only on FSx for Lustre persistent file systems that are not linked to an Amazon S3 data
    repository." Neither automatic ones, nor those of AWS Backup.
    """
    backed_up = {
        each.resource
        for _selection, node in app.each("AWS::Backup::BackupSelection")
        for each in references_in(node.get("BackupSelection", "Resources").value)
    }
    for file_system, node in app.each(FILE_SYSTEM):
        lustre = node.get("LustreConfiguration")
        days = lustre.get("AutomaticBackupRetentionDays").integer()
        scratch = str(lustre.get("DeploymentType").text() or "SCRATCH_1").startswith("SCRATCH") and lustre.present
        linked = [
            each.logical_id
            for each, own in app.each(ASSOCIATION)
            if own.get("FileSystemId").resource(FILE_SYSTEM) is file_system
        ]
        linked = linked or ["ImportPath"] * lustre.get("ImportPath").known
        if isinstance(days, int) and days > 0 and (linked or scratch):
            what = f"linked to an S3 data repository ({', '.join(linked)})" if linked else "of a scratch type"
            yield refused(
                f"{lustre.path}.AutomaticBackupRetentionDays",
                f"{days} days of backups of a file system {what}",
                allowed="no backups of it",
                fix="set AutomaticBackupRetentionDays to 0, or remove it",
            )
        if file_system in backed_up and (linked or scratch):
            yield refused(
                file_system.path,
                f"{file_system.logical_id}, scratch or linked to an S3 data repository, in a plan of AWS Backup",
                allowed="file systems without a data repository in a plan",
                fix="take it out of the BackupSelection; its data are in S3",
            )
        for name in ("DailyAutomaticBackupStartTime", "CopyTagsToBackups"):
            if lustre.get(name).known and scratch and lustre.get(name).value is not False:
                yield refused(
                    f"{lustre.path}.{name}",
                    f"{name} on a scratch file system",
                    allowed="persistent types",
                    fix=f"remove {name}",
                )


@rule(
    "HF657",
    title="Backup and maintenance times have the form that FSx and RDS accept",
    each=App,
    source="FSx API reference, DailyTime and WeeklyTime; RDS API reference, CreateDBInstance",
)
def windows(app: App, _: Deployment) -> Iterator[Broken]:
    """
    FSx takes HH:MM for backups and d:HH:MM, from 1 for Monday, for maintenance. It keeps backups for 90 days at most,
    RDS for 35. Backups and maintenance of a database are not at the same time.
    """
    for file_system, node in app.each(FILE_SYSTEM):
        for kind in ("LustreConfiguration", "OpenZFSConfiguration", "OntapConfiguration", "WindowsConfiguration"):
            held = node.get(kind)
            for name, form, allowed in (
                ("DailyAutomaticBackupStartTime", _CLOCK, "HH:MM in UTC"),
                ("WeeklyMaintenanceStartTime", f"[1-7]:{_CLOCK}", "d:HH:MM in UTC, 1 for Monday"),
            ):
                value = held.get(name)
                if isinstance(value.value, str) and not re.fullmatch(form, value.value):
                    yield refused(
                        value.path,
                        said(value.value),
                        allowed=allowed,
                        fix=f"write {'6:03:00' if 'd:' in allowed else '03:00'}",
                    )
            days = held.get("AutomaticBackupRetentionDays").integer()
            if isinstance(days, int) and not 0 <= days <= 90:
                yield refused(
                    f"{held.path}.AutomaticBackupRetentionDays",
                    f"{days} days",
                    allowed="0 to 90",
                    fix="write 90, and keep longer ones with AWS Backup",
                )
        if file_system.body.get("DeletionPolicy") == "Snapshot":
            yield refused(
                f"{file_system.path.removesuffix('.Properties')}.DeletionPolicy",
                "Snapshot on a file system of FSx",
                allowed="Retain, RetainExceptOnCreate or Delete; snapshots are for volumes and databases",
                fix="write Retain",
            )
    for database, node in app.each("AWS::RDS::DBInstance", "AWS::RDS::DBCluster"):
        days = node.get("BackupRetentionPeriod").integer()
        if isinstance(days, int) and not 0 <= days <= 35:
            yield refused(f"{database.path}.BackupRetentionPeriod", f"{days} days", allowed="0 to 35", fix="write 35")
        daily, weekly = (node.get(name).text() for name in ("PreferredBackupWindow", "PreferredMaintenanceWindow"))
        if isinstance(daily, str) and isinstance(weekly, str) and _overlap(daily, weekly):
            yield refused(
                f"{database.path}.PreferredBackupWindow",
                f"{daily}, during the maintenance of {weekly}",
                allowed="windows that do not overlap",
                fix="move one of them",
            )


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
                yield from _one_file_system(config.get("FsxLustreConfig"))
        for key, node in places:
            yield from _attribute(key, node)
        yield from _literal_names(properties)
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
        held = arn.value.resource.type if isinstance(arn.value, Reference) else ""
        if held == "AWS::EKS::Cluster" or ":eks:" in (text_of(arn.value) or ""):
            yield refused(
                arn.path,
                f"the ARN of an EKS cluster in {quota.logical_id}",
                allowed="that of the HyperPod cluster",
                fix="write Fn::GetAtt of the HyperPod cluster's ClusterArn",
            )
    for _cluster, node in app.each("AWS::SageMaker::Cluster"):
        arn = node.get("Orchestrator", "Eks", "ClusterArn")
        text = text_of(arn.value) or ""
        if text.startswith("arn:") and ":eks:" not in text and text.count(":") >= 3:
            yield refused(
                arn.path, said(text), allowed="the ARN of an EKS cluster, arn:aws:eks:...", fix="name the EKS cluster"
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
        text = text_of(path.value)
        if isinstance(path.value, Reference) or (text is not None and not text.startswith(("s3://", "nfs://", "${"))):
            given = path.value.resource.logical_id if isinstance(path.value, Reference) else said(text)
            yield refused(
                path.path,
                f"{given}, which is no S3 URI",
                allowed="s3://bucket/prefix",
                fix="write !Sub s3://${Bucket}/prefix",
            )
        folder = text_of(node.get("FileSystemPath").value)
        if folder is not None and not folder.startswith(("/", "${")):
            yield refused(
                f"{association.path}.FileSystemPath", said(folder), allowed="a path from /", fix=f"write /{folder}"
            )
        elif folder is not None and "${" not in folder and not has_plain_parts(folder):
            yield refused(
                f"{association.path}.FileSystemPath",
                said(folder),
                allowed="a path without '//', '.' and '..'",
                fix="write the path of the folder itself, such as /data",
            )


@rule(
    "HF653",
    title="Versions of database engines exist in RDS",
    each=App,
    source="RDS engine versions, as cfn-lint carries them",
    suppressible=True,
)
def database_versions(app: App, _: Deployment) -> Iterator[Broken]:
    """
    RDS refuses a version that it does not have, or has no more. A version that has come since the list was made can be
    accepted.
    """
    for database, node in app.each("AWS::RDS::DBInstance"):
        engine, version = node.get("Engine").text(), node.get("EngineVersion").text()
        if not isinstance(engine, str) or not isinstance(version, str):
            continue
        known = rds_versions(engine)
        if known and version not in known:
            same = [each for each in known if each.startswith(f"{version.partition('.')[0]}.")]
            yield refused(
                f"{database.path}.EngineVersion",
                f"{engine} {version}",
                allowed=f"versions such as {', '.join((same or list(known))[-4:])}",
                fix=f"write {(same or list(known))[-1]}",
            )


@rule(
    "HF654",
    title="The accounting database can be reached and used by slurmdbd",
    each=App,
    source="SageMaker developer guide, AccountingDatabase; RDS user guide, 'Working with a DB instance in a VPC'",
)
def accounting_database(app: App, _: Deployment) -> Iterator[Broken]:
    """
    slurmdbd speaks to MySQL or MariaDB. The controller's security group has to reach the database's port; a subnet
    group has subnets in two zones, and no database of a cluster is public.
    """
    for cluster, properties in app.each("AWS::SageMaker::Cluster"):
        endpoint = properties.get("Orchestrator", "Slurm", "AccountingDatabase", "Endpoint").value
        database = endpoint.resource if isinstance(endpoint, Reference) else None
        if database is None or database.type != "AWS::RDS::DBInstance":
            continue
        node = app.node(database)
        engine = node.get("Engine").text()
        if isinstance(engine, str) and engine not in ("mysql", "mariadb", "aurora-mysql"):
            yield refused(
                f"{database.path}.Engine",
                engine,
                allowed="mysql or mariadb, which slurmdbd speaks to",
                fix="write mariadb",
            )
        yield from _open_port(app, cluster, database)
    for group, node in app.each("AWS::RDS::DBSubnetGroup"):
        entries = node.get("SubnetIds").items() or []
        zones = [
            app.node(each).get("AvailabilityZone").token
            for entry in entries
            if (each := entry.resource("AWS::EC2::Subnet"))
        ]
        if entries and len(zones) == len(entries) and (len(set(zones)) < 2 or len(entries) < 2) and "null" not in zones:
            yield refused(
                f"{group.path}.SubnetIds",
                f"subnets of one zone ({len(entries)})",
                allowed="subnets in two zones",
                fix="add a subnet of another zone",
            )
    for database, node in app.each("AWS::RDS::DBInstance"):
        if node.get("PubliclyAccessible").boolean(default=False) is True:
            yield refused(
                f"{database.path}.PubliclyAccessible",
                "a database that is open to the internet",
                allowed="false",
                fix="set PubliclyAccessible to false",
            )
        word = node.get("MasterUserPassword")
        if isinstance(word.value, str) and "resolve:" not in word.value:
            yield refused(
                word.path,
                "a password in the template",
                allowed="a secret",
                fix="write {{resolve:secretsmanager:...}}, or ManageMasterUserPassword: true",
            )


@rule(
    "HF655",
    title="Security groups of file systems let their protocol in",
    each=App,
    source="FSx for Lustre user guide, 'File system access control with Amazon VPC'; RDS user guide",
)
def own_groups(app: App, _: Deployment) -> Iterator[Broken]:
    """
    FSx refuses a Lustre file system whose security groups do not let Lustre, port 988, in from themselves or from the
    nodes.
    """
    from holdfast.validation.rules.network import ingress_of, lets

    for file_system, node in app.each(FILE_SYSTEM):
        ports = _PORTS.get(str(node.get("FileSystemType").value))
        # Where a cluster mounts it, another rule looks at both sides.
        mounted = any(True for _each in app.each("AWS::SageMaker::Cluster"))
        if ports is None or mounted:
            continue
        groups = [entry.resource("AWS::EC2::SecurityGroup") for entry in node.get("SecurityGroupIds").items() or ()]
        known = [group for group in groups if group is not None]
        if not groups or len(known) < len(groups):
            continue
        rules = [each for group in known for each in ingress_of(app, group)]
        closed = [port for port in ports if not any(lets(each, port) for each in rules if each is not None)]
        if None not in rules and closed:
            yield refused(
                f"{file_system.path}.SecurityGroupIds",
                f"groups without port {', '.join(map(str, closed))}: {', '.join(g.logical_id for g in known)}",
                allowed=_ALL_PORTS[str(node.get("FileSystemType").value)],
                fix=f"let TCP {', '.join(map(str, closed))} into {known[0].logical_id}",
            )


@rule(
    "HF656",
    title="Names of buckets have characters that S3 accepts",
    each=App,
    source="S3 user guide, 'General purpose bucket naming rules'",
)
def bucket_names(app: App, _: Deployment) -> Iterator[Broken]:
    """
    3 to 63 lower-case letters, digits, dots and hyphens, beginning and ending with a letter or digit.
    """
    for bucket, node in app.each("AWS::S3::Bucket"):
        name = node.get("BucketName")
        text = text_of(name.value)
        if text is None:
            continue
        known = text.replace("${...}", "xx")
        if (
            not re.fullmatch(r"[a-z0-9][a-z0-9.-]*[a-z0-9]", known)
            or ".." in known
            or (name.value == text and not 3 <= len(text) <= 63)
        ):
            yield refused(
                f"{bucket.path}.BucketName",
                said(text),
                allowed="3 to 63 lower-case letters, digits, dots and hyphens",
                fix=f"write {re.sub(r'[^a-z0-9.-]', '-', known.lower())[:63]}"
                if name.value == text
                else "write lower-case letters, digits and hyphens",
            )


def _overlap(daily: str, weekly: str) -> bool:
    """Whether a window of each day meets one of a week."""
    times = [re.findall(r"(\d\d):(\d\d)", each) for each in (daily, weekly)]
    if any(len(each) != 2 for each in times):
        return False
    (start, end), (first, last) = [[int(h) * 60 + int(m) for h, m in each] for each in times]
    return start < (last if last > first else last + 1440) and first < (end if end > start else end + 1440)


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


def _one_file_system(config: Node) -> Iterator[Broken]:
    name: Any = config.get("DnsName").value
    mount: Any = config.get("MountName").value
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


def _literal_names(properties: Node) -> Iterator[Broken]:
    """DNS names that are written down: of FSx, with the id of a file system."""
    for group in properties.get("InstanceGroups").items() or ():
        for config in group.get("InstanceStorageConfigs").items() or ():
            for kind in ("FsxLustreConfig", "FsxOpenZfsConfig"):
                name = config.get(kind, "DnsName")
                if isinstance(name.value, str) and re.fullmatch(r"fs-[0-9a-f]+", name.value):
                    yield refused(
                        name.path,
                        said(name.value),
                        allowed="the DNS name of a file system, fs-ID.fsx.REGION.amazonaws.com",
                        fix=f"write {name.value}.fsx.REGION.amazonaws.com",
                    )


def _open_port(app: App, cluster: Resource, database: Resource) -> Iterator[Broken]:
    from holdfast.validation.rules.network import ingress_of, lets

    node = app.node(database)
    groups = [entry.resource("AWS::EC2::SecurityGroup") for entry in node.get("VPCSecurityGroups").items() or ()]
    known = [group for group in groups if group is not None]
    port = node.get("Port").integer()
    if not groups or len(known) < len(groups):
        return
    wanted = port if isinstance(port, int) else 3306
    rules = [each for group in known for each in ingress_of(app, group)]
    if None not in rules and not any(lets(each, wanted) for each in rules if each is not None):
        yield refused(
            f"{database.path}.VPCSecurityGroups",
            f"groups that do not let port {wanted} in: {', '.join(g.logical_id for g in known)}",
            allowed=f"TCP {wanted} from the nodes of {cluster.logical_id}",
            fix=f"let TCP {wanted} from the nodes' group into {known[0].logical_id}",
        )
