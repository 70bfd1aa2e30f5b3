"""0xx: orderings in templates: what has to be there before something else is made."""

import re
from collections.abc import Iterator, Sequence

from holdfast.validation.cloudformation import UNRESOLVED, Resource, named
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.iam import POLICIES, grants_in, policies_of, role_of, roles_of_groups, scripts_uris
from holdfast.validation.model import App, Deployment, UnresolvedError, body_path, references_in, text_of

DEPENDS_ON = "CloudFormation reference, 'DependsOn attribute'"
CLUSTER = "AWS::SageMaker::Cluster"
_DELIVERIES = ("Custom::CDKBucketDeployment",)
_USES_ROLE = {"AWS::EKS::Cluster": "RoleArn", "AWS::EKS::Nodegroup": "NodeRole"}
_WITH_PODS = {
    "coredns",
    "cert-manager",
    "amazon-cloudwatch-observability",
    "aws-fsx-csi-driver",
    "aws-ebs-csi-driver",
    "metrics-server",
    "amazon-sagemaker-hyperpod-training-operator",
    "amazon-sagemaker-hyperpod-observability",
    "amazon-sagemaker-hyperpod-taskgovernance",
    "amazon-sagemaker-hyperpod-inference",
    "aws-efs-csi-driver",
    "aws-mountpoint-s3-csi-driver",
    "adot",
}
"""Add-ons with a Deployment, whose pods need a node before the add-on is active."""


@rule(
    "HF040",
    title="The cluster is created after the policies of its roles",
    each=App,
    source=f"{DEPENDS_ON}: policies of a role that a resource uses; field reports: 'Unable to retrieve subnets'",
)
def cluster_after_policies(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A role is there as soon as it is made; a policy that is a resource of its own comes later. HyperPod takes the role
    at once, and fails with "Unable to retrieve subnets" when the policy is not attached yet. The cluster depends on the
    policies, then. A policy that names the cluster cannot come before it; it is for what nodes do later.
    """
    for cluster, role in dict.fromkeys((cluster, role) for cluster, _group, role in roles_of_groups(app)):
        late = [policy for policy in _separate(app, role) if not is_before(app, policy, cluster)]
        late = [policy for policy in late if not is_before(app, cluster, policy)]
        if late:
            yield too_late(cluster, late, f"the policies of {role.logical_id}")
    for kind, path in _USES_ROLE.items():
        for resource, node in app.each(kind):
            used = role_of(node.get(path))
            if used is not None:
                late = [policy for policy in _separate(app, used) if not is_before(app, policy, resource)]
                if late:
                    yield too_late(resource, late, f"the policies of {used.logical_id}")


@rule(
    "HF041",
    title="The cluster is created after the routes and endpoints of its subnets",
    each=App,
    source=f"{DEPENDS_ON}; SageMaker developer guide, 'Prerequisites': lifecycle scripts come from S3",
)
def cluster_after_routes(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Nodes reach S3 as soon as they are made: by the default route of their subnets, or by a gateway endpoint where there
    is none. A cluster names its subnets only, so it has to depend on that way out.
    """
    for cluster, _properties in app.each(CLUSTER):
        for subnet in _subnets(app, cluster):
            for association in app.values.linked(["AWS::EC2::SubnetRouteTableAssociation"], ["SubnetId"], subnet).found:
                if association.template is not cluster.template:
                    continue
                table = app.node(association).get("RouteTableId").resource("AWS::EC2::RouteTable")
                if table is None:
                    continue
                ways = [
                    route
                    for route in app.values.linked(["AWS::EC2::Route"], ["RouteTableId"], table).found
                    if app.node(route).get("DestinationCidrBlock").value == "0.0.0.0/0"
                ]
                ways = ways or [
                    endpoint
                    for endpoint in app.values.linked(["AWS::EC2::VPCEndpoint"], ["RouteTableIds"], table).found
                    if not (text_of(app.node(endpoint).get("ServiceName").value) or "").endswith(".dynamodb")
                ]
                ways.append(association)
                late = [way for way in ways if not is_before(app, way, cluster)]
                if late:
                    yield too_late(cluster, late, f"the way out of {subnet.logical_id}")


@rule(
    "HF042",
    title="The cluster is created after its lifecycle scripts are uploaded",
    each=App,
    source=f"{DEPENDS_ON}; SageMaker developer guide, 'Lifecycle configuration': scripts are read when nodes are made",
)
def cluster_after_scripts(app: App, _: Deployment) -> Iterator[Broken]:
    """
    What uploads the scripts into the bucket is a resource of its own. A cluster that names the bucket waits for the
    bucket, not for what is put into it.
    """
    for cluster, properties in app.each(CLUSTER):
        expected = {
            found
            for group in properties.get("InstanceGroups").items() or ()
            for name in named(group.get("LifeCycleConfig", "SourceS3Uri").written)
            if (found := app.values.graph.find(cluster.template, name)) is not None and found.type == "AWS::S3::Bucket"
        }
        named_buckets = (
            (app.node(bucket).get("BucketName").value, bucket) for bucket, _node in app.each("AWS::S3::Bucket")
        )
        names = {name: bucket for name, bucket in named_buckets if isinstance(name, str)}
        for group in properties.get("InstanceGroups").items() or ():
            uri = group.get("LifeCycleConfig", "SourceS3Uri").value
            if isinstance(uri, str) and (bucket := names.get(uri.removeprefix("s3://").partition("/")[0])):
                expected.add(bucket)
        for delivery in _deliveries(app, cluster):
            held = {app.values.graph.find(delivery.template, name) for name in named(app.node(delivery).written)}
            if expected & held and not is_before(app, delivery, cluster):
                yield too_late(cluster, delivery, "what uploads the lifecycle scripts")


@rule(
    "HF043",
    title="Routes are created after the internet gateway is attached",
    each=App,
    source=f"{DEPENDS_ON}, 'Gateway attachment'",
)
def routes_after_attachment(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A route to an internet gateway, and an elastic IP in its VPC, need the gateway to be attached; nothing in them names
    the attachment. "The gateway is not attached to the VPC".
    """
    attachments = [each for each, _node in app.each("AWS::EC2::VPCGatewayAttachment")]
    for route, node in app.each("AWS::EC2::Route"):
        target = node.get("GatewayId")
        if target.value is UNRESOLVED:
            raise UnresolvedError(target.path)
        gateway = target.resource("AWS::EC2::InternetGateway")
        if gateway is None:
            continue
        own = [
            each
            for each in attachments
            if each.template is route.template
            and app.node(each).get("InternetGatewayId").resource("AWS::EC2::InternetGateway") is gateway
        ]
        unknown = [app.node(each).get("InternetGatewayId") for each in attachments if each.template is route.template]
        if not own and any(each.value is UNRESOLVED for each in unknown):
            raise UnresolvedError(unknown[0].path)
        if own and not any(is_before(app, each, route) for each in own):
            yield too_late(route, own[0], f"the attachment of {gateway.logical_id}")
        if not own and app.complete and not attachments and gateway.template is route.template:
            yield refused(
                f"{route.path}.GatewayId",
                f"{gateway.logical_id}, which is attached to no VPC",
                allowed="an attached gateway",
                fix="add an AWS::EC2::VPCGatewayAttachment",
            )


@rule(
    "HF044",
    title="File systems are created after the rules of their security groups",
    each=App,
    source="aws-parallelcluster 6181: FSx checks at creation that port 988 is open; " + DEPENDS_ON,
)
def file_systems_after_rules(app: App, _: Deployment) -> Iterator[Broken]:
    """
    FSx refuses a Lustre file system whose groups "do not permit Lustre LNET network traffic on port 988". Rules that
    are resources of their own come after the group, and the file system names the group only.
    """
    for file_system, node in app.each("AWS::FSx::FileSystem"):
        if node.get("FileSystemType").value not in ("LUSTRE", None):
            continue
        for entry in node.get("SecurityGroupIds").items() or ():
            group = entry.resource("AWS::EC2::SecurityGroup")
            if group is None or _inline_lustre(app, group):
                continue
            rules = [
                each
                for kind in ("Ingress", *(["Egress"] if app.node(group).get("SecurityGroupEgress").present else []))
                for each in app.values.linked([f"AWS::EC2::SecurityGroup{kind}"], ["GroupId"], group).found
                if each.template is file_system.template and _about_lustre(app, each)
            ]
            late = [each for each in rules if not is_before(app, each, file_system)]
            if late:
                yield too_late(file_system, late, f"what lets Lustre through in {group.logical_id}")


@rule(
    "HF045",
    title="Add-ons are created after nodes that can run them",
    each=App,
    source="EKS user guide, 'AWS add-ons'; awsome-distributed-ai, wait-for-hyperpod-nodes.sh",
)
def addons_after_nodes(app: App, _: Deployment) -> Iterator[Broken]:
    """
    An add-on with pods of its own is active when they run, and CloudFormation waits for that. Without a node they do
    not run: the creation times out and rolls back. The add-on depends on a node group or on the HyperPod cluster, and
    these do not depend on it.
    """
    for addon, node in app.each("AWS::EKS::Addon"):
        if str(node.get("AddonName").value) not in _WITH_PODS:
            continue
        nodes = [
            each
            for each, own in app.each("AWS::EKS::Nodegroup", "AWS::EKS::FargateProfile", CLUSTER)
            if each.template is addon.template
            and not each.conditional
            and (each.type != CLUSTER or own.get("Orchestrator", "Eks").present)
        ]
        if not nodes or any(is_before(app, each, addon) for each in nodes):
            continue
        others = [each for each in nodes if not is_before(app, addon, each)]
        if not others:
            names = ", ".join(each.logical_id for each in nodes)
            yield refused(
                f"{body_path(nodes[0])}.DependsOn",
                f"{names} after {addon.logical_id}, whose pods wait for nodes",
                allowed="an add-on after what brings nodes",
                fix=f"let {addon.logical_id} depend on {nodes[0].logical_id}, not the other way round",
            )
        else:
            yield too_late(addon, others[0], "what brings nodes")


@rule(
    "HF046",
    title="What calls another resource is created after the permission to call it",
    each=App,
    source=f"{DEPENDS_ON}; S3 user guide, 'Granting permissions to publish event notifications'",
)
def notifications_after_permissions(app: App, _: Deployment) -> Iterator[Broken]:
    """
    S3 checks that it may call a function or send to a queue or topic when the bucket's notification is set: "Unable to
    validate the following destination configurations". The bucket depends on the permission or policy.
    """
    for bucket, node in app.each("AWS::S3::Bucket"):
        notified = {each.resource for each in references_in(node.get("NotificationConfiguration").value)}
        for resource, properties in app.each(
            "AWS::Lambda::Permission", "AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy"
        ):
            about = {
                each.resource
                for each in references_in(
                    [
                        properties.get("FunctionName").value,
                        properties.get("Queues").value,
                        properties.get("Topics").value,
                    ]
                )
            }
            if about & notified and not is_before(app, resource, bucket) and bucket not in app.order.before(resource):
                yield too_late(bucket, resource, "the permission to call what it notifies")


def too_late(resource: Resource, needed: Resource | Sequence[Resource], what: str) -> Broken:
    others = [needed] if isinstance(needed, Resource) else needed
    names = [each.logical_id for each in others]
    construct, constructs = _construct(resource), list(dict.fromkeys(filter(None, map(_construct, others))))
    in_cdk = f"; in the CDK: let {construct} depend on {' and '.join(constructs)}" if construct and constructs else ""
    return refused(
        f"{body_path(resource)}.DependsOn",
        f"{resource.logical_id} without DependsOn {', '.join(names)}: {what}",
        allowed=f"{resource.logical_id} after {' and '.join(names)}",
        fix=f"add {', '.join(names)} to DependsOn of {resource.logical_id}{in_cdk}",
    )


def _construct(resource: Resource) -> str:
    """Path of the construct in its stack that made a resource; empty outside of the CDK."""
    path = str((resource.body.get("Metadata") or {}).get("aws:cdk:path", "")).removesuffix("/Resource")
    return re.sub(r"/(?:from|to) .*", "", path.partition("/")[2])  # rules are children of their security group


def is_before(app: App, first: Resource, second: Resource) -> bool:
    return first.template is not second.template or first in app.order.before(second) or first.conditional


def _separate(app: App, role: Resource) -> list[Resource]:
    return [
        each
        for each in policies_of(app, role)
        if each.type in (*POLICIES, "AWS::IAM::RolePolicy")
        and each not in app.order.before(role)
        and not _is_for_data(app, each)
    ]


def _is_for_data(app: App, policy: Resource) -> bool:
    """True for a policy about named buckets only, none of them one with lifecycle scripts."""
    grants = grants_in(app.node(policy).get("PolicyDocument"))
    actions = [action for grant in grants for action in grant.actions]
    texts = [text for grant in grants for text in grant.resources]
    uris = [text_of(uri.value) or "s3://${" for uri in scripts_uris(app)]
    return (
        all(grant.sure and not grant.all_but for grant in grants)
        and all(action.startswith("s3:") for action in actions)
        and all(re.fullmatch(r"arn:aws:s3:::[a-z0-9.-]+(/\*)?", text) for text in texts)
        and not any(
            uri.startswith(("s3://${", f"s3://{text.split(':')[5].split('/')[0]}")) for uri in uris for text in texts
        )
    )


def _subnets(app: App, cluster: Resource) -> list[Resource]:
    node = app.node(cluster)
    entries = list(node.get("VpcConfig", "Subnets").items() or ())
    for group in node.get("InstanceGroups").items() or ():
        entries += group.get("OverrideVpcConfig", "Subnets").items() or ()
    found = [entry.resource("AWS::EC2::Subnet") for entry in entries]
    return list(dict.fromkeys(each for each in found if each is not None))


def _deliveries(app: App, cluster: Resource) -> Iterator[Resource]:
    """Possible uploads into a bucket: custom resources of the cluster's template."""
    for resource in app.all():
        custom = resource.type.startswith("Custom::") or resource.type == "AWS::CloudFormation::CustomResource"
        if custom and resource.template is cluster.template:
            text = f"{resource.type} {resource.logical_id}".lower()
            if resource.type in _DELIVERIES or re.search(r"deploy|upload|copy|script|lifecycle|sync", text):
                yield resource


def _inline_lustre(app: App, group: Resource) -> bool:
    node = app.node(group)
    return any(_lets_988(each) for each in node.get("SecurityGroupIngress").items() or ())


def _about_lustre(app: App, resource: Resource) -> bool:
    return _lets_988(app.node(resource))


def _lets_988(node: object) -> bool:
    get = getattr(node, "get", None)
    if get is None:
        return False
    protocol, low, high = (get(name).value for name in ("IpProtocol", "FromPort", "ToPort"))
    if str(protocol) == "-1":
        return True
    try:
        return str(protocol) in ("tcp", "6") and int(low) <= 988 <= int(high)
    except (TypeError, ValueError):
        return False
