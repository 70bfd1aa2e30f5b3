"""EC2 types that need more than one operation, or that have no operation of their own."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

from typing import Any

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    GenericHandler,
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
    ignore_gone,
)


def _only_own(context: ResourceContext, call: str, key: str, filters: dict[str, str]) -> list[dict[str, Any]]:
    listed = [{"Name": name, "Values": [value]} for name, value in filters.items()]
    found: list[dict[str, Any]] = getattr(context.client("ec2"), call)(Filters=listed)[key]
    return found


class Vpc(GenericHandler):
    """A VPC; DNS settings are separate calls."""

    elsewhere = frozenset({"EnableDnsHostnames", "EnableDnsSupport"})

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        for name in ("EnableDnsSupport", "EnableDnsHostnames"):
            if name in properties and properties[name] != old.get(name):
                value = {"Value": properties[name]}
                context.client("ec2").modify_vpc_attribute(VpcId=made.physical_id, **{name: value})

    def read(self, context: ResourceContext, made: Made, properties: Properties) -> Made:
        made, vpc = super().read(context, made, properties), {"vpc-id": made.physical_id}
        groups = _only_own(context, "describe_security_groups", "SecurityGroups", {**vpc, "group-name": "default"})
        acls = _only_own(context, "describe_network_acls", "NetworkAcls", {**vpc, "default": "true"})
        description = self.describe(context, made, properties) or {}
        blocks = [entry["AssociationId"] for entry in description.get("CidrBlockAssociationSet", [])]
        more: dict[str, Any] = {"CidrBlockAssociations": blocks, "Ipv6CidrBlocks": []}
        if groups:
            more["DefaultSecurityGroup"] = groups[0]["GroupId"]
        if acls:
            more["DefaultNetworkAcl"] = acls[0]["NetworkAclId"]
        return Made(physical_id=made.physical_id, attributes={**made.attributes, **more})


class Subnet(GenericHandler):
    elsewhere = frozenset({"MapPublicIpOnLaunch"})

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        public = properties.get("MapPublicIpOnLaunch", False)
        if public != old.get("MapPublicIpOnLaunch", False):
            context.client("ec2").modify_subnet_attribute(
                SubnetId=made.physical_id, MapPublicIpOnLaunch={"Value": public}
            )

    def found(self, description: Any, properties: Properties) -> dict[str, Any]:
        result = super().found(description, properties)
        return {key: value for key, value in result.items() if isinstance(value, str)}


class Eip(GenericHandler):
    """An address: Ref is the address, the API takes the allocation."""

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        allocation = made.attributes["AllocationId"]
        return {"AllocationIds": [allocation]} if verb == "read" else {"AllocationId": allocation}

    def retag(self, context: ResourceContext, made: Made, tags: dict[str, str], old: dict[str, str]) -> None:
        super().retag(context, Made(physical_id=str(made.attributes["AllocationId"])), tags, old)


class NatGateway(GenericHandler):
    """A NAT gateway; the API lists deleted ones for a while."""

    def describe(self, context: ResourceContext, made: Made, properties: Properties) -> dict[str, Any] | None:
        found = super().describe(context, made, properties)
        return None if found is None or found.get("State") == "deleted" else found


class VpcEndpoint(GenericHandler):
    """A VPC endpoint; changed by lists of what to add and to remove."""

    elsewhere = frozenset({"RouteTableIds", "SecurityGroupIds", "SubnetIds"})

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        changes: dict[str, Any] = {}
        for name in ("RouteTableIds", "SubnetIds", "SecurityGroupIds"):
            before, after = set(old.get(name, [])), set(properties.get(name, []))
            if old and before != after:
                changes |= {f"Add{name}": sorted(after - before), f"Remove{name}": sorted(before - after)}
        changes = {key: value for key, value in changes.items() if value}
        if changes:
            context.client("ec2").modify_vpc_endpoint(VpcEndpointId=made.physical_id, **changes)


class GatewayAttachment(ResourceHandler):
    type = "AWS::EC2::VPCGatewayAttachment"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        if "InternetGatewayId" not in properties:
            raise ResourceError("VPCGatewayAttachment: only internet gateways can be attached in the embedded AWS")
        context.client("ec2").attach_internet_gateway(
            InternetGatewayId=properties["InternetGatewayId"], VpcId=properties["VpcId"]
        )
        return Made(physical_id=f"IGW|{properties['VpcId']}", attributes={"AttachmentType": "IGW"})

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        self.delete(context, made, old)
        return self.create(context, properties)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        ignore_gone(
            context.client("ec2").detach_internet_gateway,
            InternetGatewayId=properties["InternetGatewayId"],
            VpcId=properties["VpcId"],
        )


class RouteTableAssociation(ResourceHandler):
    type = "AWS::EC2::SubnetRouteTableAssociation"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        response = context.client("ec2").associate_route_table(
            RouteTableId=properties["RouteTableId"], SubnetId=properties["SubnetId"]
        )
        return Made(physical_id=response["AssociationId"], attributes={"Id": response["AssociationId"]})

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        return made

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        ignore_gone(context.client("ec2").disassociate_route_table, AssociationId=made.physical_id)


class Route(ResourceHandler):
    type = "AWS::EC2::Route"
    DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        context.client("ec2").create_route(**properties)
        return self._made(properties)

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        context.client("ec2").replace_route(**properties)
        return self._made(properties)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        desired = {key: properties[key] for key in ("RouteTableId", *self.DESTINATIONS) if key in properties}
        ignore_gone(context.client("ec2").delete_route, **desired)

    def _made(self, properties: Properties) -> Made:
        destination = next(properties[key] for key in self.DESTINATIONS if key in properties)
        return Made(physical_id=f"{properties['RouteTableId']}|{destination}", attributes={"CidrBlock": destination})


class SecurityGroup(GenericHandler):
    elsewhere = frozenset({"GroupDescription", "SecurityGroupEgress", "SecurityGroupIngress"})

    def found_id(self, response: Any, properties: Properties) -> str:
        return str(response["GroupId"])

    def identity(self, verb: str, made: Made, properties: Properties) -> dict[str, Any]:
        return {"GroupIds": [made.physical_id]} if verb == "read" else {"GroupId": made.physical_id}

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, properties)
        return {**result, "Description": properties["GroupDescription"]}

    def found(self, description: Any, properties: Properties) -> dict[str, Any]:
        known = {"GroupId": description["GroupId"], "Id": description["GroupId"]}
        return known | ({"VpcId": description["VpcId"]} if "VpcId" in description else {})

    def settle(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> None:
        client, group = context.client("ec2"), made.physical_id
        if not old and properties.get("SecurityGroupEgress"):
            everything = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
            client.revoke_security_group_egress(GroupId=group, IpPermissions=[everything])
        for direction in ("Ingress", "Egress"):
            key = f"SecurityGroup{direction}"
            before, after = _permissions(old.get(key), direction), _permissions(properties.get(key), direction)
            lost, new = [p for p in before if p not in after], [p for p in after if p not in before]
            if lost:
                revoke = getattr(client, f"revoke_security_group_{direction.lower()}")
                ignore_gone(revoke, GroupId=group, IpPermissions=lost)
            if new:
                getattr(client, f"authorize_security_group_{direction.lower()}")(GroupId=group, IpPermissions=new)


def _permissions(rules: Any, direction: str) -> list[dict[str, Any]]:
    return [_permission(rule, direction) for rule in rules or []]


def _permission(rule: Properties, direction: str) -> dict[str, Any]:
    result: dict[str, Any] = {"IpProtocol": str(rule["IpProtocol"])}
    if result["IpProtocol"] != "-1":
        result |= {key: int(rule[key]) for key in ("FromPort", "ToPort") if key in rule}
    text = {"Description": rule["Description"]} if "Description" in rule else {}
    side = "Source" if direction == "Ingress" else "Destination"
    peers = (
        ("CidrIp", "IpRanges", "CidrIp"),
        ("CidrIpv6", "Ipv6Ranges", "CidrIpv6"),
        (f"{side}PrefixListId", "PrefixListIds", "PrefixListId"),
        (f"{side}SecurityGroupId", "UserIdGroupPairs", "GroupId"),
    )
    for key, section, member in peers:
        if key in rule:
            result[section] = [{member: rule[key], **text}]
    return result


class SecurityGroupRule(ResourceHandler):
    def __init__(self, direction: str) -> None:
        self.type, self.direction = f"AWS::EC2::SecurityGroup{direction}", direction

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        authorize = getattr(context.client("ec2"), f"authorize_security_group_{self.direction.lower()}")
        response = authorize(GroupId=properties["GroupId"], IpPermissions=[_permission(properties, self.direction)])
        rules = response.get("SecurityGroupRules") or [{"SecurityGroupRuleId": context.name()}]
        rule_id = str(rules[0]["SecurityGroupRuleId"])
        return Made(physical_id=rule_id, attributes={"Id": rule_id})

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        self.delete(context, made, old)
        return self.create(context, properties)

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        revoke = getattr(context.client("ec2"), f"revoke_security_group_{self.direction.lower()}")
        ignore_gone(revoke, GroupId=properties["GroupId"], IpPermissions=[_permission(properties, self.direction)])


class FlowLog(GenericHandler):
    """A flow log: the API takes a list of resources and gives a list of ids."""

    elsewhere = frozenset({"ResourceId"})

    def arguments(self, verb: str, properties: Properties) -> dict[str, Any]:
        result = super().arguments(verb, properties)
        return {**result, "ResourceIds": [properties["ResourceId"]]}

    def found_id(self, response: Any, properties: Properties) -> str:
        if response.get("Unsuccessful"):
            raise ResourceError(response["Unsuccessful"][0]["Error"]["Message"])
        return str(response["FlowLogIds"][0])
