"""2xx: ways through a network of templates: endpoints, routes, access control lists, DNS."""

import ipaddress
import re
from collections.abc import Iterator

from holdfast.catalog.facts import page_fact
from holdfast.validation.cloudformation import UNRESOLVED, Node, Resource, Text, closest
from holdfast.validation.engine import Broken, refused, rule, said
from holdfast.validation.model import App, Deployment, text_of

PRIVATELINK = "AWS PrivateLink guide, 'Access an AWS service using an interface VPC endpoint'"
GATEWAY = "AWS PrivateLink guide, 'Gateway endpoints'"
ROUTES = "VPC user guide, 'Route table concepts' and 'NAT gateways'"
ACLS = "VPC user guide, 'Custom network ACLs': ephemeral ports"
DNS = "VPC user guide, 'DNS attributes in your VPC'"
ENDPOINT, VPC, SUBNET, GROUP = "AWS::EC2::VPCEndpoint", "AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::SecurityGroup"
ROUTE, TABLE, ASSOCIATION = "AWS::EC2::Route", "AWS::EC2::RouteTable", "AWS::EC2::SubnetRouteTableAssociation"
_GATEWAYS = ("s3", "dynamodb")
DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock")
_ANYWHERE = ("0.0.0.0/0", "::/0")


@rule(
    "HF230",
    title="Security groups of interface endpoints let HTTPS in",
    each=App,
    source=f"{PRIVATELINK}: security groups",
)
def endpoint_ingress(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The security groups of an interface endpoint have to let in port 443 from whatever uses it: nodes, their subnets or
    the VPC. Without, every call hangs until it times out.
    """
    for endpoint, node in app.each(ENDPOINT):
        if _kind(node) != "Interface":
            continue
        groups = [entry.resource(GROUP) for entry in node.get("SecurityGroupIds").items() or ()]
        known = [group for group in groups if group is not None]
        if not groups or len(known) < len(groups):
            continue
        rules = [each for group in known for each in ingress_of(app, group)]
        if any(each is None for each in rules):
            continue
        if not any(lets(each, 443) for each in rules if each is not None):
            yield refused(
                f"{endpoint.path}.SecurityGroupIds",
                f"groups that do not let port 443 in: {', '.join(g.logical_id for g in known)}",
                allowed="HTTPS from nodes, their subnets or the VPC",
                fix=f"let TCP 443 into {known[0].logical_id}",
            )
            continue
        yield from _from_elsewhere(app, endpoint, node, known, [each for each in rules if each is not None])
        yield from _from_nodes(app, endpoint, known, [each for each in rules if each is not None and lets(each, 443)])


@rule(
    "HF231",
    title="Interface endpoints have private DNS turned on",
    each=App,
    source=f"{PRIVATELINK}: private DNS names",
)
def private_dns(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Programs call a service by its usual name. Without private DNS that name leads to the public address, which a closed
    network cannot reach, and the endpoint is not used. CloudFormation's default is off.
    """
    for endpoint, node in app.each(ENDPOINT):
        service = service_of(node)
        if _kind(node) != "Interface" or service is None or service in _GATEWAYS:
            continue
        if node.get("PrivateDnsEnabled").boolean(default=False) is False:
            yield refused(
                f"{endpoint.path}.PrivateDnsEnabled",
                "an interface endpoint without private DNS",
                allowed="PrivateDnsEnabled: true",
                fix="set PrivateDnsEnabled to true",
            )


@rule(
    "HF232",
    title="VPC endpoints name a service that exists",
    each=App,
    source="AWS PrivateLink guide, 'AWS services that integrate with AWS PrivateLink'",
    suppressible=True,
)
def endpoint_services(app: App, _: Deployment) -> Iterator[Broken]:
    """
    The service name is com.amazonaws.REGION.SERVICE. A service that is not in the list, or a name of another form,
    fails with "The Vpc Endpoint Service does not exist". One that has come since can be accepted.
    """
    known = set(page_fact("endpoint_services"))
    for _endpoint, node in app.each(ENDPOINT):
        name = text_of(node.get("ServiceName").value)
        if name is None or ".vpce." in name or "vpce-svc" in name or name.startswith("aws."):
            continue
        service = service_of(node)
        if service is None:
            if "${" not in name:
                yield refused(
                    node.get("ServiceName").path,
                    said(name),
                    allowed="com.amazonaws.REGION.SERVICE",
                    fix=f"write com.amazonaws.REGION.{name.rpartition('.')[2]}",
                )
        elif service not in known:
            meant = closest(service, known)
            if meant is not None:
                yield refused(
                    node.get("ServiceName").path,
                    f"the service {service}",
                    allowed="services with an endpoint",
                    fix=f"did you mean {meant}?",
                )


@rule(
    "HF233", title="VPC endpoints have a type that their service supports", each=App, source=f"{GATEWAY}; {PRIVATELINK}"
)
def endpoint_kinds(app: App, _: Deployment) -> Iterator[Broken]:
    """
    S3 and DynamoDB have gateway endpoints, which stand in route tables; everything else has interface endpoints, which
    stand in subnets with security groups. What is written for the other kind is refused or does nothing.
    """
    for endpoint, node in app.each(ENDPOINT):
        service, kind = service_of(node), _kind(node)
        if kind == "Gateway" and service is not None and service not in _GATEWAYS:
            yield refused(
                f"{endpoint.path}.VpcEndpointType",
                f"a gateway endpoint to {service}",
                allowed="Interface, for all but S3 and DynamoDB",
                fix="write VpcEndpointType: Interface",
            )
        for name, wanted in (
            ("SubnetIds", "Interface"),
            ("SecurityGroupIds", "Interface"),
            ("RouteTableIds", "Gateway"),
        ):
            if kind in ("Gateway", "Interface") and kind != wanted and node.get(name).present:
                yield refused(
                    f"{endpoint.path}.{name}",
                    f"{name} on an endpoint of type {kind}",
                    allowed=f"{name} on endpoints of type {wanted}",
                    fix=f"remove {name}, or write VpcEndpointType: {wanted}",
                )
        if kind == "Interface" and not node.get("SubnetIds").present:
            yield refused(
                f"{endpoint.path}.SubnetIds",
                "an interface endpoint in no subnet",
                allowed="at least one subnet",
                fix="add SubnetIds with the nodes' subnets",
            )
        if kind == "Gateway" and not node.get("RouteTableIds").present and app.complete:
            yield refused(
                f"{endpoint.path}.RouteTableIds",
                "a gateway endpoint in no route table",
                allowed="the route tables of those who use it",
                fix="add RouteTableIds with the nodes' route tables",
            )


@rule(
    "HF234",
    title="DNS support and DNS host names of the VPC are on",
    each=App,
    source=f"{DNS}; EKS user guide, 'Amazon EKS networking requirements'; FSx for Lustre user guide",
)
def vpc_dns(app: App, _: Deployment) -> Iterator[Broken]:
    """
    EKS needs DNS support and DNS hostnames of the VPC, and so do private DNS names of interface endpoints and the DNS
    names of file systems. DNS hostnames are off unless they are asked for.
    """
    for vpc, node in app.each(VPC):
        reasons = list(_needs_names(app, vpc))
        if not reasons:
            continue
        if node.get("EnableDnsSupport").boolean(default=True) is False:
            yield refused(
                f"{vpc.path}.EnableDnsSupport",
                f"no DNS support, which {reasons[0]} needs",
                allowed="true",
                fix="set EnableDnsSupport to true",
            )
        hostnames = [reason for reason in reasons if "file system" not in reason]
        if hostnames and node.get("EnableDnsHostnames").boolean(default=False) is False:
            yield refused(
                f"{vpc.path}.EnableDnsHostnames",
                f"no DNS hostnames, which {hostnames[0]} needs",
                allowed="true",
                fix="set EnableDnsHostnames to true",
            )


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
        if subnet is None or private:
            continue
        routes = routes_of(app, subnet)
        if routes is not None and not any(
            _is_default(app.node(each)) and app.node(each).get("GatewayId").present for each in routes
        ):
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
            wanted = _TARGETS[name]
            if held is not None and held.type.startswith("AWS::") and held.type not in wanted:
                better = next((each for each, kinds in _TARGETS.items() if held.type in kinds), None)
                yield refused(
                    f"{route.path}.{name}",
                    f"{held.logical_id}, of type {held.type}",
                    allowed=f"{' or '.join(wanted)}",
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
    A subnet without an association uses the VPC's main route table, which leads nowhere but inside. A subnet has one
    association; nodes whose subnet has none reach neither S3 nor anything else.
    """
    seen: dict[Resource, Resource] = {}
    for association, node in app.each(ASSOCIATION):
        subnet = node.get("SubnetId").resource(SUBNET)
        table = node.get("RouteTableId").resource(TABLE)
        if subnet is not None and subnet in seen and not association.conditional:
            yield refused(
                f"{association.path}.SubnetId",
                f"{subnet.logical_id} again, after {seen[subnet].logical_id}",
                allowed="one route table for a subnet",
                fix="remove one of the two associations",
            )
        if subnet is not None and not association.conditional:
            seen.setdefault(subnet, association)
        if subnet is not None and table is not None:
            one, other = _vpc_of(app, subnet), _vpc_of(app, table)
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
        has_routes = any(_vpc_of(app, table) is _vpc_of(app, subnet) for table, _node in app.each(TABLE))
        if subnet not in seen and has_routes:
            yield refused(
                f"{subnet.path}.VpcId",
                f"{subnet.logical_id}, a subnet of nodes without a route table",
                allowed="an association with one that leads to S3 and out",
                fix=f"add an AWS::EC2::SubnetRouteTableAssociation for {subnet.logical_id}",
            )


@rule("HF238", title="Network ACLs let the traffic of nodes through", each=App, source=ACLS)
def network_acls(app: App, _: Deployment) -> Iterator[Broken]:
    """
    An access control list has no state: answers need a rule of their own, for ports 1024 to 65535. A list without rules
    lets nothing through; rules are tried by number, and the first that fits decides.
    """
    for acl, _node in app.each("AWS::EC2::NetworkAcl"):
        associations = app.values.linked(["AWS::EC2::SubnetNetworkAclAssociation"], ["NetworkAclId"], acl)
        entries = app.values.linked(["AWS::EC2::NetworkAclEntry"], ["NetworkAclId"], acl)
        if not entries.complete or not app.complete or not associations.found:
            continue
        subnets = {app.node(each).get("SubnetId").resource(SUBNET) for each in associations.found}
        about_nodes = bool(subnets & set(node_subnets(app)))
        for egress in (False, True):
            rules = _acl_rules(app, entries.found, egress=egress)
            if rules is None:
                continue
            way = "out" if egress else "in"
            place = f"{acl.path}.VpcId" if not rules else f"{rules[0].resource.path}"
            missing = [
                label
                for label, low, high, protocol, wanted in _WANTED[egress]
                if (about_nodes or wanted) and not _passes(rules, low, high, protocol)
            ]
            if missing:
                yield refused(
                    place,
                    f"a list, {acl.logical_id}, that lets {' and '.join(missing)} {way} nowhere",
                    allowed="HTTPS out, answers back in, and Lustre and NFS between nodes and file systems",
                    fix=f"add an entry to {acl.logical_id} that allows {missing[0]} {way}",
                )


@rule(
    "HF239",
    title="Resources that work together are in one VPC",
    each=App,
    source="VPC user guide, 'Security groups'; API reference of each service: subnets and groups of one VPC",
)
def one_vpc(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Subnets and security groups of a cluster, a file system, a database or an endpoint belong to one VPC.
    """
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
                vpc = _vpc_of(app, each) if each is not None else None
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
_WANTED = {
    False: (("answers to nodes (TCP 1024-65535)", 32768, 60999, "6", True), ("Lustre (TCP 988)", 988, 988, "6", False)),
    True: (("HTTPS (TCP 443)", 443, 443, "6", True), ("answers (TCP 1024-65535)", 32768, 60999, "6", False)),
}


class _Entry:
    """An entry of an access control list."""

    def __init__(
        self, *, resource: Resource, number: int, allow: bool, protocol: str, low: int, high: int, block: str
    ) -> None:
        self.resource, self.number, self.allow, self.protocol = resource, number, allow, protocol
        self.low, self.high, self.block = low, high, block


def service_of(node: Node) -> str | None:
    """The service of an endpoint, as at the end of its name; None for a name of another form."""
    value = node.get("ServiceName").value
    if isinstance(value, str):
        match = re.fullmatch(r"(?:cn\.)?com\.amazonaws\.[a-z0-9-]+\.([a-z0-9.-]+)", value)
        return match[1] if match else None
    if isinstance(value, Text):
        match = re.fullmatch(r"\.([a-z0-9.-]+)", value.end)
        return match[1] if match and value.start.endswith("com.amazonaws.") else None
    return None


def routes_of(app: App, subnet: Resource) -> list[Resource] | None:
    """The routes of a subnet; None where they are not all known."""
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


def node_subnets(app: App) -> list[Resource]:
    """The subnets of HyperPod's nodes that the app makes."""
    entries: list[Node] = []
    for _cluster, node in app.each("AWS::SageMaker::Cluster"):
        entries += node.get("VpcConfig", "Subnets").items() or ()
        for kind in ("InstanceGroups", "RestrictedInstanceGroups"):
            for group in node.get(kind).items() or ():
                entries += group.get("OverrideVpcConfig", "Subnets").items() or ()
    for _group, node in app.each("AWS::EKS::Nodegroup"):
        entries += node.get("Subnets").items() or ()
    found = [entry.resource(SUBNET) for entry in entries]
    return list(dict.fromkeys(each for each in found if each is not None))


def node_groups(app: App) -> list[Resource]:
    """The security groups of HyperPod's nodes that the app makes."""
    entries: list[Node] = []
    for _cluster, node in app.each("AWS::SageMaker::Cluster"):
        entries += node.get("VpcConfig", "SecurityGroupIds").items() or ()
    found = [entry.resource(GROUP) for entry in entries]
    return list(dict.fromkeys(each for each in found if each is not None))


def _kind(node: Node) -> str | None:
    kind = node.get("VpcEndpointType").text()
    if kind is None:
        return "Gateway"
    return kind if isinstance(kind, str) else None


def ingress_of(app: App, group: Resource) -> list[Node | None]:
    """The rules into a group; None for one that nobody can read here."""
    entries = app.node(group).get("SecurityGroupIngress").items()
    linked = app.values.linked(["AWS::EC2::SecurityGroupIngress"], ["GroupId"], group)
    if entries is None or not linked.complete or not app.complete:
        return [None]
    return [*entries, *(app.node(each) for each in linked.found)]


def lets(entry: Node, port: int) -> bool:
    """Whether a rule may be about a port."""
    protocol = str(entry.get("IpProtocol").value)
    if protocol == "-1":
        return True
    low, high = entry.get("FromPort").integer(), entry.get("ToPort").integer()
    if not isinstance(low, int) or not isinstance(high, int):
        return low is not None
    return protocol.lower() in ("tcp", "6") and (low <= port <= high or low == -1)


def _from_nodes(app: App, endpoint: Resource, groups: list[Resource], rules: list[Node]) -> Iterator[Broken]:
    """Whether what is let in is what nodes come from."""
    nodes, subnets = node_groups(app), node_subnets(app)
    blocks = [_network(app.node(each).get("CidrBlock").value) for each in subnets]
    if (
        not nodes
        or not subnets
        or None in blocks
        or _vpc_of(app, subnets[0]) is not app.node(endpoint).get("VpcId").resource(VPC)
    ):
        return
    shared = set(nodes) & set(groups)
    for entry in rules:
        source = entry.get("SourceSecurityGroupId")
        block = _network(entry.get("CidrIp").value) if entry.get("CidrIp").present else None
        if source.present and (source.resource(GROUP) is None or source.resource(GROUP) in nodes):
            return
        if entry.get("CidrIp").present and (
            block is None or all(each is not None and each.subnet_of(block) for each in blocks)
        ):
            return
        if any(entry.get(name).present for name in ("SourcePrefixListId", "CidrIpv6")):
            return
    if shared and any(entry.get("SourceSecurityGroupId").resource(GROUP) in shared for entry in rules):
        return
    yield refused(
        f"{endpoint.path}.SecurityGroupIds",
        f"groups that let port 443 in, but not from the nodes ({', '.join(each.logical_id for each in nodes)})",
        allowed="HTTPS from the nodes' group or subnets",
        fix=f"let TCP 443 from {nodes[0].logical_id} into {groups[0].logical_id}",
    )


def _from_elsewhere(
    app: App, endpoint: Resource, node: Node, groups: list[Resource], rules: list[Node]
) -> Iterator[Broken]:
    """Rules for HTTPS of which all are about blocks that the VPC does not have."""
    vpc = node.get("VpcId").resource(VPC)
    more = app.values.linked(["AWS::EC2::VPCCidrBlock"], ["VpcId"], vpc) if vpc is not None else None
    if vpc is None or more is None or not more.complete:
        return
    own = [_network(app.node(each).get("CidrBlock").value) for each in (vpc, *more.found)]
    given = [_network(each.get("CidrIp").value) for each in rules if lets(each, 443)]
    if None in own or None in given:
        return
    if not any(one.overlaps(other) for one in own if one for other in given if other):
        yield refused(
            f"{groups[0].path}.SecurityGroupIngress",
            f"port 443 from {', '.join(map(str, given))}, for {endpoint.logical_id} in {', '.join(map(str, own))}",
            allowed="HTTPS from the VPC that the endpoint is in",
            fix=f"write {own[0]}",
        )


def _network(value: object) -> ipaddress.IPv4Network | None:
    try:
        return ipaddress.IPv4Network(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _needs_names(app: App, vpc: Resource) -> Iterator[str]:
    for endpoint, node in app.each(ENDPOINT):
        if (
            node.get("VpcId").resource(VPC) is vpc
            and _kind(node) == "Interface"
            and node.get("PrivateDnsEnabled").boolean(default=False) is True
        ):
            yield f"private DNS of {endpoint.logical_id}"
    for kind, path, what in (
        ("AWS::EKS::Cluster", ("ResourcesVpcConfig", "SubnetIds"), "EKS"),
        ("AWS::FSx::FileSystem", ("SubnetIds",), "the DNS name of a file system"),
        ("AWS::EFS::MountTarget", ("SubnetId",), "the DNS name of a file system"),
    ):
        for resource, node in app.each(kind):
            held = node.get(*path)
            for entry in (held.items() or ()) if isinstance(held.value, list) else [held]:
                subnet = entry.resource(SUBNET)
                if subnet is not None and _vpc_of(app, subnet) is vpc:
                    yield f"{what} ({resource.logical_id})"
                    break


def _is_default(route: Node) -> bool:
    return any(route.get(name).value in _ANYWHERE for name in DESTINATIONS)


def _other_vpc(app: App, route: Resource, node: Node, table: Resource | None) -> Iterator[Broken]:
    if table is None:
        return
    own = _vpc_of(app, table)
    nat = node.get("NatGatewayId").resource("AWS::EC2::NatGateway")
    gateway = node.get("GatewayId").resource("AWS::EC2::InternetGateway")
    there: Resource | None = None
    if nat is not None:
        subnet = app.node(nat).get("SubnetId").resource(SUBNET)
        there = _vpc_of(app, subnet) if subnet is not None else None
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


def _vpc_of(app: App, resource: Resource) -> Resource | None:
    return app.node(resource).get("VpcId").resource(VPC)


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


def _acl_rules(app: App, entries: tuple[Resource, ...], *, egress: bool) -> list[_Entry] | None:
    found = []
    for resource in entries:
        node = app.node(resource)
        if node.get("Egress").boolean(default=False) is not egress:
            continue
        number, protocol = node.get("RuleNumber").integer(), node.get("Protocol").integer()
        action, block = node.get("RuleAction").text(), node.get("CidrBlock").text()
        low, high = node.get("PortRange", "From").integer(), node.get("PortRange", "To").integer()
        known = isinstance(number, int) and isinstance(protocol, int) and isinstance(action, str)
        if not known or (node.get("PortRange").present and not (isinstance(low, int) and isinstance(high, int))):
            return None
        anything = protocol == -1 or not node.get("PortRange").present
        found.append(
            _Entry(
                resource=resource,
                number=number,
                allow=action.lower() == "allow",
                protocol=str(protocol),
                low=0 if anything else low,
                high=65535 if anything else high,
                block=str(block),
            )
        )
    return sorted(found, key=lambda each: each.number)


def _passes(rules: list[_Entry], low: int, high: int, protocol: str) -> bool:
    """Whether traffic of a range of ports passes from or to somewhere."""
    for each in rules:
        if each.protocol not in (protocol, "-1") or each.high < low or each.low > high:
            continue
        if not each.allow and each.block in _ANYWHERE and each.low <= low and high <= each.high:
            return False
        if each.allow and each.low <= low and high <= each.high:
            return True
        if each.allow:
            return True
    return False
