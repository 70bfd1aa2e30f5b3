"""2xx: VPC endpoints in templates."""

import ipaddress
import re
from collections.abc import Iterator

from holdfast.catalog.facts import page_fact
from holdfast.validation.cloudformation import Node, Resource
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import App, Deployment, text_of
from holdfast.validation.rules.network.templates import ENDPOINT, GROUP, SUBNET, VPC, node_subnets, vpc_of
from holdfast_common import closest_word

PRIVATELINK = "AWS PrivateLink guide, 'Access an AWS service using an interface VPC endpoint'"
GATEWAY = "AWS PrivateLink guide, 'Gateway endpoints'"
DNS = "VPC user guide, 'DNS attributes in your VPC'"
_GATEWAYS = ("s3", "dynamodb")
_WITHOUT_HTTPS = ("email-smtp",)
"""Services that listen on other ports (SES developer guide, 'Setting up VPC endpoints with Amazon SES')."""


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
        if _kind(node) != "Interface" or service_of(node) in _WITHOUT_HTTPS:
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
                    show(name),
                    allowed="com.amazonaws.REGION.SERVICE",
                    fix=f"write com.amazonaws.REGION.{name.rpartition('.')[2]}",
                )
        elif service not in known:
            meant = closest_word(service, known)
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
        for name, expected in (
            ("SubnetIds", "Interface"),
            ("SecurityGroupIds", "Interface"),
            ("RouteTableIds", "Gateway"),
        ):
            if kind in ("Gateway", "Interface") and kind != expected and node.get(name).present:
                yield refused(
                    f"{endpoint.path}.{name}",
                    f"{name} on an endpoint of type {kind}",
                    allowed=f"{name} on endpoints of type {expected}",
                    fix=f"remove {name}, or write VpcEndpointType: {expected}",
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


def service_of(node: Node) -> str | None:
    """Service at the end of an endpoint's name; None for another form."""
    name = text_of(node.get("ServiceName").example) or ""
    match = re.fullmatch(r"(?:cn\.)?com\.amazonaws\.(?:[a-z0-9-]+|\$\{\.\.\.\})\.([a-z0-9.-]+)", name)
    return match[1] if match else None


def node_groups(app: App) -> list[Resource]:
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
    """Rules into a group; None if unreadable."""
    entries = app.node(group).get("SecurityGroupIngress").items()
    linked = app.values.linked(["AWS::EC2::SecurityGroupIngress"], ["GroupId"], group)
    if entries is None or not linked.complete or not app.complete:
        return [None]
    return [*entries, *(app.node(each) for each in linked.found)]


def lets(entry: Node, port: int) -> bool:
    protocol = str(entry.get("IpProtocol").value)
    if protocol == "-1":
        return True
    low, high = entry.get("FromPort").integer(), entry.get("ToPort").integer()
    if not isinstance(low, int) or not isinstance(high, int):
        return low is not None
    return protocol.lower() in ("tcp", "6") and (low <= port <= high or low == -1)


def _from_nodes(app: App, endpoint: Resource, groups: list[Resource], rules: list[Node]) -> Iterator[Broken]:
    nodes, subnets = node_groups(app), node_subnets(app)
    blocks = [_network(app.node(each).get("CidrBlock").value) for each in subnets]
    if (
        not nodes
        or not subnets
        or None in blocks
        or vpc_of(app, subnets[0]) is not app.node(endpoint).get("VpcId").resource(VPC)
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
                if subnet is not None and vpc_of(app, subnet) is vpc:
                    yield f"{what} ({resource.logical_id})"
                    break
