"""``network`` section of an environment file."""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.catalog import instance_types
from holdfast.importing.account import ObservedCluster
from holdfast.importing.draft import Draft, KeptParts

DEFAULT_CIDR = "10.1.0.0/16"
ALL_TRAFFIC = "-1"
SMALL_SUBNET_PREFIX = 28
"""Of subnets for the NAT gateway and the control plane."""
YOURS = "the network that is there is used; its routes and endpoints are yours to keep right"


def network(observed: ObservedCluster, *, keeping: KeptParts, imported: Draft) -> dict[str, Any]:
    """``network`` section: the existing network, or the settings of Holdfast's own."""
    request = observed.cluster.get("VpcConfig")
    if not observed.subnets or observed.vpc is None:
        if request and keeping.keeps("network"):
            return named_network(request, imported=imported)
        return new_network(observed.region, imported=imported, why="AWS returned no network of the cluster")
    vpc_id, subnet = observed.vpc["VpcId"], observed.subnets[0]
    if not keeping.keeps("network", vpc_id) and not keeping.owns(vpc_id):
        return new_network(observed.region, imported=imported, why=f"the cluster is in {vpc_id}")
    section: dict[str, Any] = {"availability_zone": subnet["AvailabilityZone"], "egress": _egress(observed, subnet)}
    if keeping.owns(vpc_id):
        for other in observed.subnets[1:]:
            where = f"{other['SubnetId']} in {other['AvailabilityZone']}"
            imported.note("network", f"subnet {where} is left out: groups in it need an override_vpc", decide=True)
        return {"cidr": observed.vpc["CidrBlock"], **section, **_of_our_own(observed)}
    imported.note("network.existing", YOURS)
    if _has_efa(observed):
        for group in observed.security_groups[:1]:
            _check_group(group, imported)
    return {**section, "existing": _existing(observed, subnet, keeping, imported)}


def named_network(vpc: Mapping[str, Any], *, imported: Draft) -> dict[str, Any]:
    """Network of which only ids are known, as in a CreateCluster request."""
    imported.note("network.existing", YOURS)
    return {"existing": _ids(vpc["Subnets"], vpc["SecurityGroupIds"])}


def new_network(region: str, *, imported: Draft, why: str) -> dict[str, Any]:
    imported.note("network", f"{why}; a new one is made, or name the one to use in network.existing", decide=True)
    return {"cidr": DEFAULT_CIDR, "availability_zone": f"{region}a"}


def _ids(subnets: Sequence[str], groups: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {"subnet_id": subnets[0] if subnets else "", "additional_subnet_ids": list(subnets[1:])}
    found |= {"security_group_id": groups[0] if groups else "", "additional_security_group_ids": list(groups[1:])}
    return {name: value for name, value in found.items() if value != []}


def zones_of_our_own(observed: ObservedCluster) -> dict[str, str]:
    """Return subnet -> zone of the further zones of a network that the stack made, in the order of its file."""
    first = {subnet["SubnetId"] for subnet in observed.subnets}
    found = [
        subnet
        for subnet in observed.vpc_subnets
        if subnet["SubnetId"] in observed.stack - first and _block(subnet).prefixlen < SMALL_SUBNET_PREFIX
    ]
    return {subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in sorted(found, key=_block)}


def in_zones(groups: Sequence[dict[str, Any]], zones: Mapping[str, str]) -> None:
    """Name the zone of groups in subnets of the stack, in place of the subnets."""
    for group in groups:
        subnets = (group.get("override_vpc") or {}).get("subnet_ids", [])
        if len(subnets) == 1 and subnets[0] in zones:
            del group["override_vpc"]
            group["availability_zone"] = zones[subnets[0]]


def _block(subnet: Mapping[str, Any]) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(subnet["CidrBlock"])


def _of_our_own(observed: ObservedCluster) -> dict[str, Any]:
    further = zones_of_our_own(observed)
    small = [one for one in observed.vpc_subnets if one["SubnetId"] in observed.stack - set(further)]
    others = sorted({one["AvailabilityZone"] for one in small} - {observed.subnets[0]["AvailabilityZone"]})
    found: dict[str, Any] = {"control_plane_availability_zone": others[0]} if others else {}
    found |= {"additional_availability_zones": list(further.values())} if further else {}
    return {**found, "flow_logs": observed.flow_logs}


def _control_plane_subnets(observed: ObservedCluster) -> list[str]:
    return list(((observed.eks or {}).get("resourcesVpcConfig") or {}).get("subnetIds") or [])


def _existing(
    observed: ObservedCluster, subnet: Mapping[str, Any], keeping: KeptParts, imported: Draft
) -> dict[str, Any]:
    assert observed.vpc is not None
    subnets = [each["SubnetId"] for each in observed.subnets]
    section = {
        "vpc_id": observed.vpc["VpcId"],
        "vpc_cidr": observed.vpc["CidrBlock"],
        **_ids(subnets, [each["GroupId"] for each in observed.security_groups]),
        "subnet_cidr": subnet["CidrBlock"],
    }
    table = _route_table(observed, subnet["SubnetId"])
    by = None if table is None else _endpoint_to_s3(observed, table["RouteTableId"])
    if table is not None and by is None:
        text = f"no gateway endpoint to S3 is made for {table['RouteTableId']}, unless route_table_id names it"
        imported.note("network.existing", text)
    elif table is not None and keeping.owns(by or ""):
        section["route_table_id"] = table["RouteTableId"]
    control_plane = _control_plane_subnets(observed)
    if not control_plane or keeping.keeps("eks", (observed.eks or {}).get("name", "")):
        return section
    return section | {"control_plane_subnet_ids": control_plane}


def _egress(observed: ObservedCluster, subnet: Mapping[str, Any]) -> str:
    table = _route_table(observed, subnet["SubnetId"]) or {}
    default = (route for route in table.get("Routes", []) if route.get("DestinationCidrBlock") == "0.0.0.0/0")
    return "nat" if any(default) else "none"


def _route_table(observed: ObservedCluster, subnet_id: str) -> Mapping[str, Any] | None:
    joined = [(table, each) for table in observed.route_tables for each in table.get("Associations", [])]
    own = (table for table, each in joined if each.get("SubnetId") == subnet_id)
    main = (table for table, each in joined if each.get("Main"))
    return next(own, next(main, None))


def _endpoint_to_s3(observed: ObservedCluster, table_id: str) -> str | None:
    return next(
        (
            each["VpcEndpointId"]
            for each in observed.endpoints
            if each["VpcEndpointType"] == "Gateway"
            and each["ServiceName"].endswith(".s3")
            and table_id in each.get("RouteTableIds", [])
        ),
        None,
    )


def _has_efa(observed: ObservedCluster) -> bool:
    known = instance_types()
    types = {group.get("InstanceType", "") for group in observed.cluster.get("InstanceGroups") or []}
    return any(known[each].efa_interfaces for each in types & set(known))


def _check_group(group: Mapping[str, Any], imported: Draft) -> None:
    for way, rules in (("from", group.get("IpPermissions", [])), ("to", group.get("IpPermissionsEgress", []))):
        if not any(
            rule.get("IpProtocol") == ALL_TRAFFIC
            and any(pair.get("GroupId") == group["GroupId"] for pair in rule.get("UserIdGroupPairs", []))
            for rule in rules
        ):
            text = f"{group['GroupId']} does not allow all traffic {way} itself, which EFA needs"
            imported.note("network.existing.security_group_id", text, decide=True)
