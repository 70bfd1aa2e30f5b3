"""Database for Slurm's accounting, which outlives controllers and clusters."""

from aws_cdk import CfnResource, Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_rds as rds
from aws_cdk import custom_resources as cr
from constructs import Construct

from holdfast_constructs.cluster import AccountingDatabase
from holdfast_constructs.network import IHyperPodNetwork

MYSQL = rds.MysqlEngineVersion.VER_8_4_9  # to begin with: RDS applies later minor versions by itself
PORT = 3306
USER = "slurm"
PASSWORD_WITHOUT = "\"#'/@\\ =%"  # noqa: S105  what slurmdbd.conf or RDS would not take
BACKUP_RETENTION_DAYS = 7
PARAMETERS = {
    "require_secure_transport": "1",
    "innodb_lock_wait_timeout": "900",  # schedmd, "Accounting and Resource Limits"
}


class SlurmAccountingDatabase(Construct):
    """
    RDS for MySQL instance in private subnets, TLS only, from nodes only.

    Encrypted, backed up for a week; retained and protected from deletion by default. Its secret has a generated
    password without rotation: slurmdbd reads it once.
    """

    accounting_database: AccountingDatabase
    """For ``SlurmOrchestrator``."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        network: IHyperPodNetwork,
        instance_type: ec2.InstanceType | None = None,
        multi_az: bool = False,
        storage_gib: int = 20,
        encryption_key: kms.IKey | None = None,
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """
        Define a database.

        Args:
            network: With ``control_plane_subnets``, else ValueError: RDS requires two zones.
            instance_type: Default: t4g.medium.
            multi_az: True: a standby in the other zone. Default: False.
            storage_gib: It can grow later. Default: 20.
            encryption_key: Of storage and secret. Default: keys of AWS.
            removal_policy: Default: RETAIN_ON_UPDATE_OR_DELETE, with deletion protection.
        """
        super().__init__(scope, construct_id)
        if not network.control_plane_subnets:
            raise ValueError(
                "slurm accounting database: got a network with one zone; allowed: one with subnets in two, which RDS "
                "requires; give the network second_availability_zone, or control_plane_subnets if it is imported"
            )
        kept = removal_policy is not RemovalPolicy.DESTROY
        guarded = removal_policy is RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
        group = self._security_group(network)
        engine = rds.DatabaseInstanceEngine.mysql(version=MYSQL)
        credentials = rds.Credentials.from_generated_secret(
            USER, exclude_characters=PASSWORD_WITHOUT, encryption_key=encryption_key
        )
        database = rds.DatabaseInstance(
            self,
            "Resource",
            engine=engine,
            vpc=network.vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=list(network.control_plane_subnets)),
            security_groups=[group],
            credentials=credentials,
            instance_type=instance_type or ec2.InstanceType.of(ec2.InstanceClass.T4G, ec2.InstanceSize.MEDIUM),
            multi_az=multi_az,
            allocated_storage=storage_gib,
            storage_type=rds.StorageType.GP3,
            storage_encrypted=True,
            storage_encryption_key=encryption_key,
            publicly_accessible=False,
            parameter_group=rds.ParameterGroup(self, "Parameters", engine=engine, parameters=PARAMETERS),
            backup_retention=Duration.days(BACKUP_RETENTION_DAYS),
            copy_tags_to_snapshot=True,
            auto_minor_version_upgrade=True,
            deletion_protection=kept and not guarded,
            removal_policy=removal_policy,
        )
        if guarded:
            _protect(self, database)
        # The cluster refers to the database, and so waits for its rules too.
        database.node.add_dependency(group)
        self._apply(removal_policy)
        assert database.secret is not None
        self.accounting_database = AccountingDatabase(
            endpoint=database.db_instance_endpoint_address, port=PORT, secret=database.secret, tls=True
        )

    def _security_group(self, network: IHyperPodNetwork) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=network.vpc,
            description="Accounting database of Slurm",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(network.security_group, ec2.Port.tcp(PORT), "slurmdbd on the controller")
        return group

    def _apply(self, removal_policy: RemovalPolicy) -> None:
        """
        For the database, its groups, secret, and protection, which a stack leaves on. Not for the policy of the call:
        a role with a policy cannot be deleted (IAM API, DeleteRole).
        """
        for construct in self.node.find_all():
            if isinstance(construct, CfnResource) and construct.cfn_resource_type != "AWS::IAM::Policy":
                construct.apply_removal_policy(removal_policy)


def _protect(scope: Construct, database: rds.DatabaseInstance) -> None:
    """
    Enable deletion protection by a call, which a failed creation undoes.

    As a property it would be on from the beginning, and the roll-back could not delete the database (RDS: "Cannot
    delete protected DB Instance"), which would block the stack's name.
    """

    def call(*, protected: bool) -> cr.AwsSdkCall:
        return cr.AwsSdkCall(
            service="RDS",
            action="ModifyDBInstance",
            parameters={
                "DBInstanceIdentifier": database.instance_identifier,
                "DeletionProtection": protected,
                "ApplyImmediately": True,
            },
            physical_resource_id=cr.PhysicalResourceId.of(f"protection-{scope.node.addr}"),
        )

    cr.AwsCustomResource(
        scope,
        "Protection",
        on_update=call(protected=True),  # also what runs on creation
        on_delete=call(protected=False),
        install_latest_aws_sdk=False,
        policy=cr.AwsCustomResourcePolicy.from_statements(
            [iam.PolicyStatement(actions=["rds:ModifyDBInstance"], resources=[database.instance_arn])]
        ),
    )
