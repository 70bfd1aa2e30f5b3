"""The resource types, one row each. What a row leaves out follows from the schema and the service model."""

from holdfast.localcloud.aws.cloudformation.resources import (
    _custom,
    _data,
    _ec2,
    _eks,
    _first_nodes,
    _helm,
    _iam,
    _messaging,
    _s3,
    _sagemaker,
    _sdk_call,
    _stack,
    _watching,
)
from holdfast.localcloud.aws.cloudformation.resources._base import Handler
from holdfast.localcloud.aws.cloudformation.resources._generic import Generic

_LAMBDA = "arn:aws:lambda:{region}:{account}"

_HANDLERS: tuple[Handler, ...] = (
    _custom.Inert("AWS::CDK::Metadata"),
    _custom.Inert("AWS::CloudFormation::WaitConditionHandle"),
    _stack.NestedStack(),
    _watching.PrometheusWorkspace("AWS::APS::Workspace", service="amp", update="UpdateWorkspaceAlias"),
    _watching.RuleGroups("AWS::APS::RuleGroupsNamespace", service="amp", update="PutRuleGroupsNamespace"),
    _watching.Alarm(
        "AWS::CloudWatch::Alarm",
        create="PutMetricAlarm",
        update="PutMetricAlarm",
        delete="DeleteAlarms",
        name_length=255,
    ),
    _watching.Alarm(
        "AWS::CloudWatch::CompositeAlarm",
        noun="Alarm",
        create="PutCompositeAlarm",
        update="PutCompositeAlarm",
        delete="DeleteAlarms",
        name_length=255,
    ),
    _watching.Dashboard(
        "AWS::CloudWatch::Dashboard", create="PutDashboard", update="PutDashboard", delete="DeleteDashboards", read=None
    ),
    _ec2.Eip(
        "AWS::EC2::EIP",
        noun="Address",
        create="AllocateAddress",
        delete="ReleaseAddress",
        ref="PublicIp",
        tag_kind="elastic-ip",
    ),
    _ec2.FlowLog("AWS::EC2::FlowLog", create="CreateFlowLogs", delete="DeleteFlowLogs", tag_kind="vpc-flow-log"),
    Generic("AWS::EC2::InternetGateway"),
    _ec2.NatGateway("AWS::EC2::NatGateway", tag_kind="natgateway"),
    _ec2.Route(),
    Generic("AWS::EC2::RouteTable"),
    _ec2.SecurityGroup("AWS::EC2::SecurityGroup", ref="GroupId", name="GroupName"),
    _ec2.SecurityGroupRule("Egress"),
    _ec2.SecurityGroupRule("Ingress"),
    _ec2.Subnet("AWS::EC2::Subnet"),
    _ec2.Association(),
    _ec2.Vpc("AWS::EC2::VPC"),
    _ec2.VpcEndpoint("AWS::EC2::VPCEndpoint", delete="DeleteVpcEndpoints", tag_kind="vpc-endpoint"),
    _ec2.Attachment(),
    _data.Repository("AWS::ECR::Repository", lower_name=True, update=None),
    _eks.AccessEntry("AWS::EKS::AccessEntry"),
    _eks.Addon("AWS::EKS::Addon"),
    _eks.Cluster("AWS::EKS::Cluster", update="UpdateClusterConfig", name_length=100),
    _eks.Nodegroup("AWS::EKS::Nodegroup", name="NodegroupName", update="UpdateNodegroupConfig"),
    _eks.PodIdentityAssociation("AWS::EKS::PodIdentityAssociation"),
    _messaging.Rule(),
    Generic("AWS::FSx::DataRepositoryAssociation"),
    _data.FileSystem("AWS::FSx::FileSystem"),
    _watching.GrafanaWorkspace("AWS::Grafana::Workspace"),
    _iam.InstanceProfile("AWS::IAM::InstanceProfile", read="GetInstanceProfile", name_length=128),
    _iam.ManagedPolicy("AWS::IAM::ManagedPolicy", noun="Policy", read="GetPolicy", aliases=("Arn",), update=None),
    _iam.InlinePolicy(),
    _iam.Role("AWS::IAM::Role", read="GetRole"),
    _data.Key("AWS::KMS::Key", delete="ScheduleKeyDeletion", update=None),
    Generic("AWS::KMS::Alias", read=None),
    _custom.Inert("AWS::Lambda::Function", name="FunctionName", arn=f"{_LAMBDA}:function:{{name}}"),
    _custom.Inert("AWS::Lambda::LayerVersion", name="LayerName", arn=f"{_LAMBDA}:layer:{{name}}:1", ref_is_arn=True),
    _custom.Inert("AWS::Lambda::Permission"),
    _custom.Inert("AWS::Lambda::Version", arn=f"{_LAMBDA}:function:{{name}}:1", ref_is_arn=True),
    _watching.LogGroup("AWS::Logs::LogGroup", name_length=512),
    Generic("AWS::Logs::MetricFilter", create="PutMetricFilter", update="PutMetricFilter", read=None, ref="FilterName"),
    _s3.Bucket(),
    _s3.BucketPolicy(),
    Generic(
        "AWS::Logs::ResourcePolicy",
        create="PutResourcePolicy",
        update="PutResourcePolicy",
        delete="DeleteResourcePolicy",
        read=None,
    ),
    _data.DbInstance(
        "AWS::RDS::DBInstance", name="DBInstanceIdentifier", update="ModifyDBInstance", name_length=63, lower_name=True
    ),
    _data.DbParameterGroup("AWS::RDS::DBParameterGroup", update=None, name_length=255, lower_name=True),
    Generic("AWS::RDS::DBSubnetGroup", update="ModifyDBSubnetGroup", name_length=255, lower_name=True),
    _messaging.Topic("AWS::SNS::Topic", read=None, update=None, name_length=256),
    _messaging.Subscription(),
    _messaging.Policy("AWS::SNS::TopicPolicy", of="Topics", service="sns", default=""),
    _messaging.Queue("AWS::SQS::Queue", update=None, name_length=80),
    _messaging.Policy("AWS::SQS::QueuePolicy", of="Queues", service="sqs", default=""),
    _data.SecretPolicy(),
    _data.Secret("AWS::SecretsManager::Secret", read="DescribeSecret", name="Name"),
    _data.SecretTargetAttachment(),
    _data.Parameter("AWS::SSM::Parameter", create="PutParameter", update="PutParameter", read=None, name_length=128),
    _sagemaker.Cluster("AWS::SageMaker::Cluster", aliases=("ClusterName",)),
    _sagemaker.Governance("AWS::SageMaker::ClusterSchedulerConfig"),
    _sagemaker.Governance("AWS::SageMaker::ComputeQuota"),
    Generic("AWS::SageMaker::MlflowApp"),
    Generic("AWS::SageMaker::MlflowTrackingServer"),
    _custom.AutoDeleteObjects(),
    _custom.BucketDeployment(),
    _custom.RestrictDefaultSecurityGroup(),
    _helm.HelmRelease(),
    _first_nodes.FirstNodes(),
    _first_nodes.GuardDutyLeftovers(),
    _sdk_call.SdkCall(),
)

_BY_TYPE = {handler.type: handler for handler in _HANDLERS}


def supports(resource_type: str) -> bool:
    """Whether the type can be made here."""
    return resource_type in _BY_TYPE


def handler_for(resource_type: str) -> Handler:
    """The type's handler. The template check has refused types without one."""
    return _BY_TYPE[resource_type]
