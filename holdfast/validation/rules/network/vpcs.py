"""2xx: networks of templates as a whole: what a closed one needs, peering, resolvers, control planes."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import Node, Resource, named
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.iam import BUCKET, Grant, grants_in, resources_of, scripts_buckets
from holdfast.validation.model import App, Deployment, may_be, references_in, text_of
from holdfast.validation.rules.eks import network_of, vpcs_of
from holdfast.validation.rules.network.endpoints import GATEWAY, service_of
from holdfast.validation.rules.network.routes import ROUTES
from holdfast.validation.rules.network.templates import ENDPOINT, GROUP, SUBNET, VPC

PRIVATE = "EKS user guide, 'Deploy private clusters with limited internet access'"
NEEDED = ("ec2", "ecr.api", "ecr.dkr", "sts")


@rule("HF240", title="Policies of VPC endpoints allow something", each=App, source=f"{GATEWAY}, 'Endpoint policies'")
def endpoint_policies(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A policy on an endpoint is on top of those of roles and buckets. One that denies everything, or allows nothing,
    closes the endpoint.
    """
    for endpoint, node in app.each(ENDPOINT):
        grants = grants_in(node.get("PolicyDocument"))
        if not grants or not all(each.effect and each.sure for each in grants):
            continue
        service = service_of(node)
        action = {"s3": "s3:GetObject", "dynamodb": "dynamodb:GetItem"}.get(service or "", "")
        denies = [
            each
            for each in grants
            if each.effect == "Deny"
            and not each.conditions
            and each.resources == ("*",)
            and (each.actions == ("*",) or (action and each.names(action)))
        ]
        if denies or not any(each.effect == "Allow" for each in grants):
            place = denies[0].path if denies else f"{endpoint.path}.PolicyDocument"
            yield refused(
                place,
                f"a policy of {endpoint.logical_id} under which nothing passes",
                allowed="one that allows what the nodes do",
                fix="remove the policy, or allow what is needed",
            )
        elif service == "s3":
            yield from _scripts_shut_out(app, endpoint, grants)


def _scripts_shut_out(app: App, endpoint: Resource, grants: list[Grant]) -> Iterator[Broken]:
    """Buckets of lifecycle scripts that a policy leaves out."""
    entries = [
        entry
        for grant in grants
        if grant.effect == "Allow" and grant.names("s3:GetObject")
        for entry in resources_of(grant)
    ]
    for bucket in scripts_buckets(app):
        if entries and not any(
            _may_name(entry, bucket, app.node(bucket).get("BucketName").text()) for entry in entries
        ):
            yield refused(
                f"{endpoint.path}.PolicyDocument",
                f"a policy of {endpoint.logical_id} without {bucket.logical_id}, which has the lifecycle scripts",
                allowed="one that lets nodes read their scripts",
                fix=f"allow s3:GetObject on {bucket.logical_id} too",
            )


def _may_name(entry: Node, bucket: Resource, name: object) -> bool:
    named = {each.resource for each in references_in(entry.value) if each.resource.type == BUCKET}
    pattern = text_of(entry.value)
    if named or pattern is None or not isinstance(name, str):
        return not named or bucket in named
    return may_be(pattern, service="s3", resource=f"{name}/a")


@rule(
    "HF250",
    title="Security groups of nodes are of the VPC of their subnets",
    each=App,
    source="SageMaker API reference, VpcConfig; EC2 user guide: a security group is for resources of its VPC",
)
def one_vpc(app: App, _: Deployment) -> Iterator[Broken]:
    """A network interface has security groups of its own VPC."""
    for _cluster, node in app.each("AWS::SageMaker::Cluster"):
        groups = node.get("InstanceGroups").items() or ()
        for config in (node.get("VpcConfig"), *(each.get("OverrideVpcConfig") for each in groups)):
            subnets = [each.resource(SUBNET) for each in config.get("Subnets").items() or ()]
            vpcs = {_vpc(app, each) for each in subnets}
            for entry in config.get("SecurityGroupIds").items() or ():
                group = entry.resource(GROUP)
                own = _vpc(app, group)
                if group is not None and own is not None and vpcs and None not in vpcs and own not in vpcs:
                    yield refused(
                        f"{group.path}.VpcId",
                        f"another VPC than that of {', '.join(each.logical_id for each in subnets if each)}",
                        allowed="the VPC of the nodes' subnets",
                        fix="name the VPC of the subnets",
                    )


def _vpc(app: App, resource: Resource | None) -> Resource | str | None:
    """VPC of a resource: of the app, or by its id."""
    node = None if resource is None else app.node(resource).get("VpcId")
    return None if node is None else node.resource(VPC) or (node.value if isinstance(node.value, str) else None)


@rule("HF241", title="A closed network has the VPC endpoints that EKS needs", each=App, source=PRIVATE)
def closed_eks(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Nodes in a VPC without a way out reach EC2, the registry (its API, its images and S3 behind it) and STS through
    endpoints, and the EKS Auth API where pods have roles by Pod Identity.
    """
    for vpc, _node in app.each(VPC):
        endpoints = app.values.linked([ENDPOINT], ["VpcId"], vpc)
        services = {service_of(app.node(each)) for each in endpoints.found}
        ways_out = any(
            app.node(each).get("VpcId").resource(VPC) is vpc
            for each, _own in app.each("AWS::EC2::VPCGatewayAttachment")
        ) or any(
            True
            for _each in app.each(
                "AWS::EC2::NatGateway", "AWS::EC2::TransitGatewayAttachment", "AWS::EC2::VPCPeeringConnection"
            )
        )
        interfaces = [each for each in endpoints.found if app.node(each).get("VpcEndpointType").value == "Interface"]
        if ways_out or not interfaces or None in services or not endpoints.complete or not app.complete:
            continue
        if not any(
            vpc in vpcs_of(app, own.get("ResourcesVpcConfig", "SubnetIds"))
            for _each, own in app.each("AWS::EKS::Cluster")
        ):
            continue
        needed = [*NEEDED, "s3"]
        agents = [
            own for _each, own in app.each("AWS::EKS::Addon") if own.get("AddonName").value == "eks-pod-identity-agent"
        ]
        needed += ["eks-auth"] * bool(agents or any(True for _each in app.each("AWS::EKS::PodIdentityAssociation")))
        missing = [each for each in needed if each not in services]
        if missing:
            yield refused(
                f"{vpc.path}.CidrBlock",
                f"{vpc.logical_id}, closed, without endpoints for {', '.join(missing)}",
                allowed="one for each in a network without a way out",
                fix=f"add endpoints for {', '.join(missing)}",
            )


@rule("HF242", severity="warning", title="A NAT gateway is the target of a route", each=App, source=ROUTES)
def unused_nat(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A NAT gateway costs by the hour. One without a default route to it is unused. Routes to one that a template
    gives to others, in an output, may be there.
    """
    routes = [node for _route, node in app.each("AWS::EC2::Route")]
    if not app.complete or any(
        not node.get("NatGatewayId").known and node.get("NatGatewayId").present for node in routes
    ):
        return
    for nat, _node in app.each("AWS::EC2::NatGateway"):
        leading = [
            node
            for node in routes
            if node.get("NatGatewayId").resource("AWS::EC2::NatGateway") is nat
            and node.get("DestinationCidrBlock").value in ("0.0.0.0/0", None)
        ]
        if not leading and nat.logical_id not in named(dict(nat.template.section("Outputs"))):
            yield Broken(
                path=f"{nat.path}.SubnetId",
                message=f"no default route leads to {nat.logical_id}",
                fix="add a route 0.0.0.0/0 to it in the private subnets' route table",
            )


@rule(
    "HF243",
    title="VPC peering is between networks that do not overlap",
    each=App,
    source="VPC peering guide, 'VPC peering limitations'",
)
def peering(app: App, _: Deployment) -> Iterator[Broken]:
    """A VPC is not peered with itself, and blocks of peers do not overlap: a route to one's own block never leaves."""
    for connection, node in app.each("AWS::EC2::VPCPeeringConnection"):
        own, peer = node.get("VpcId").resource(VPC), node.get("PeerVpcId").resource(VPC)
        if own is not None and own is peer:
            yield refused(
                f"{connection.path}.PeerVpcId",
                f"{own.logical_id} with itself",
                allowed="another VPC",
                fix="name the VPC of the peer",
            )
    for route, node in app.each("AWS::EC2::Route"):
        table = node.get("RouteTableId").resource("AWS::EC2::RouteTable")
        vpc = app.node(table).get("VpcId").resource(VPC) if table is not None else None
        block, destination = (
            (network_of(app.node(vpc).get("CidrBlock").value) if vpc else None),
            network_of(node.get("DestinationCidrBlock").value),
        )
        if (
            node.get("VpcPeeringConnectionId").present
            and block is not None
            and destination is not None
            and destination.subnet_of(block)
        ):
            yield refused(
                f"{route.path}.DestinationCidrBlock",
                f"{destination}, of this VPC's own block {block}",
                allowed="the block of the peer",
                fix="write the peer's block",
            )


@rule(
    "HF245",
    title="The VPC resolves names by Amazon's resolver",
    each=App,
    source="EKS user guide, 'Cluster API server endpoint': AmazonProvidedDNS in the DHCP options",
)
def resolvers(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The private endpoint of EKS, private DNS of interface endpoints and the names of file systems are known to Amazon's
    resolver only: AmazonProvidedDNS has to be among the DHCP option set's servers.
    """
    used = any(True for _each in app.each("AWS::EKS::Cluster", "AWS::FSx::FileSystem", ENDPOINT))
    for options, node in app.each("AWS::EC2::DHCPOptions"):
        servers = node.get("DomainNameServers").items() or []
        texts = [entry.value for entry in servers]
        if used and texts and all(isinstance(text, str) for text in texts) and "AmazonProvidedDNS" not in texts:
            yield refused(
                f"{options.path}.DomainNameServers",
                f"{', '.join(map(str, texts))} alone",
                allowed="AmazonProvidedDNS, or a resolver that asks it",
                fix="write AmazonProvidedDNS",
            )


@rule(
    "HF247",
    title="Groups of an EKS cluster are in its VPC",
    each=App,
    source="SageMaker developer guide, EKS prerequisites; SageMaker API reference, ClusterInstanceGroupSpecification, "
    "OverrideVpcConfig; that HyperPod refuses it: assumed",
)
def groups_in_eks_vpc(app: App, _: Deployment) -> Iterator[Broken]:
    """Nodes join the control plane through the network interfaces that EKS has in its own VPC."""
    for _cluster, node in app.each("AWS::SageMaker::Cluster"):
        eks = node.get("Orchestrator", "Eks", "ClusterArn").resource("AWS::EKS::Cluster")
        if eks is None:
            continue
        own = vpcs_of(app, app.node(eks).get("ResourcesVpcConfig", "SubnetIds"))
        configs = [node.get("VpcConfig")]
        configs += [group.get("OverrideVpcConfig") for group in node.get("InstanceGroups").items() or ()]
        for config in configs:
            others = [each for each in vpcs_of(app, config.get("Subnets")) if each not in own]
            if own and others:
                yield refused(
                    f"{config.path}.Subnets",
                    f"subnets of {_names(others)}",
                    allowed=f"subnets of {_names(own)}, where {eks.logical_id} is",
                    fix="take subnets of that VPC",
                )


def _names(resources: list[Resource]) -> str:
    return ", ".join(sorted(each.logical_id for each in resources))
