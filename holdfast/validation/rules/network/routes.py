"""2xx: routes, NAT gateways and what belongs to one VPC."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import UNRESOLVED, Node, Resource
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import App, Deployment
from holdfast.validation.rules.network.templates import ANYWHERE, ENDPOINT, GROUP, SUBNET, VPC, node_subnets, vpc_of

ROUTES = "VPC user guide, 'Route table concepts' and 'NAT gateways'"
ROUTE, TABLE, ASSOCIATION = "AWS::EC2::Route", "AWS::EC2::RouteTable", "AWS::EC2::SubnetRouteTableAssociation"
DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock")


@rule("HF235", title="NAT gateways are in a subnet with a route to the internet", each=App, source=ROUTES)
def nat_subnets(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A public NAT gateway is in a subnet whose route table leads to an internet gateway, and has an elastic IP address.
    In the private subnet that it is for, it leads back to itself.
    """
    for nat, node in app.each("AWS::EC2::NatGateway"):
        private = node.get("ConnectivityType").value == "private"
        subnet = node.get("SubnetId").resource(SUBNET)
        if not private and not node.get("AllocationId").present and not node.get("AvailabilityMode").present:
            yield refused(
                f"{nat.path}.AllocationId",
                "a public NAT gateway without an address",
                allowed="AllocationId of an elastic IP",
                fix="add AllocationId, or ConnectivityType: private",
            )
        routes = None if subnet is None else routes_of(app, subnet)
        if subnet is None or routes is None:
            continue
        public = any(_is_default(app.node(each)) and app.node(each).get("GatewayId").present for each in routes)
        if private and public:
            yield refused(
                f"{nat.path}.ConnectivityType",
                f"a private NAT gateway in {subnet.logical_id}, whose internet gateway drops what comes from it",
                allowed="a public NAT gateway as the way to the internet",
                fix="remove ConnectivityType, and add AllocationId of an elastic IP",
            )
        elif not private and not public:
            own = any(app.node(each).get("NatGatewayId").resource("AWS::EC2::NatGateway") is nat for each in routes)
            what = "whose way out is the NAT gateway itself" if own else "without a route to an internet gateway"
            yield refused(
                f"{nat.path}.SubnetId",
                f"{subnet.logical_id}, {what}",
                allowed="a public subnet",
                fix="put it into a subnet with a route to the internet gateway",
            )


@rule("HF236", title="Routes have one target, and no two have the same destination", each=App, source=ROUTES)
def routes_lead(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A route has one target, of the VPC of its table; a destination stands once in a table. A gateway of another VPC, or
    a target property for another kind of gateway, is refused.
    """
    seen: dict[tuple[Resource, str], Resource] = {}
    for route, node in app.each(ROUTE):
        table = node.get("RouteTableId").resource(TABLE)
        block = next(
            (
                node.get(name).value
                for name in ("DestinationCidrBlock", "DestinationIpv6CidrBlock")
                if node.get(name).present
            ),
            None,
        )
        if table is not None and isinstance(block, str) and not route.conditional:
            if (table, block) in seen:
                yield refused(
                    f"{route.path}.DestinationCidrBlock",
                    f"{block} again, after {seen[table, block].logical_id}",
                    allowed="each destination once in a route table",
                    fix="remove one of the two routes",
                )
            seen.setdefault((table, block), route)
        targets = [name for name in _TARGETS if node.get(name).present]
        if not targets:
            yield refused(
                route.path,
                "a route without a target",
                allowed="one target, such as NatGatewayId",
                fix="add GatewayId for an internet gateway, or NatGatewayId",
            )
        elif len(targets) > 1:
            yield refused(route.path, " and ".join(targets), allowed="one target", fix="keep one of them")
        for name in targets:
            held = getattr(node.get(name).value, "resource", None)
            expected = _TARGETS[name]
            if held is not None and held.type.startswith("AWS::") and held.type not in expected:
                better = next((each for each, kinds in _TARGETS.items() if held.type in kinds), None)
                yield refused(
                    f"{route.path}.{name}",
                    f"{held.logical_id}, of type {held.type}",
                    allowed=f"{' or '.join(expected)}",
                    fix=f"write {better}" if better else "name a gateway",
                )
        yield from _other_vpc(app, route, node, table)


@rule(
    "HF237",
    title="Private subnets have a route table of their own",
    each=App,
    source=f"{ROUTES}: subnet route table associations",
)
def subnets_have_tables(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A subnet without an association uses the VPC's main route table, which leads nowhere but inside: its nodes reach
    neither S3 nor anything else. E3022 reports a subnet with two.
    """
    seen: set[Resource] = set()
    for association, node in app.each(ASSOCIATION):
        subnet = node.get("SubnetId").resource(SUBNET)
        table = node.get("RouteTableId").resource(TABLE)
        if subnet is not None and not association.conditional:
            seen.add(subnet)
        if subnet is not None and table is not None:
            one, other = vpc_of(app, subnet), vpc_of(app, table)
            if one is not None and other is not None and one is not other:
                yield refused(
                    association.path,
                    f"a subnet of {one.logical_id} and a route table of {other.logical_id}",
                    allowed="both of one VPC",
                    fix="name a route table of the subnet's VPC",
                )
    associations = app.values.graph.of_type(ASSOCIATION)
    if not app.complete or any(app.node(each).get("SubnetId").resource(SUBNET) is None for each in associations):
        return
    for subnet in node_subnets(app):
        has_routes = any(vpc_of(app, table) is vpc_of(app, subnet) for table, _node in app.each(TABLE))
        if subnet not in seen and has_routes:
            yield refused(
                f"{subnet.path}.VpcId",
                f"{subnet.logical_id}, a subnet of nodes without a route table",
                allowed="an association with one that leads to S3 and out",
                fix=f"add an AWS::EC2::SubnetRouteTableAssociation for {subnet.logical_id}",
            )


@rule(
    "HF239",
    title="Resources that work together are in one VPC",
    each=App,
    source="VPC user guide, 'Security groups'; API reference of each service: subnets and groups of one VPC",
)
def one_vpc(app: App, _: Deployment) -> Iterator[Broken]:
    """Subnets and security groups of a cluster, a file system, a database or an endpoint belong to one VPC."""
    for resource in app.all():
        node = app.node(resource)
        for holder in _holders(resource.type, node):
            subnets = [
                entry.resource(SUBNET) for name in ("Subnets", "SubnetIds") for entry in holder.get(name).items() or ()
            ]
            groups = [
                entry.resource(GROUP)
                for name in ("SecurityGroupIds", "VPCSecurityGroups")
                for entry in holder.get(name).items() or ()
            ]
            vpcs: dict[Resource, Resource] = {}
            for each in (*subnets, *groups):
                vpc = vpc_of(app, each) if each is not None else None
                if each is not None and vpc is not None:
                    vpcs.setdefault(vpc, each)
            own = holder.get("VpcId").resource(VPC) if resource.type == ENDPOINT else None
            if own is not None and vpcs:
                vpcs.setdefault(own, resource)
            if len(vpcs) > 1:
                names = ", ".join(f"{each.logical_id} of {vpc.logical_id}" for vpc, each in vpcs.items())
                yield refused(
                    holder.path, names, allowed="all of one VPC", fix="name subnets and security groups of one VPC"
                )


_TARGETS = {
    "GatewayId": ("AWS::EC2::InternetGateway", "AWS::EC2::VPNGateway", "AWS::EC2::VPCGatewayAttachment"),
    "NatGatewayId": ("AWS::EC2::NatGateway",),
    "TransitGatewayId": (
        "AWS::EC2::TransitGateway",
        "AWS::EC2::TransitGatewayAttachment",
        "AWS::EC2::TransitGatewayVpcAttachment",
    ),
    "VpcPeeringConnectionId": ("AWS::EC2::VPCPeeringConnection",),
    "InstanceId": ("AWS::EC2::Instance",),
    "NetworkInterfaceId": ("AWS::EC2::NetworkInterface",),
    "VpcEndpointId": (ENDPOINT,),
    "EgressOnlyInternetGatewayId": ("AWS::EC2::EgressOnlyInternetGateway",),
    "CarrierGatewayId": ("AWS::EC2::CarrierGateway",),
    "LocalGatewayId": ("AWS::EC2::LocalGateway",),
    "CoreNetworkArn": ("AWS::NetworkManager::CoreNetwork",),
}


def routes_of(app: App, subnet: Resource) -> list[Resource] | None:
    """Routes of a subnet; None if not all are known."""
    associations = app.values.linked([ASSOCIATION], ["SubnetId"], subnet)
    if not associations.complete or not app.complete or not associations.found:
        return None
    found: list[Resource] = []
    for association in associations.found:
        table = app.node(association).get("RouteTableId").resource(TABLE)
        routes = app.values.linked([ROUTE], ["RouteTableId"], table) if table is not None else None
        if routes is None or not routes.complete:
            return None
        found += routes.found
    if any(app.node(each).get(name).value is UNRESOLVED for each in found for name in DESTINATIONS):
        return None
    return found


def _is_default(route: Node) -> bool:
    return any(route.get(name).value in ANYWHERE for name in DESTINATIONS)


def _other_vpc(app: App, route: Resource, node: Node, table: Resource | None) -> Iterator[Broken]:
    if table is None:
        return
    own = vpc_of(app, table)
    nat = node.get("NatGatewayId").resource("AWS::EC2::NatGateway")
    gateway = node.get("GatewayId").resource("AWS::EC2::InternetGateway")
    there: Resource | None = None
    if nat is not None:
        subnet = app.node(nat).get("SubnetId").resource(SUBNET)
        there = vpc_of(app, subnet) if subnet is not None else None
    if gateway is not None:
        for each in app.values.linked(["AWS::EC2::VPCGatewayAttachment"], ["InternetGatewayId"], gateway).found:
            there = app.node(each).get("VpcId").resource(VPC)
    if own is not None and there is not None and own is not there:
        yield refused(
            f"{route.path}.{'NatGatewayId' if nat else 'GatewayId'}",
            f"a gateway of {there.logical_id} in a route of {own.logical_id}",
            allowed="a gateway of the route table's VPC",
            fix=f"name a gateway of {own.logical_id}",
        )


def _holders(kind: str, node: Node) -> Iterator[Node]:
    if kind == "AWS::SageMaker::Cluster":
        yield node.get("VpcConfig")
        for group in node.get("InstanceGroups").items() or ():
            yield group.get("OverrideVpcConfig")
    elif kind == "AWS::EKS::Cluster":
        yield node.get("ResourcesVpcConfig")
    elif kind in (ENDPOINT, "AWS::FSx::FileSystem"):
        yield node
    elif kind == "AWS::Lambda::Function":
        yield node.get("VpcConfig")
