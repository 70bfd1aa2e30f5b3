"""A second set of apps that AWS's documentation allows."""

import aws_cdk as cdk
from aws_cdk import aws_budgets as budgets
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_eks as eks_l1
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from parts import App, case, eks, lustre, plain, private_vpc, self_referencing_group

APPS: dict[str, App] = {}


@case(APPS, page="sns/latest/dg/sns-access-policy-use-cases.html")
def events_by_mail(stack: cdk.Stack) -> None:
    plain(stack)
    topic = sns.Topic(stack, "Topic", enforce_ssl=True)
    topic.add_subscription(subscriptions.EmailSubscription("oncall@example.com"))
    pattern = events.EventPattern(
        source=["aws.sagemaker"], detail_type=["SageMaker HyperPod Cluster Node Health Event"]
    )
    events.Rule(stack, "Rule", event_pattern=pattern, targets=[targets.SnsTopic(topic)])


@case(APPS, page="AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html")
def alarm_by_mail(stack: cdk.Stack) -> None:
    plain(stack)
    topic = sns.Topic(stack, "Topic")
    metric = cloudwatch.Metric(
        namespace="AWS/FSx",
        metric_name="FreeDataStorageCapacity",
        dimensions_map={"FileSystemId": "fs-0123456789abcdef0"},
        statistic="Minimum",
    )
    alarm = metric.create_alarm(
        stack,
        "Full",
        threshold=1e12,
        evaluation_periods=3,
        comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
    )
    alarm.add_alarm_action(actions.SnsAction(topic))


@case(APPS, page="cost-management/latest/userguide/budgets-sns-policy.html")
def budget_of_the_cluster(stack: cdk.Stack) -> None:
    plain(stack)
    topic = sns.Topic(stack, "Topic")
    topic.grant_publish(iam.ServicePrincipal("budgets.amazonaws.com"))
    notification = {"comparisonOperator": "GREATER_THAN", "notificationType": "FORECASTED", "threshold": 100}
    subscribers = [{"subscriptionType": "SNS", "address": topic.topic_arn}]
    budgets.CfnBudget(
        stack,
        "Budget",
        budget={"budgetType": "COST", "timeUnit": "MONTHLY", "budgetLimit": {"amount": 250000, "unit": "USD"}},
        notifications_with_subscribers=[{"notification": notification, "subscribers": subscribers}],
    )


@case(APPS, page="eks/latest/userguide/pod-id-role.html")
def pods_with_a_role(stack: cdk.Stack) -> None:
    control, _ = eks(stack)
    principal = iam.SessionTagsPrincipal(iam.ServicePrincipal("pods.eks.amazonaws.com"))
    role = iam.Role(stack, "Role", assumed_by=principal)
    eks_l1.CfnPodIdentityAssociation(
        stack,
        "Identity",
        cluster_name=control.cluster_name,
        namespace="jobs",
        service_account="trainer",
        role_arn=role.role_arn,
    )


@case(APPS, page="fsx/latest/LustreGuide/using-fsx-lustre.html")
def scratch_of_the_app(stack: cdk.Stack) -> None:
    vpc = private_vpc(stack)
    group = self_referencing_group(stack, vpc)
    scratch = lustre(
        stack,
        "Scratch",
        subnet_ids=[vpc.private_subnets[0].subnet_id],
        security_group_ids=[group.security_group_id],
        lustre_configuration={"deploymentType": "SCRATCH_2", "weeklyMaintenanceStartTime": "7:03:30"},
    )
    scratch.node.add_dependency(group)
    mount = {"dnsName": scratch.attr_dns_name, "mountName": scratch.attr_lustre_mount_name, "mountPath": "/scratch"}
    plain(stack, vpc=vpc, group=group, workers={"instanceStorageConfigs": [{"fsxLustreConfig": mount}]})


@case(APPS, page="eks/latest/userguide/creating-access-entries.html")
def entry_of_a_team(stack: cdk.Stack) -> None:
    control, _ = eks(stack)
    eks_l1.CfnAccessEntry(
        stack,
        "Entry",
        cluster_name=control.cluster_name,
        principal_arn="arn:aws:iam::111122223333:role/teams/Research",
        kubernetes_groups=["research"],
        access_policies=[
            {
                "policyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy",
                "accessScope": {"type": "namespace", "namespaces": ["hyperpod-ns-research"]},
            }
        ],
    )
