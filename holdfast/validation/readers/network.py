"""
Reader of networks: subnets with routes, security groups with rules, ways out of the VPC.

A route, association or rule with an unknown owner may belong to any subnet or group: values that depend on it are
UNRESOLVED. An unresolved rule comes after the known ones, so it matters only where they do not decide.
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Linked, Node, Resource, Values, required
from holdfast.validation.model import Network, SecurityGroup, Subnet, Traffic, VpcConfig

ANYWHERE = "0.0.0.0/0"
_SERVICE = re.compile(r"^(?:cn\.)?com\.amazonaws\.[a-z0-9-]+\.")


class NetworkReader:
    def __init__(self, values: Values) -> None:
        self._values = values
        self._subnets: dict[Resource | str, Subnet] = {}
        self._groups: dict[Resource | str, SecurityGroup] = {}

    def vpc_config(self, holder: Node, *, subnets: Node, security_groups: Node) -> VpcConfig:
        return VpcConfig(
            path=holder.path,
            places={"subnets": subnets.path, "security_groups": security_groups.path},
            subnets=_each(subnets, self.subnet),
            security_groups=_each(security_groups, self._security_group),
        )

    def network(self, subnets: Node) -> Network | None:
        """VPC of subnets; None without subnets, UNRESOLVED if it is not of the app."""
        entries = subnets.items()
        if entries == []:
            return None
        found = [entry.resource("AWS::EC2::Subnet") for entry in entries or ()]
        own = [subnet for subnet in found if subnet is not None]
        vpcs = {self._values.properties(subnet).get("VpcId").resource("AWS::EC2::VPC") for subnet in own}
        vpc = vpcs.pop() if len(vpcs) == 1 else None
        if len(own) != len(found) or vpc is None:
            return UNRESOLVED  # type: ignore[no-any-return]
        properties = self._values.properties(vpc)
        return Network(
            path=vpc.path,
            places={
                "cidr": f"{vpc.path}.CidrBlock",
                **dict.fromkeys(("nat", "way_out", "s3_gateway"), subnets.path),
            },
            cidr=_block(properties.get("CidrBlock")),
            nat=_all([self._leads_to(subnet, "NatGatewayId") for subnet in own]),
            way_out=_all([self._has_way_out(subnet) for subnet in own]),
            s3_gateway=_all([self._reaches_s3(subnet) for subnet in own]),
            interface_endpoints=self._interface_endpoints(vpc),
        )

    def subnet(self, node: Node) -> Subnet:
        resource = node.resource("AWS::EC2::Subnet")
        if resource is None:
            text = required(node.text())
            key = node.token if text is UNRESOLVED else str(text)
            if key not in self._subnets:
                known = self._values.existing_subnet(text)
                self._subnets[key] = Subnet(
                    path=node.path,
                    id=text,
                    availability_zone=known.get("availability_zone", UNRESOLVED),
                    cidr=known.get("cidr", UNRESOLVED),
                    public=UNRESOLVED,
                )
            return self._subnets[key]
        if resource not in self._subnets:
            properties = self._values.properties(resource)
            zone, zone_id = properties.get("AvailabilityZone"), properties.get("AvailabilityZoneId")
            self._subnets[resource] = Subnet(
                path=resource.path,
                places={
                    "availability_zone": zone_id.path if zone_id.present else zone.path,
                    "availability_zone_id": zone_id.path,
                    "cidr": f"{resource.path}.CidrBlock",
                },
                id=self._values.graph.identity(resource),
                availability_zone=UNRESOLVED if zone_id.present else zone.text(),
                availability_zone_id=zone_id.text(),
                cidr=_block(properties.get("CidrBlock")),
                public=self._leads_to(resource, "GatewayId"),
                vpc_cidrs=self._vpc_blocks(properties.get("VpcId").resource("AWS::EC2::VPC")),
            )
        return self._subnets[resource]

    def _security_group(self, node: Node) -> SecurityGroup:
        resource = node.resource("AWS::EC2::SecurityGroup")
        if resource is None:
            text = required(node.text())
            key = node.token if text is UNRESOLVED else str(text)
            if key not in self._groups:
                self._groups[key] = SecurityGroup(path=node.path, id=text, ingress=UNRESOLVED, egress=UNRESOLVED)
            return self._groups[key]
        if resource not in self._groups:
            places = {
                "ingress": f"{resource.path}.SecurityGroupIngress",
                "egress": f"{resource.path}.SecurityGroupEgress",
            }
            self._groups[resource] = SecurityGroup(
                path=resource.path,
                places=places,
                id=self._values.graph.identity(resource),
                ingress=self._rules(resource, "Ingress", "Source"),
                egress=self._rules(resource, "Egress", "Destination"),
            )
        return self._groups[resource]

    def _rules(self, group: Resource, direction: str, end: str) -> tuple[Traffic, ...]:
        written = self._values.properties(group).get(f"SecurityGroup{direction}")
        entries = written.items()
        rules = [self._traffic(entry, end) for entry in entries or ()]
        if entries == [] and direction == "Egress":
            rules.append(Traffic(path=written.path, protocol="-1", peer=ANYWHERE))
        if entries is None:
            rules.append(_unknown(written.path))
        separate = self._values.linked([f"AWS::EC2::SecurityGroup{direction}"], ["GroupId"], group)
        rules += [self._traffic(self._values.properties(each), end) for each in separate.found]
        rules += [_unknown(each.path) for each in separate.doubtful]
        if not self._values.graph.complete:
            rules.append(_unknown(written.path))
        return tuple(sorted(rules, key=lambda rule: not all(map(rule.is_known, ("protocol", "peer")))))

    def _traffic(self, node: Node, end: str) -> Traffic:
        protocol = node.get("IpProtocol")
        if not node.known or protocol.text() is None:
            return _unknown(node.path)
        peers = (f"{end}SecurityGroupId", "CidrIp", "CidrIpv6", f"{end}PrefixListId")
        peer = next((found for found in map(node.get, peers) if found.present), None)
        return Traffic(
            path=node.path,
            places={"peer": peer.path} if peer else {},
            protocol=protocol.text(),
            from_port=node.get("FromPort").integer(),
            to_port=node.get("ToPort").integer(),
            peer=UNRESOLVED if peer is None else self._peer(peer),
        )

    def _peer(self, node: Node) -> Any:
        group = node.resource("AWS::EC2::SecurityGroup")
        if group is not None:
            return self._values.graph.identity(group)
        return node.text()

    def _routes(self, subnet: Resource) -> tuple[Linked, bool]:
        associations = self._values.linked(["AWS::EC2::SubnetRouteTableAssociation"], ["SubnetId"], subnet)
        found: list[Resource] = []
        doubtful: list[Resource] = []
        sure = associations.complete and self._values.graph.complete
        for association in associations.found:
            table = self._values.properties(association).get("RouteTableId").resource("AWS::EC2::RouteTable")
            if table is None:
                sure = False
                continue
            routes = self._values.linked(["AWS::EC2::Route"], ["RouteTableId"], table)
            found += routes.found
            doubtful += routes.doubtful
        return Linked(tuple(found), tuple(doubtful)), sure and not doubtful

    def _leads_to(self, subnet: Resource, gateway: str) -> Any:
        """True if a subnet's default route uses an internet gateway or a NAT gateway."""
        return self._has_default_route(subnet, lambda route: _is_gateway(route.get(gateway), gateway))

    def _has_way_out(self, subnet: Resource) -> Any:
        """True if a subnet has a default route that needs no public address."""
        return self._has_default_route(subnet, _is_not_internet_gateway)

    def _has_default_route(self, subnet: Resource, accepted: Callable[[Node], bool | None]) -> Any:
        routes, sure = self._routes(subnet)
        for route in routes.found:
            properties = self._values.properties(route)
            answers = (accepted(properties), _to_anywhere(properties))
            if answers == (True, True):
                return True
            sure = sure and False in answers
        return False if sure else UNRESOLVED

    def _reaches_s3(self, subnet: Resource) -> Any:
        associations = self._values.linked(["AWS::EC2::SubnetRouteTableAssociation"], ["SubnetId"], subnet)
        sure = associations.complete and self._values.graph.complete
        for association in associations.found:
            table = self._values.properties(association).get("RouteTableId").resource("AWS::EC2::RouteTable")
            if table is None:
                sure = False
                continue
            endpoints = self._values.linked(["AWS::EC2::VPCEndpoint"], ["RouteTableIds"], table)
            services = [_service(self._values.properties(each).get("ServiceName")) for each in endpoints.found]
            if "s3" in services:
                return True
            sure = sure and endpoints.complete and UNRESOLVED not in services
        return False if sure else UNRESOLVED

    def bare(self, vpc: Resource, *, unknown: str) -> Network:
        """VPC without known node subnets; ``unknown``: path reported for what depends on nodes."""
        block = self._values.properties(vpc).get("CidrBlock")
        return Network(
            path=vpc.path,
            places={"cidr": f"{vpc.path}.CidrBlock", **dict.fromkeys(("nat", "way_out", "s3_gateway"), unknown)},
            cidr=_block(block),
            nat=UNRESOLVED,
            way_out=UNRESOLVED,
            s3_gateway=UNRESOLVED,
            interface_endpoints=self._interface_endpoints(vpc),
        )

    def subnets_of(self, vpc: Resource) -> list[Subnet]:
        return [
            self.subnet(self._values.itself(each))
            for each in self._values.linked(["AWS::EC2::Subnet"], ["VpcId"], vpc).found
        ]

    def _vpc_blocks(self, vpc: Resource | None) -> Any:
        if vpc is None:
            return UNRESOLVED
        first, others = _block(self._values.properties(vpc).get("CidrBlock")), self._secondary_blocks(vpc)
        return UNRESOLVED if UNRESOLVED in (first, others) else (first, *others)

    def _secondary_blocks(self, vpc: Resource) -> Any:
        added = self._values.linked(["AWS::EC2::VPCCidrBlock"], ["VpcId"], vpc)
        written = [self._values.properties(each).get("CidrBlock") for each in added.found]
        blocks = [_block(each) for each in written if each.present]
        sure = added.complete and self._values.graph.complete and UNRESOLVED not in blocks
        return tuple(blocks) if sure and len(blocks) == len(written) else UNRESOLVED

    def _interface_endpoints(self, vpc: Resource) -> Any:
        endpoints = self._values.linked(["AWS::EC2::VPCEndpoint"], ["VpcId"], vpc)
        kinds = [self._values.properties(each).get("VpcEndpointType").text() for each in endpoints.found]
        services = {
            _service(self._values.properties(each).get("ServiceName"))
            for each, kind in zip(endpoints.found, kinds, strict=True)
            if kind == "Interface"
        }
        if UNRESOLVED in services or UNRESOLVED in kinds or not (endpoints.complete and self._values.graph.complete):
            return UNRESOLVED
        return frozenset(services)


def _each(node: Node, read: Any) -> Any:
    """Item per entry of a list; UNRESOLVED for a list of unknown length."""
    entries = node.items()
    return UNRESOLVED if entries is None else tuple(read(entry) for entry in entries)


def _all(answers: list[Any]) -> Any:
    """True if all are; UNRESOLVED if unknown."""
    if False in answers:
        return False
    return UNRESOLVED if UNRESOLVED in answers else True


def _is_gateway(target: Node, kind: str) -> bool | None:
    """True if a route's target is an internet or NAT gateway; None if unknown."""
    if not target.present:
        return False
    if target.resource("AWS::EC2::InternetGateway", "AWS::EC2::NatGateway") is not None:
        return True
    text = target.text()
    if text is UNRESOLVED:
        return None
    return str(text).startswith("igw-" if kind == "GatewayId" else "nat-")


def _is_not_internet_gateway(route: Node) -> bool | None:
    found = _is_gateway(route.get("GatewayId"), "GatewayId")
    return None if found is None else not found


def _to_anywhere(route: Node) -> bool | None:
    blocks = (route.get("DestinationCidrBlock").text(), route.get("DestinationIpv6CidrBlock").text())
    if ANYWHERE in blocks or "::/0" in blocks:
        return True
    return None if UNRESOLVED in blocks else False


def _block(node: Node) -> Any:
    """CIDR block; UNRESOLVED if IPAM assigns it, or if it is invalid, which the schema reports."""
    text = node.text()
    try:
        return str(ipaddress.ip_network(text)) if isinstance(text, str) else UNRESOLVED
    except ValueError:
        return UNRESOLVED


def _unknown(path: str) -> Traffic:
    return Traffic(path=path, protocol=UNRESOLVED, from_port=UNRESOLVED, to_port=UNRESOLVED, peer=UNRESOLVED)


def _service(node: Node) -> Any:
    text = node.example
    return _SERVICE.sub("", text) if isinstance(text, str) else UNRESOLVED
