"""File systems, their links to S3, the accounting database and the key: what holds data."""

import json
from collections.abc import Sequence
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs

from holdfast_constructs import (
    DataBucket,
    DataRepositoryAssociation,
    EncryptionKey,
    EventLogGroup,
    HyperPodNetwork,
    IHyperPodNetwork,
    LustreFileSystem,
    OpenZfsFileSystem,
    SlurmAccountingDatabase,
)

DESTROY = cdk.RemovalPolicy.DESTROY
KEPT = cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


def new_stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(), "Demo", env=cdk.Environment(account="111122223333", region="us-west-2"))


def place(stack: cdk.Stack) -> dict[str, Any]:
    return {
        "subnet": ec2.Subnet.from_subnet_id(stack, "Subnet", "subnet-0123456789abcdef0"),
        "security_group": ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0"),
    }


def lustre(stack: cdk.Stack, **settings: Any) -> LustreFileSystem:
    shape: Any = {"storage_capacity_gib": 1200, "per_unit_storage_throughput": 250, **settings}
    return LustreFileSystem(stack, "Lustre", **place(stack), **shape)


def network_in_two_zones(stack: cdk.Stack) -> IHyperPodNetwork:
    return HyperPodNetwork(
        stack,
        "Network",
        cidr="10.1.0.0/20",
        availability_zone="us-west-2a",
        second_availability_zone="us-west-2b",
        egress="none",
    )


def only(template: assertions.Template, kind: str) -> dict[str, Any]:
    (resource,) = template.find_resources(kind).values()
    return dict(resource)


def linked(stack: cdk.Stack) -> Sequence[DataRepositoryAssociation]:
    bucket = DataBucket(stack, "Data").bucket
    return [
        DataRepositoryAssociation(name="a", bucket=bucket, prefix="a", file_system_path="/a", auto_import=["NEW"]),
        DataRepositoryAssociation(name="b", bucket=bucket, prefix="b", file_system_path="/b", auto_export=["CHANGED"]),
        DataRepositoryAssociation(name="c", bucket=bucket, prefix="c", file_system_path="/c", import_on_create=True),
    ]


@pytest.fixture(scope="module")
def template() -> assertions.Template:
    stack = new_stack()
    lustre(stack, data_repository_associations=linked(stack))
    return assertions.Template.from_stack(stack)


def test_a_file_system_is_persistent_compressed_and_its_metadata_follow_its_capacity(
    template: assertions.Template,
) -> None:
    properties = only(template, "AWS::FSx::FileSystem")["Properties"]

    assert properties["FileSystemTypeVersion"] == "2.15"
    assert properties["LustreConfiguration"] == {
        "DeploymentType": "PERSISTENT_2",
        "PerUnitStorageThroughput": 250,
        "DataCompressionType": "LZ4",
        "MetadataConfiguration": {"Mode": "AUTOMATIC"},
    }


def test_associations_are_made_one_after_the_other(template: assertions.Template) -> None:
    associations = template.find_resources("AWS::FSx::DataRepositoryAssociation")
    first, second, third = associations.items()

    assert first[0] in second[1]["DependsOn"]
    assert second[0] in third[1]["DependsOn"]
    assert first[1]["Properties"]["S3"] == {"AutoImportPolicy": {"Events": ["NEW"]}}
    assert second[1]["Properties"]["S3"] == {"AutoExportPolicy": {"Events": ["CHANGED"]}}
    at_once = [item["Properties"]["BatchImportMetaDataOnCreate"] for item in associations.values()]
    assert at_once == [True, False, True]


def test_efa_its_metadata_rate_logs_and_a_key_are_said_when_they_are_wanted() -> None:
    stack = new_stack()
    key = EncryptionKey(stack, "Key").key
    log_group = logs.LogGroup(stack, "Log", log_group_name="/aws/fsx/lustre/demo")
    made = lustre(
        stack,
        storage_capacity_gib=38400,
        per_unit_storage_throughput=125,
        efa=True,
        metadata_iops=12000,
        compression="NONE",
        log_group=log_group,
        encryption_key=key,
    )
    made.grant_describe(iam.Role(stack, "Nodes-Role", assumed_by=iam.AccountRootPrincipal()))
    template = assertions.Template.from_stack(stack)
    properties = only(template, "AWS::FSx::FileSystem")["Properties"]
    configuration = properties["LustreConfiguration"]

    assert configuration["EfaEnabled"] is True
    assert configuration["MetadataConfiguration"] == {"Mode": "USER_PROVISIONED", "Iops": 12000}
    assert configuration["DataCompressionType"] == "NONE"
    assert configuration["LogConfiguration"]["Level"] == "WARN_ERROR"
    assert properties["KmsKeyId"]["Fn::GetAtt"][1] == "Arn"
    (statement,) = only(template, "AWS::IAM::Policy")["Properties"]["PolicyDocument"]["Statement"]
    assert statement["Action"] == "fsx:DescribeFileSystems"


@pytest.mark.parametrize(("policy", "kept", "days"), [(KEPT, "RetainExceptOnCreate", 7), (DESTROY, "Delete", 0)])
def test_homes_are_encrypted_backed_up_and_kept_unless_all_shall_go(
    policy: cdk.RemovalPolicy, kept: str, days: int
) -> None:
    stack = new_stack()
    OpenZfsFileSystem(stack, "Home", **place(stack), storage_capacity_gib=1024, removal_policy=policy)
    resource = only(assertions.Template.from_stack(stack), "AWS::FSx::FileSystem")
    configuration = resource["Properties"]["OpenZFSConfiguration"]
    (export,) = configuration["RootVolumeConfiguration"]["NfsExports"][0]["ClientConfigurations"]

    assert resource["DeletionPolicy"] == kept
    assert (configuration["DeploymentType"], configuration["ThroughputCapacity"]) == ("SINGLE_AZ_2", 160)
    assert configuration["AutomaticBackupRetentionDays"] == days
    assert ("Options" in configuration) == (policy is DESTROY)
    assert "no_root_squash" in export["Options"], "lifecycle scripts give home directories to their users"


def test_an_existing_file_system_can_be_mounted() -> None:
    stack = new_stack()
    home = OpenZfsFileSystem.from_attributes(stack, "Home", file_system_id="fs-1", dns_name="fs-1.fsx")
    found = LustreFileSystem.from_attributes(
        stack, "Lustre", file_system_id="fs-0", dns_name="fs-0.fsx", mount_name="abc", efa=True
    )

    assert (home.file_system_id, home.dns_name) == ("fs-1", "fs-1.fsx")
    assert (found.file_system_id, found.dns_name, found.mount_name, found.efa) == ("fs-0", "fs-0.fsx", "abc", True)


@pytest.fixture(scope="module")
def accounting() -> assertions.Template:
    stack = new_stack()
    SlurmAccountingDatabase(stack, "Accounting", network=network_in_two_zones(stack))
    return assertions.Template.from_stack(stack)


def test_the_accounting_database_is_private_encrypted_protected_and_takes_tls_only(
    accounting: assertions.Template,
) -> None:
    database = only(accounting, "AWS::RDS::DBInstance")
    properties = database["Properties"]

    assert properties["PubliclyAccessible"] is False
    assert properties["StorageEncrypted"] is True
    assert properties["BackupRetentionPeriod"] == 7
    assert (properties["Engine"], properties["EngineVersion"]) == ("mysql", "8.4.9")
    parameters = only(accounting, "AWS::RDS::DBParameterGroup")["Properties"]["Parameters"]
    assert parameters["require_secure_transport"] == "1"
    assert len(only(accounting, "AWS::RDS::DBSubnetGroup")["Properties"]["SubnetIds"]) == 2
    assert "{{resolve:secretsmanager:" in str(properties["MasterUserPassword"])


def test_all_that_the_accounting_database_stands_on_is_kept_with_it(accounting: assertions.Template) -> None:
    kinds = ("RDS::DBInstance", "RDS::DBSubnetGroup", "RDS::DBParameterGroup", "SecretsManager::Secret")
    found = [item for kind in kinds for item in accounting.find_resources(f"AWS::{kind}").values()]
    groups = accounting.find_resources("AWS::EC2::SecurityGroup")
    found += [group for name, group in groups.items() if name.startswith("Accounting")]

    assert [item["DeletionPolicy"] for item in found] == ["RetainExceptOnCreate"] * 5


def test_only_nodes_reach_the_accounting_database(accounting: assertions.Template) -> None:
    database = only(accounting, "AWS::RDS::DBInstance")
    (name, rule), *others = [
        (name, item["Properties"])
        for name, item in accounting.find_resources("AWS::EC2::SecurityGroupIngress").items()
        if name.startswith("Accounting")
    ]
    assert others == []
    assert (rule["FromPort"], rule["ToPort"]) == (3306, 3306)
    assert rule["SourceSecurityGroupId"]["Fn::GetAtt"][0].startswith("NetworkSecurityGroup")
    assert name in database["DependsOn"], "what refers to the database finds it open"


def test_cfn_lint_finds_nothing_in_a_closed_network_with_all_that_holds_data() -> None:
    from cfnlint.api import ManualArgs, lint

    stack = new_stack()
    key = EncryptionKey(stack, "Key").key
    network = network_in_two_zones(stack)
    SlurmAccountingDatabase(stack, "Accounting", network=network, encryption_key=key)
    shared: Any = {"subnet": network.subnet, "security_group": network.security_group, "encryption_key": key}
    OpenZfsFileSystem(stack, "Home", **shared, storage_capacity_gib=64)
    LustreFileSystem(stack, "Lustre", **shared, storage_capacity_gib=4800, per_unit_storage_throughput=1000, efa=True)
    template = json.dumps(assertions.Template.from_stack(stack).to_json())
    found = lint(template, config=ManualArgs(regions=["us-west-2"]))

    # W3005: the CDK expands a dependency on a construct to all in it, also to what a Ref names anyway
    # W3010: zones are chosen on purpose
    assert [str(item) for item in found if item.rule.id not in ("W3005", "W3010")] == []


def test_rejects_an_accounting_database_in_one_zone() -> None:
    stack = new_stack()
    network = HyperPodNetwork(stack, "Network", cidr="10.1.0.0/20", availability_zone="us-west-2a")
    with pytest.raises(ValueError, match="got a network with one zone; allowed: one with subnets in two"):
        SlurmAccountingDatabase(stack, "Accounting", network=network)


def test_the_key_of_linked_buckets_serves_the_role_of_fsx_and_says_so_once() -> None:
    stack = new_stack()
    key = EncryptionKey(stack, "Key").key
    bucket = DataBucket(stack, "Data", encryption_key=key).bucket
    links = [
        DataRepositoryAssociation(
            name=name, bucket=bucket, prefix=name, file_system_path=f"/{name}", auto_export=["NEW"]
        )
        for name in ("data", "jobs")
    ]
    lustre(stack, data_repository_associations=links)
    policy = only(assertions.Template.from_stack(stack), "AWS::KMS::Key")["Properties"]["KeyPolicy"]
    (statement,) = (item for item in policy["Statement"] if item.get("Sid") == "LustreOfThisAccount")

    assert statement["Principal"] == {"AWS": "*"}
    assert statement["Action"] == [
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey*",
        "kms:ReEncrypt*",
    ]
    assert statement["Condition"]["StringEquals"] == {
        "kms:CallerAccount": "111122223333",
        "kms:ViaService": "s3.us-west-2.amazonaws.com",
    }
    assert "AWSServiceRoleForFSxS3Access_fs-*" in str(statement["Condition"]["ArnLike"]["aws:PrincipalArn"])


@pytest.mark.parametrize("kind", [LustreFileSystem, OpenZfsFileSystem])
def test_a_file_system_is_made_after_all_rules_of_its_security_group(kind: Any) -> None:
    stack = new_stack()
    network = network_in_two_zones(stack)
    throughput = {"per_unit_storage_throughput": 250} if kind is LustreFileSystem else {}
    kind(
        stack,
        "Files",
        subnet=network.subnet,
        security_group=network.security_group,
        storage_capacity_gib=1200,
        **throughput,
    )
    template = assertions.Template.from_stack(stack)
    group = stack.resolve(network.security_group.security_group_id)["Fn::GetAtt"][0]
    rules = {
        name
        for rule in ("AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
        for name, item in template.find_resources(rule).items()
        if item["Properties"]["GroupId"] == {"Fn::GetAtt": [group, "GroupId"]}
    }

    assert len(rules) == 2
    assert rules <= set(only(template, "AWS::FSx::FileSystem")["DependsOn"])


def test_a_database_is_protected_by_a_call_that_a_creation_that_fails_takes_back(
    accounting: assertions.Template,
) -> None:
    call, database = only(accounting, "Custom::AWS"), only(accounting, "AWS::RDS::DBInstance")

    assert database["Properties"].get("DeletionProtection", False) is False
    assert '"DeletionProtection":true' in json.dumps(call["Properties"]["Create"]).replace("\\", "")
    assert '"DeletionProtection":false' in json.dumps(call["Properties"]["Delete"]).replace("\\", "")
    assert call["DeletionPolicy"] == "RetainExceptOnCreate"  # a stack that is deleted leaves the protection on
    assert "DeletionPolicy" not in only(accounting, "AWS::IAM::Policy")  # it would keep the call's role from going


def test_the_database_that_takes_tls_only_says_so_to_the_scripts() -> None:
    stack = new_stack()
    made = SlurmAccountingDatabase(stack, "Accounting", network=network_in_two_zones(stack))

    assert made.accounting_database.tls


def test_a_key_rotates_is_kept_and_serves_the_logs_of_this_account_alone() -> None:
    stack = new_stack()
    key = EncryptionKey(stack, "Key").key
    EventLogGroup(stack, "Events", cluster_name="demo", encryption_key=key)
    DataBucket(stack, "Data", encryption_key=key)
    template = assertions.Template.from_stack(stack)
    resource = only(template, "AWS::KMS::Key")
    (statement,) = (
        item for item in resource["Properties"]["KeyPolicy"]["Statement"] if item.get("Sid") == "CloudWatchLogs"
    )
    encryption = only(template, "AWS::S3::Bucket")["Properties"]["BucketEncryption"]
    (rule,) = encryption["ServerSideEncryptionConfiguration"]

    assert resource["DeletionPolicy"] == "RetainExceptOnCreate"
    assert resource["Properties"]["EnableKeyRotation"] is True
    assert statement["Principal"] == {"Service": "logs.us-west-2.amazonaws.com"}
    assert "111122223333:log-group:*" in str(statement["Condition"])
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    assert only(template, "AWS::Logs::LogGroup")["Properties"]["KmsKeyId"]["Fn::GetAtt"][1] == "Arn"
