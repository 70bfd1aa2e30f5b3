"""6xx: the database of Slurm's accounting."""

import re
from collections.abc import Iterator

from holdfast.validation.cloudformation import Reference, Resource
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import AccountingDatabase, App, Deployment

READER = ".cluster-ro-"
_SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
_HOST = re.compile(r"\.([a-z]{2}(?:-[a-z]+)+-\d)\.rds\.amazonaws\.com")


@rule(
    "HF654",
    title="The accounting database can be reached and used by slurmdbd",
    each=(AccountingDatabase, App),
    source="SageMaker developer guide, AccountingDatabase; RDS user guide, 'Working with a DB instance in a VPC'; "
    "Aurora user guide, 'Amazon Aurora endpoint connections': the reader endpoint is for statements that only read",
)
def accounting_database(item: AccountingDatabase | App, deployment: Deployment) -> Iterator[Broken]:
    """
    slurmdbd speaks to MySQL or MariaDB, and writes. The controller's security group has to reach the database's port; a
    subnet group has subnets in two zones, and no database of a cluster is public.
    """
    if isinstance(item, App):
        yield from _of_app(item)
        return
    if item.database in _SYSTEM:
        yield refused(
            item.at("database"),
            f"{item.database}, a database of MySQL's own",
            allowed="one that Slurm alone writes",
            fix="write slurm_acct_db",
        )
    match = _HOST.search(item.endpoint or "")
    if match is not None and deployment.region is not None and match[1] != deployment.region:
        yield refused(
            item.at("endpoint"),
            f"a database of region {match[1]}",
            allowed=f"one of {deployment.region}, which nodes reach in their network",
            fix=f"name one of {deployment.region}",
        )
    if READER in (item.endpoint or ""):
        yield refused(
            item.at("endpoint"),
            f"{show(item.endpoint)}, the reader endpoint of an Aurora cluster",
            allowed="an endpoint that takes writes",
            fix=f"write {(item.endpoint or '').replace(READER, '.cluster-')}",
        )


def _of_app(app: App) -> Iterator[Broken]:
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


def _open_port(app: App, cluster: Resource, database: Resource) -> Iterator[Broken]:
    from holdfast.validation.rules.network import ingress_of, lets

    node = app.node(database)
    groups = [entry.resource("AWS::EC2::SecurityGroup") for entry in node.get("VPCSecurityGroups").items() or ()]
    known = [group for group in groups if group is not None]
    port = node.get("Port").integer()
    if not groups or len(known) < len(groups):
        return
    expected = port if isinstance(port, int) else 3306
    rules = [each for group in known for each in ingress_of(app, group)]
    if None not in rules and not any(lets(each, expected) for each in rules if each is not None):
        yield refused(
            f"{database.path}.VPCSecurityGroups",
            f"groups that do not let port {expected} in: {', '.join(g.logical_id for g in known)}",
            allowed=f"TCP {expected} from the nodes of {cluster.logical_id}",
            fix=f"let TCP {expected} from the nodes' group into {known[0].logical_id}",
        )
