"""No property is dropped: every type either carries it to its service or names it in a refusal."""

import botocore.session
import pytest

from holdfast.localcloud.aws.cloudformation import registry, resources
from holdfast.localcloud.aws.cloudformation.resources.handlers import GenericHandler, LostProperties, to_shape

REFUSED = {
    "AWS::APS::Workspace": {"QueryLoggingConfiguration", "WorkspaceConfiguration"},
    "AWS::EC2::EIP": {"InstanceId", "TransferAddress"},
    "AWS::EC2::NatGateway": {"MaxDrainDurationSeconds"},
    "AWS::EC2::Subnet": {
        "AssignIpv6AddressOnCreation",
        "EnableDns64",
        "EnableLniAtDeviceIndex",
        "PrivateDnsNameOptionsOnLaunch",
    },
    "AWS::EKS::Cluster": {"ActiveCertificateAuthorityId", "CertificateAuthority", "RollbackConfig"},
    "AWS::FSx::FileSystem": {"BackupId"},
    "AWS::Grafana::Workspace": {"PluginAdminEnabled", "SamlConfiguration"},
    "AWS::Logs::LogGroup": {
        "BearerTokenAuthenticationEnabled",
        "DataProtectionPolicy",
        "FieldIndexPolicies",
        "ResourcePolicyDocument",
    },
    "AWS::RDS::DBInstance": {
        "AssociatedRoles",
        "AutomaticBackupReplicationKmsKeyId",
        "AutomaticBackupReplicationRegion",
        "CertificateRotationRestart",
        "DBClusterSnapshotIdentifier",
        "DBSnapshotIdentifier",
        "ReplicaMode",
        "RestoreTime",
        "SourceDBClusterIdentifier",
        "SourceDBInstanceAutomatedBackupsArn",
        "SourceDBInstanceIdentifier",
        "SourceDbiResourceId",
        "SourceRegion",
        "UseDefaultProcessorFeatures",
        "UseLatestRestorableTime",
    },
    "AWS::SNS::Topic": {"DeliveryStatusLogging", "MaximumMessageSize"},
    "AWS::SecretsManager::Secret": {"ReplicaRegions"},
}
"""What the embedded AWS refuses to set when it creates a resource; docs/concepts/local-cloud.md lists the same."""

GENERIC = [handler for handler in resources.HANDLERS if isinstance(handler, GenericHandler)]


@pytest.mark.parametrize("handler", GENERIC, ids=lambda handler: handler.type)
def test_a_type_refuses_what_it_cannot_set_and_nothing_else(handler):
    read_only = set(registry.paths(handler.type, "readOnlyProperties"))
    settable = [name for name in registry.schema(handler.type)["properties"] if name not in read_only]

    refused = handler.unsettable("create", dict.fromkeys(settable), dict.fromkeys(settable, "other"))

    assert set(refused) == REFUSED.get(handler.type, set())


def test_what_a_shape_does_not_know_is_told_with_its_path():
    model = botocore.session.get_session().get_service_model("fsx")
    lost = LostProperties()
    given = {"FileSystemType": "LUSTRE", "Size": 1, "LustreConfiguration": {"DeploymentType": "SCRATCH_2", "Colour": 1}}

    shaped = to_shape(model.operation_model("CreateFileSystem").input_shape, given, lost)

    assert shaped == {"FileSystemType": "LUSTRE", "LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}
    assert lost.paths == ["Size", "LustreConfiguration/Colour"]
