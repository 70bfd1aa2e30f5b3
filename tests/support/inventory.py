"""What there is in an account: whatever a deployment may leave behind."""

from collections.abc import Callable, Iterator
from typing import Any

from deployments import Cloud

EC2 = {
    "describe_vpcs": ("Vpcs", "VpcId"),
    "describe_subnets": ("Subnets", "SubnetId"),
    "describe_route_tables": ("RouteTables", "RouteTableId"),
    "describe_security_groups": ("SecurityGroups", "GroupId"),
    "describe_internet_gateways": ("InternetGateways", "InternetGatewayId"),
    "describe_addresses": ("Addresses", "AllocationId"),
    "describe_flow_logs": ("FlowLogs", "FlowLogId"),
}
NODES_LOGS = "/aws/sagemaker/Clusters/"
"""HyperPod makes these, and they outlive their clusters; each has the cluster's id in its name and meets no other."""
LISTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "amp": (("list_workspaces", "workspaces", "workspaceId"),),
    "cloudwatch": (("list_dashboards", "DashboardEntries", "DashboardName"),),
    "events": (("list_rules", "Rules", "Name"),),
    "fsx": (
        ("describe_file_systems", "FileSystems", "FileSystemId"),
        ("describe_data_repository_associations", "Associations", "AssociationId"),
    ),
    "grafana": (("list_workspaces", "workspaces", "id"),),
    "kms": (("list_aliases", "Aliases", "AliasName"),),
    "logs": (
        ("describe_log_groups", "logGroups", "logGroupName"),
        ("describe_metric_filters", "metricFilters", "filterName"),
        ("describe_resource_policies", "resourcePolicies", "policyName"),
    ),
    "rds": (
        ("describe_db_instances", "DBInstances", "DBInstanceIdentifier"),
        ("describe_db_subnet_groups", "DBSubnetGroups", "DBSubnetGroupName"),
    ),
    "s3": (("list_buckets", "Buckets", "Name"),),
    "sagemaker": (
        ("list_clusters", "ClusterSummaries", "ClusterName"),
        ("list_cluster_scheduler_configs", "ClusterSchedulerConfigSummaries", "ClusterSchedulerConfigId"),
        ("list_compute_quotas", "ComputeQuotaSummaries", "ComputeQuotaId"),
        ("list_mlflow_apps", "Summaries", "Arn"),
    ),
    "secretsmanager": (("list_secrets", "SecretList", "ARN"),),
    "sns": (("list_topics", "Topics", "TopicArn"), ("list_subscriptions", "Subscriptions", "SubscriptionArn")),
    "iam": (("list_roles", "Roles", "RoleName"),),
}


def inventory(cloud: Cloud) -> set[str]:
    """The name of everything."""
    return set(_everything(cloud))


def _everything(cloud: Cloud) -> Iterator[str]:
    for service, calls in LISTS.items():  # FSx among them, which lets go of network interfaces when it is asked
        for call, key, name in calls:
            yield from _named(cloud, service, call, key, name)
    for call, (key, name) in EC2.items():
        yield from _named(cloud, "ec2", call, key, name)
    subnets = {one["SubnetId"] for one in cloud.of("ec2").describe_subnets()["Subnets"]}
    for interface in cloud.of("ec2").describe_network_interfaces()["NetworkInterfaces"]:
        if interface["SubnetId"] in subnets:  # moto keeps those of NAT gateways, even without their subnets
            yield f"network interface {interface['NetworkInterfaceId']}"
    for endpoint in cloud.of("ec2").describe_vpc_endpoints()["VpcEndpoints"]:
        if endpoint["State"].lower() not in ("deleting", "deleted"):
            yield f"vpc endpoint {endpoint['VpcEndpointId']}"
    for gateway in cloud.of("ec2").describe_nat_gateways()["NatGateways"]:
        if gateway["State"] != "deleted":
            yield f"nat gateway {gateway['NatGatewayId']}"
    alarms = cloud.of("cloudwatch").describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    for kind in ("MetricAlarms", "CompositeAlarms"):
        yield from (f"alarm {alarm['AlarmName']}" for alarm in alarms.get(kind, ()))
    yield from (f"eks {name}" for name in cloud.of("eks").list_clusters()["clusters"])
    kms = cloud.of("kms")
    for key_id in (key["KeyId"] for key in kms.list_keys()["Keys"]):
        if kms.describe_key(KeyId=key_id)["KeyMetadata"]["KeyState"] != "PendingDeletion":
            yield f"key {key_id}"


def _named(cloud: Cloud, service: str, call: str, key: str, name: str) -> Iterator[str]:
    client = cloud.of(service)
    ask: Callable[..., Any] = getattr(client, call)
    pages = client.get_paginator(call).paginate() if client.can_paginate(call) else [ask()]
    for page in pages:
        yield from (
            f"{service} {call.partition('_')[2]} {one[name]}"
            for one in page.get(key, ())
            if not str(one[name]).startswith(NODES_LOGS)
        )
