"""Every resource type that provisioning needs: created, changed in place, deleted, and told by its service."""

import json
import time
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from footing import RIGHTS, TRUST

from holdfast.localcloud.aws import serve

REGION = "us-west-2"


def ref(name: str) -> dict[str, str]:
    return {"Ref": name}


def att(name: str, attribute: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [name, attribute]}


def resource(kind: str, needs: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"Type": kind, "Properties": properties, **({"DependsOn": needs} if needs else {})}


def role() -> dict[str, Any]:
    return resource(
        "AWS::IAM::Role",
        AssumeRolePolicyDocument=TRUST,
        Policies=[{"PolicyName": "nodes", "PolicyDocument": RIGHTS}],
    )


NETWORK = {
    "Vpc": resource("AWS::EC2::VPC", CidrBlock="10.1.0.0/16", EnableDnsSupport=True, EnableDnsHostnames=True),
    "SubnetA": resource("AWS::EC2::Subnet", VpcId=ref("Vpc"), CidrBlock="10.1.0.0/24", AvailabilityZone=f"{REGION}a"),
    "SubnetB": resource("AWS::EC2::Subnet", VpcId=ref("Vpc"), CidrBlock="10.1.1.0/24", AvailabilityZone=f"{REGION}b"),
    "Group": resource(
        "AWS::EC2::SecurityGroup",
        GroupDescription="nodes",
        VpcId=ref("Vpc"),
        SecurityGroupIngress=[{"IpProtocol": "-1", "CidrIp": "10.1.0.0/16"}],
    ),
}


class Cloud:
    """Clients of one embedded AWS, and waiting for stacks."""

    def __init__(self, reach: dict[str, str]) -> None:
        self._reach, self._made = reach, {}
        self.stacks = self.client("cloudformation")

    def client(self, service: str) -> Any:
        if service not in self._made:
            self._made[service] = boto3.client(service, region_name=REGION, **self._reach)
        return self._made[service]

    def close(self) -> None:
        for one in self._made.values():
            one.close()

    def create(self, name: str, resources: dict[str, Any], outputs: dict[str, Any] | None = None, **more: Any) -> str:
        self.stacks.create_stack(
            StackName=name, TemplateBody=body(resources, outputs), Capabilities=["CAPABILITY_NAMED_IAM"], **more
        )
        return self.settled(name)

    def update(self, name: str, resources: dict[str, Any], outputs: dict[str, Any] | None = None, **more: Any) -> str:
        self.stacks.update_stack(
            StackName=name, TemplateBody=body(resources, outputs), Capabilities=["CAPABILITY_NAMED_IAM"], **more
        )
        return self.settled(name)

    def delete(self, name: str) -> str:
        stack_id = self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
        self.stacks.delete_stack(StackName=name)
        return self.settled(stack_id)

    def settled(self, name: str) -> str:
        """The status it ends in; with the first reason when that is no success."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            status = str(self.stacks.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
            if not status.endswith("_IN_PROGRESS"):
                return status
            time.sleep(0.02)
        raise TimeoutError(name)

    def reasons(self, name: str) -> str:
        events = self.stacks.describe_stack_events(StackName=name)["StackEvents"]
        return "\n".join(
            f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
            for event in reversed(events)
            if event["ResourceStatus"].endswith("_FAILED") and "ResourceStatusReason" in event
        )

    def physical(self, name: str, logical_id: str) -> str:
        found = self.stacks.describe_stack_resource(StackName=name, LogicalResourceId=logical_id)
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def outputs(self, name: str) -> dict[str, str]:
        stack = self.stacks.describe_stacks(StackName=name)["Stacks"][0]
        return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def body(resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> str:
    told = {name: {"Value": value} for name, value in (outputs or {}).items()}
    return json.dumps({"Resources": resources, **({"Outputs": told} if told else {})})


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    with serve(home=tmp_path_factory.mktemp("cloud"), hyperpod="simulated") as running:
        cloud = Cloud(running.client_arguments)
        yield cloud
        cloud.close()


def changed(resources: dict[str, Any], **changes: dict[str, Any]) -> dict[str, Any]:
    """The resources with some properties changed; None takes one away."""
    result = json.loads(json.dumps(resources))
    for name, properties in changes.items():
        for key, value in properties.items():
            result[name]["Properties"][key] = value
            if value is None:
                del result[name]["Properties"][key]
    return result


EKS = {
    **NETWORK,
    "ClusterRole": role(),
    "NodeRole": role(),
    "PodRole": role(),
    "Eks": resource(
        "AWS::EKS::Cluster",
        Name="lab-eks",
        Version="1.33",
        RoleArn=att("ClusterRole", "Arn"),
        AccessConfig={"AuthenticationMode": "API", "BootstrapClusterCreatorAdminPermissions": False},
        ResourcesVpcConfig={
            "SubnetIds": [ref("SubnetA"), ref("SubnetB")],
            "SecurityGroupIds": [ref("Group")],
            "EndpointPrivateAccess": True,
            "EndpointPublicAccess": False,
        },
        Logging={"ClusterLogging": {"EnabledTypes": [{"Type": "api"}]}},
        Tags=[{"Key": "team", "Value": "lab"}],
    ),
    "Cni": resource("AWS::EKS::Addon", ClusterName=ref("Eks"), AddonName="vpc-cni", ResolveConflicts="OVERWRITE"),
    "Entry": resource(
        "AWS::EKS::AccessEntry", ClusterName=ref("Eks"), PrincipalArn=att("NodeRole", "Arn"), Type="HYPERPOD_LINUX"
    ),
    "Admin": resource(
        "AWS::EKS::AccessEntry",
        ClusterName=ref("Eks"),
        PrincipalArn=att("PodRole", "Arn"),
        AccessPolicies=[
            {
                "PolicyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
                "AccessScope": {"Type": "namespace", "Namespaces": ["default"]},
            }
        ],
    ),
    "Identity": resource(
        "AWS::EKS::PodIdentityAssociation",
        ClusterName=ref("Eks"),
        Namespace="kube-system",
        ServiceAccount="operator",
        RoleArn=att("PodRole", "Arn"),
    ),
    "System": resource(
        "AWS::EKS::Nodegroup",
        ClusterName=ref("Eks"),
        NodeRole=att("NodeRole", "Arn"),
        Subnets=[ref("SubnetA")],
        InstanceTypes=["m5.large"],
        ScalingConfig={"MinSize": 1, "MaxSize": 3, "DesiredSize": 2},
        Labels={"kind": "system"},
    ),
    "Device": resource(
        "Custom::HoldfastHelmRelease",
        ServiceToken="arn:aws:lambda:us-west-2:123456789012:function:helm",
        Release="device-plugin",
        Namespace="kube-system",
        Archive={"Url": f"https://codeload.github.com/aws/charts/tar.gz/{'a' * 40}"},
        ChartPath="charts/device-plugin",
        TreeSha256="b" * 64,
        Values='{"replicas": 2}',
    ),
}


@pytest.mark.e2e  # test_environments_deploy makes one with most of it
def test_an_eks_cluster_with_everything_that_belongs_to_it(cloud):
    outputs = {
        "Endpoint": att("Eks", "Endpoint"),
        "Arn": att("Eks", "Arn"),
        "Ca": att("Eks", "CertificateAuthorityData"),
        "Entry": att("Entry", "AccessEntryArn"),
        "Chart": att("Device", "ChartPath"),
        "Group": ref("System"),
    }
    assert cloud.create("eks", EKS, outputs) == "CREATE_COMPLETE", cloud.reasons("eks")
    eks, told = cloud.client("eks"), cloud.outputs("eks")
    cluster = eks.describe_cluster(name="lab-eks")["cluster"]
    node_role = eks.list_access_entries(clusterName="lab-eks")["accessEntries"]

    assert (cluster["status"], cluster["version"], cluster["tags"]["team"]) == ("ACTIVE", "1.33", "lab")
    assert (cluster["endpoint"], cluster["arn"]) == (told["Endpoint"], told["Arn"])
    assert cluster["logging"]["clusterLogging"][0] == {"types": ["api"], "enabled": True}
    assert eks.describe_addon(clusterName="lab-eks", addonName="vpc-cni")["addon"]["status"] == "ACTIVE"
    assert len(node_role) == 2
    assert told["Chart"] == "charts/device-plugin"
    policies = [
        policy
        for principal in node_role
        for policy in eks.list_associated_access_policies(clusterName="lab-eks", principalArn=principal)[
            "associatedAccessPolicies"
        ]
    ]
    assert policies[0]["accessScope"] == {"type": "namespace", "namespaces": ["default"]}
    group = eks.list_nodegroups(clusterName="lab-eks")["nodegroups"][0]
    assert told["Group"] == f"lab-eks/{group}"

    wanted = changed(
        EKS,
        Eks={"Version": "1.34", "Logging": {"ClusterLogging": {"EnabledTypes": []}}, "Tags": []},
        Cni={"ConfigurationValues": '{"a": 1}'},
        Admin={"AccessPolicies": [], "KubernetesGroups": ["viewers"]},
        System={"Labels": {"other": "x"}, "ScalingConfig": {"MinSize": 1, "MaxSize": 5, "DesiredSize": 3}},
        Identity={"RoleArn": att("NodeRole", "Arn")},
    )
    assert cloud.update("eks", wanted, outputs) == "UPDATE_COMPLETE", cloud.reasons("eks")
    cluster = eks.describe_cluster(name="lab-eks")["cluster"]
    group = eks.describe_nodegroup(clusterName="lab-eks", nodegroupName=group)["nodegroup"]
    associations = eks.list_pod_identity_associations(clusterName="lab-eks")["associations"]

    assert (cluster["version"], "team" in cluster["tags"]) == ("1.34", False)
    assert (group["labels"], group["scalingConfig"]["maxSize"]) == ({"other": "x"}, 5)
    addon = eks.describe_addon(clusterName="lab-eks", addonName="vpc-cni")["addon"]
    assert addon["configurationValues"] == '{"a": 1}'
    assert len(associations) == 1
    with pytest.raises(ClientError, match="Cluster has nodegroups attached"):
        eks.delete_cluster(name="lab-eks")

    assert cloud.delete("eks") == "DELETE_COMPLETE"
    assert eks.list_clusters()["clusters"] == []


WATCHING = {
    "Key": resource(
        "AWS::KMS::Key", KeyPolicy={"Version": "2012-10-17", "Statement": []}, EnableKeyRotation=True, Description="k"
    ),
    "Alias": resource("AWS::KMS::Alias", AliasName="alias/watching", TargetKeyId=ref("Key")),
    "Topic": resource(
        "AWS::SNS::Topic",
        TopicName="alerts",
        DisplayName="Alerts",
        KmsMasterKeyId=ref("Key"),
        Tags=[{"Key": "team", "Value": "lab"}],
    ),
    "Allowed": resource(
        "AWS::SNS::TopicPolicy",
        Topics=[ref("Topic")],
        PolicyDocument={
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "events.amazonaws.com"},
                    "Action": "sns:Publish",
                    "Resource": ref("Topic"),
                }
            ],
        },
    ),
    "Mail": resource("AWS::SNS::Subscription", TopicArn=ref("Topic"), Protocol="email", Endpoint="a@example.com"),
    "Rule": resource(
        "AWS::Events::Rule",
        Name="hyperpod",
        EventPattern={"source": ["aws.sagemaker"]},
        Targets=[
            {"Id": "topic", "Arn": ref("Topic")},
            {"Id": "log", "Arn": att("Log", "Arn"), "Input": '"x"'},
        ],
    ),
    "Log": resource("AWS::Logs::LogGroup", LogGroupName="/lab/events", RetentionInDays=7),
    "Filter": resource(
        "AWS::Logs::MetricFilter",
        LogGroupName=ref("Log"),
        FilterPattern='{ $.kind = "fault" }',
        MetricTransformations=[
            {
                "MetricName": "Faults",
                "MetricNamespace": "Lab",
                "MetricValue": "1",
                "Dimensions": [{"Key": "node", "Value": "$.node"}],
            }
        ],
    ),
    "LogPolicy": resource("AWS::Logs::ResourcePolicy", PolicyName="lab", PolicyDocument='{"Statement": []}'),
    "Alarm": resource(
        "AWS::CloudWatch::Alarm",
        AlarmName="faults",
        Namespace="Lab",
        MetricName="Faults",
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=0,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[ref("Topic")],
        TreatMissingData="notBreaching",
    ),
    "Both": resource(
        "AWS::CloudWatch::CompositeAlarm",
        ["Alarm"],
        AlarmName="any",
        AlarmRule="ALARM(faults)",
        AlarmActions=[ref("Topic")],
    ),
    "Board": resource("AWS::CloudWatch::Dashboard", DashboardName="lab", DashboardBody='{"widgets": []}'),
    "Prometheus": resource(
        "AWS::APS::Workspace",
        Alias="lab",
        KmsKeyArn=att("Key", "Arn"),
        LoggingConfiguration={"LogGroupArn": att("Log", "Arn")},
        AlertManagerDefinition="alertmanager_config: |\n  route: {}\n",
        Tags=[{"Key": "team", "Value": "lab"}],
    ),
    "Rules": resource(
        "AWS::APS::RuleGroupsNamespace", Workspace=ref("Prometheus"), Name="lab", Data="groups:\n  - name: a\n"
    ),
    "GrafanaRole": role(),
    "Grafana": resource(
        "AWS::Grafana::Workspace",
        Name="lab",
        AccountAccessType="CURRENT_ACCOUNT",
        AuthenticationProviders=["SAML"],
        PermissionType="CUSTOMER_MANAGED",
        RoleArn=att("GrafanaRole", "Arn"),
        DataSources=["PROMETHEUS"],
    ),
}


@pytest.mark.e2e  # test_environments_deploy makes most of them
def test_topics_rules_alarms_logs_prometheus_and_grafana(cloud):
    outputs = {"Remote": att("Prometheus", "PrometheusEndpoint"), "Grafana": att("Grafana", "Endpoint")}
    assert cloud.create("watching", WATCHING, outputs) == "CREATE_COMPLETE", cloud.reasons("watching")
    topic, told = cloud.physical("watching", "Topic"), cloud.outputs("watching")
    attributes = cloud.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]
    alarms = cloud.client("cloudwatch").describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    workspace = cloud.client("amp").list_workspaces()["workspaces"][0]
    described = cloud.client("amp").describe_workspace(workspaceId=workspace["workspaceId"])["workspace"]
    grafana = cloud.client("grafana").list_workspaces()["workspaces"][0]

    assert (attributes["DisplayName"], "events.amazonaws.com" in attributes["Policy"]) == ("Alerts", True)
    assert attributes["KmsMasterKeyId"] == cloud.physical("watching", "Key")
    assert [alarm["AlarmName"] for alarm in alarms["MetricAlarms"]] == ["faults"]
    assert [alarm["AlarmRule"] for alarm in alarms["CompositeAlarms"]] == ["ALARM(faults)"]
    remark = "accepted but not evaluated by the embedded CloudWatch: composite alarm"
    events = cloud.stacks.describe_stack_events(StackName="watching")["StackEvents"]
    assert ("Both", remark) in {(event["LogicalResourceId"], event.get("ResourceStatusReason")) for event in events}
    targets = cloud.client("events").list_targets_by_rule(Rule="hyperpod")["Targets"]
    assert {target["Id"] for target in targets} == {"topic", "log"}
    assert described["prometheusEndpoint"] == told["Remote"]
    assert (grafana["endpoint"], grafana["status"]) == (told["Grafana"], "ACTIVE")
    filters = cloud.client("logs").describe_metric_filters(logGroupName="/lab/events")["metricFilters"]
    assert filters[0]["metricTransformations"][0]["dimensions"] == {"node": "$.node"}

    wanted = changed(
        WATCHING,
        Topic={"DisplayName": "Louder", "Tags": []},
        Mail={"FilterPolicy": {"kind": ["fault"]}},
        Rule={"Targets": [{"Id": "topic", "Arn": ref("Topic")}], "State": "DISABLED"},
        Alarm={"Threshold": 5},
        Both={"AlarmRule": "NOT ALARM(faults)"},
        Log={"RetentionInDays": 30},
        Prometheus={"Alias": "other", "AlertManagerDefinition": None},
        Rules={"Data": "groups:\n  - name: b\n"},
        Grafana={"Description": "for the lab", "AuthenticationProviders": ["AWS_SSO"]},
        Key={"Description": "other", "EnableKeyRotation": False},
        Board={"DashboardBody": '{"widgets": [], "start": "-PT1H"}'},
    )
    assert cloud.update("watching", wanted, outputs) == "UPDATE_COMPLETE", cloud.reasons("watching")
    rule = cloud.client("events").describe_rule(Name="hyperpod")
    namespace = cloud.client("amp").describe_rule_groups_namespace(workspaceId=workspace["workspaceId"], name="lab")
    alarms = cloud.client("cloudwatch").describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])

    assert cloud.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]["DisplayName"] == "Louder"
    assert rule["State"] == "DISABLED"
    assert len(cloud.client("events").list_targets_by_rule(Rule="hyperpod")["Targets"]) == 1
    assert alarms["MetricAlarms"][0]["Threshold"] == 5
    assert alarms["CompositeAlarms"][0]["AlarmRule"] == "NOT ALARM(faults)"
    assert namespace["ruleGroupsNamespace"]["data"] == b"groups:\n  - name: b\n"
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        cloud.client("amp").describe_alert_manager_definition(workspaceId=workspace["workspaceId"])
    found = cloud.client("grafana").describe_workspace(workspaceId=grafana["id"])["workspace"]
    assert (found["description"], found["authentication"]["providers"]) == ("for the lab", ["AWS_SSO"])

    assert cloud.delete("watching") == "DELETE_COMPLETE"
    assert cloud.client("amp").list_workspaces()["workspaces"] == []
    assert cloud.client("grafana").list_workspaces()["workspaces"] == []
    assert cloud.client("cloudwatch").describe_alarms()["MetricAlarms"] == []


DATA = {
    **NETWORK,
    "Secret": resource(
        "AWS::SecretsManager::Secret",
        GenerateSecretString={
            "SecretStringTemplate": '{"username": "slurm"}',
            "GenerateStringKey": "password",
            "PasswordLength": 30,
            "ExcludeCharacters": " \"'@/",
        },
    ),
    "Attached": resource(
        "AWS::SecretsManager::SecretTargetAttachment",
        SecretId=ref("Secret"),
        TargetId=ref("Database"),
        TargetType="AWS::RDS::DBInstance",
    ),
    "Subnets": resource(
        "AWS::RDS::DBSubnetGroup", DBSubnetGroupDescription="d", SubnetIds=[ref("SubnetA"), ref("SubnetB")]
    ),
    "Parameters": resource(
        "AWS::RDS::DBParameterGroup", Description="p", Family="mariadb10.11", Parameters={"max_connections": "200"}
    ),
    "Database": resource(
        "AWS::RDS::DBInstance",
        DBInstanceClass="db.t4g.small",
        Engine="mariadb",
        AllocatedStorage="20",
        MasterUsername={"Fn::Sub": "{{resolve:secretsmanager:${Secret}:SecretString:username::}}"},
        MasterUserPassword={"Fn::Sub": "{{resolve:secretsmanager:${Secret}:SecretString:password::}}"},
        DBSubnetGroupName=ref("Subnets"),
        DBParameterGroupName=ref("Parameters"),
        VPCSecurityGroups=[ref("Group")],
        StorageEncrypted=True,
        BackupRetentionPeriod=1,
    ),
    "Home": resource(
        "AWS::FSx::FileSystem",
        FileSystemType="OPENZFS",
        StorageCapacity=64,
        StorageType="SSD",
        SubnetIds=[ref("SubnetA")],
        SecurityGroupIds=[ref("Group")],
        OpenZFSConfiguration={
            "DeploymentType": "SINGLE_AZ_HA_2",
            "ThroughputCapacity": 160,
            "RootVolumeConfiguration": {
                "NfsExports": [{"ClientConfigurations": [{"Clients": "*", "Options": ["rw"]}]}]
            },
        },
    ),
    "Scratch": resource(
        "AWS::FSx::FileSystem",
        FileSystemType="LUSTRE",
        FileSystemTypeVersion="2.15",
        StorageCapacity=38400,
        StorageType="SSD",
        SubnetIds=[ref("SubnetA")],
        SecurityGroupIds=[ref("Group")],
        LustreConfiguration={
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 125,
            "EfaEnabled": True,
            "MetadataConfiguration": {"Mode": "AUTOMATIC"},
            "DataCompressionType": "LZ4",
        },
    ),
    "Endpoint": resource(
        "AWS::EC2::VPCEndpoint",
        VpcId=ref("Vpc"),
        ServiceName=f"com.amazonaws.{REGION}.ssm",
        VpcEndpointType="Interface",
        PrivateDnsEnabled=True,
        SubnetIds=[ref("SubnetA")],
        SecurityGroupIds=[ref("Group")],
    ),
    "Repository": resource("AWS::ECR::Repository", RepositoryName="training", ImageTagMutability="IMMUTABLE"),
}


def test_databases_secrets_file_systems_and_endpoints(cloud):
    outputs = {
        "Host": att("Database", "Endpoint.Address"),
        "Port": att("Database", "Endpoint.Port"),
        "Volume": att("Home", "RootVolumeId"),
        "Dns": att("Home", "DNSName"),
        "Mount": att("Scratch", "LustreMountName"),
    }
    assert cloud.create("data", DATA, outputs) == "CREATE_COMPLETE", cloud.reasons("data")
    told = cloud.outputs("data")
    secret = json.loads(
        cloud.client("secretsmanager").get_secret_value(SecretId=cloud.physical("data", "Secret"))["SecretString"]
    )
    database = cloud.client("rds").describe_db_instances()["DBInstances"][0]
    systems = {one["FileSystemType"]: one for one in cloud.client("fsx").describe_file_systems()["FileSystems"]}

    assert (secret["host"], secret["username"], len(secret["password"])) == (told["Host"], "slurm", 30)
    assert (database["MasterUsername"], database["Engine"]) == ("slurm", "mariadb")
    assert systems["OPENZFS"]["OpenZFSConfiguration"]["RootVolumeId"] == told["Volume"]
    assert systems["OPENZFS"]["OpenZFSConfiguration"]["ThroughputCapacity"] == 160
    assert systems["LUSTRE"]["LustreConfiguration"]["EfaEnabled"] is True

    wanted = changed(
        DATA,
        Database={"BackupRetentionPeriod": 7, "AllocatedStorage": "30"},
        Home={
            "StorageCapacity": 128,
            "OpenZFSConfiguration": {**DATA["Home"]["Properties"]["OpenZFSConfiguration"], "ThroughputCapacity": 320},
        },
        Endpoint={"SubnetIds": [ref("SubnetA"), ref("SubnetB")]},
        Parameters={"Parameters": {"max_connections": "300"}},
    )
    assert cloud.update("data", wanted, outputs) == "UPDATE_COMPLETE", cloud.reasons("data")
    database = cloud.client("rds").describe_db_instances()["DBInstances"][0]
    systems = {one["FileSystemType"]: one for one in cloud.client("fsx").describe_file_systems()["FileSystems"]}
    endpoint = cloud.client("ec2").describe_vpc_endpoints(VpcEndpointIds=[cloud.physical("data", "Endpoint")])

    assert (database["BackupRetentionPeriod"], database["AllocatedStorage"]) == (7, 30)
    assert systems["OPENZFS"]["OpenZFSConfiguration"]["ThroughputCapacity"] == 320
    assert systems["OPENZFS"]["StorageCapacity"] == 128
    assert len(endpoint["VpcEndpoints"][0]["SubnetIds"]) == 2

    assert cloud.delete("data") == "DELETE_COMPLETE", cloud.reasons("data")
    assert cloud.client("fsx").describe_file_systems()["FileSystems"] == []
    assert cloud.client("rds").describe_db_instances()["DBInstances"] == []
