"""Resource types, one row each; defaults come from schema and service model."""

from holdfast.localcloud.aws.cloudformation.resources import (
    custom,
    data,
    ec2,
    eks,
    iam,
    messaging,
    monitoring,
    nested_stacks,
    s3,
    sagemaker,
)
from holdfast.localcloud.aws.cloudformation.resources.handlers import GenericHandler, ResourceHandler

_LAMBDA = "arn:aws:lambda:{region}:{account}"

HANDLERS: tuple[ResourceHandler, ...] = (
    custom.InertHandler("AWS::CDK::Metadata"),
    custom.InertHandler("AWS::CloudFormation::WaitConditionHandle"),
    nested_stacks.NestedStack(),
    monitoring.PrometheusWorkspace("AWS::APS::Workspace", service="amp", update="UpdateWorkspaceAlias"),
    monitoring.RuleGroups("AWS::APS::RuleGroupsNamespace", service="amp", update="PutRuleGroupsNamespace"),
    monitoring.Alarm(
        "AWS::CloudWatch::Alarm",
        create="PutMetricAlarm",
        update="PutMetricAlarm",
        delete="DeleteAlarms",
        name_length=255,
    ),
    monitoring.Alarm(
        "AWS::CloudWatch::CompositeAlarm",
        noun="Alarm",
        create="PutCompositeAlarm",
        update="PutCompositeAlarm",
        delete="DeleteAlarms",
        name_length=255,
    ),
    monitoring.Dashboard(
        "AWS::CloudWatch::Dashboard", create="PutDashboard", update="PutDashboard", delete="DeleteDashboards", read=None
    ),
    ec2.Eip(
        "AWS::EC2::EIP",
        noun="Address",
        create="AllocateAddress",
        delete="ReleaseAddress",
        ref="PublicIp",
        tag_kind="elastic-ip",
    ),
    ec2.FlowLog("AWS::EC2::FlowLog", create="CreateFlowLogs", delete="DeleteFlowLogs", tag_kind="vpc-flow-log"),
    GenericHandler("AWS::EC2::InternetGateway"),
    ec2.NatGateway("AWS::EC2::NatGateway", tag_kind="natgateway"),
    ec2.Route(),
    GenericHandler("AWS::EC2::RouteTable"),
    ec2.SecurityGroup("AWS::EC2::SecurityGroup", ref="GroupId", name="GroupName"),
    ec2.SecurityGroupRule("Egress"),
    ec2.SecurityGroupRule("Ingress"),
    ec2.Subnet("AWS::EC2::Subnet"),
    ec2.RouteTableAssociation(),
    ec2.Vpc("AWS::EC2::VPC"),
    ec2.VpcEndpoint("AWS::EC2::VPCEndpoint", delete="DeleteVpcEndpoints", tag_kind="vpc-endpoint"),
    ec2.GatewayAttachment(),
    data.Repository("AWS::ECR::Repository", lower_name=True, update=None),
    eks.AccessEntry("AWS::EKS::AccessEntry"),
    eks.Addon("AWS::EKS::Addon"),
    eks.EksClusterHandler("AWS::EKS::Cluster", update="UpdateClusterConfig", name_length=100),
    eks.Nodegroup("AWS::EKS::Nodegroup", name="NodegroupName", update="UpdateNodegroupConfig"),
    eks.PodIdentityAssociation("AWS::EKS::PodIdentityAssociation"),
    messaging.EventRule(),
    GenericHandler("AWS::FSx::DataRepositoryAssociation"),
    data.FileSystemHandler("AWS::FSx::FileSystem"),
    monitoring.GrafanaWorkspace("AWS::Grafana::Workspace"),
    iam.ManagedPolicy("AWS::IAM::ManagedPolicy", noun="Policy", read="GetPolicy", aliases=("Arn",), update=None),
    iam.InlinePolicy(),
    iam.Role("AWS::IAM::Role", read="GetRole"),
    data.Key("AWS::KMS::Key", delete="ScheduleKeyDeletion", update=None),
    GenericHandler("AWS::KMS::Alias", read=None),
    custom.InertHandler("AWS::Lambda::Function", name="FunctionName", arn=f"{_LAMBDA}:function:{{name}}"),
    custom.InertHandler(
        "AWS::Lambda::LayerVersion", name="LayerName", arn=f"{_LAMBDA}:layer:{{name}}:1", ref_is_arn=True
    ),
    custom.InertHandler("AWS::Lambda::Permission"),
    custom.InertHandler("AWS::Lambda::Version", arn=f"{_LAMBDA}:function:{{name}}:1", ref_is_arn=True),
    monitoring.LogGroup("AWS::Logs::LogGroup", name_length=512),
    monitoring.MetricFilter(
        "AWS::Logs::MetricFilter", create="PutMetricFilter", update="PutMetricFilter", read=None, ref="FilterName"
    ),
    s3.Bucket(),
    s3.BucketPolicy(),
    GenericHandler(
        "AWS::Logs::ResourcePolicy",
        create="PutResourcePolicy",
        update="PutResourcePolicy",
        delete="DeleteResourcePolicy",
        read=None,
    ),
    data.DbInstance(
        "AWS::RDS::DBInstance", name="DBInstanceIdentifier", update="ModifyDBInstance", name_length=63, lower_name=True
    ),
    data.DbParameterGroup("AWS::RDS::DBParameterGroup", update=None, name_length=255, lower_name=True),
    GenericHandler("AWS::RDS::DBSubnetGroup", update="ModifyDBSubnetGroup", name_length=255, lower_name=True),
    messaging.Topic("AWS::SNS::Topic", read=None, update=None, name_length=256),
    messaging.Subscription(),
    messaging.TopicPolicy(),
    data.Secret("AWS::SecretsManager::Secret", read="DescribeSecret", name="Name"),
    data.SecretTargetAttachment(),
    data.Parameter("AWS::SSM::Parameter", create="PutParameter", update="PutParameter", read=None, name_length=128),
    data.Document("AWS::SSM::Document", read=None, update=None, name="Name", name_length=128),
    sagemaker.HyperPodClusterHandler("AWS::SageMaker::Cluster", aliases=("ClusterName",)),
    sagemaker.GovernanceHandler("AWS::SageMaker::ClusterSchedulerConfig"),
    sagemaker.GovernanceHandler("AWS::SageMaker::ComputeQuota"),
    sagemaker.ExtensionHandler(
        "AWS::SageMaker::Extension",
        create="CreateClusterExtension",
        read="DescribeClusterExtension",
        update="UpdateClusterExtension",
        delete="DeleteClusterExtension",
    ),
    GenericHandler("AWS::SageMaker::MlflowApp"),
    custom.AutoDeleteObjects(),
    custom.BucketDeployment(),
    custom.RestrictDefaultSecurityGroup(),
    custom.HelmRelease(),
    custom.FirstNodes(),
    custom.GuardDutyLeftovers(),
    custom.SdkCall(),
)

_BY_TYPE = {handler.type: handler for handler in HANDLERS}


def supports(resource_type: str) -> bool:
    return resource_type in _BY_TYPE


def handler_for(resource_type: str) -> ResourceHandler:
    """Return the type's handler. Templates with other types were rejected before."""
    return _BY_TYPE[resource_type]
