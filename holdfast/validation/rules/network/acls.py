"""2xx: network access control lists."""

from collections.abc import Iterator

from holdfast.validation.cloudformation import Resource
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import App, Deployment
from holdfast.validation.rules.network.templates import ANYWHERE, SUBNET, node_subnets

ACLS = "VPC user guide, 'Custom network ACLs': ephemeral ports"


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
                for label, low, high, protocol, expected in _REQUIRED[egress]
                if (about_nodes or expected) and not _passes(rules, low, high, protocol)
            ]
            if missing:
                yield refused(
                    place,
                    f"a list, {acl.logical_id}, that lets {' and '.join(missing)} {way} nowhere",
                    allowed="HTTPS out, answers back in, and Lustre and NFS between nodes and file systems",
                    fix=f"add an entry to {acl.logical_id} that allows {missing[0]} {way}",
                )


_REQUIRED = {
    False: (("answers to nodes (TCP 1024-65535)", 32768, 60999, "6", True), ("Lustre (TCP 988)", 988, 988, "6", False)),
    True: (("HTTPS (TCP 443)", 443, 443, "6", True), ("answers (TCP 1024-65535)", 32768, 60999, "6", False)),
}


class _Entry:
    def __init__(
        self, *, resource: Resource, number: int, allow: bool, protocol: str, low: int, high: int, block: str
    ) -> None:
        self.resource, self.number, self.allow, self.protocol = resource, number, allow, protocol
        self.low, self.high, self.block = low, high, block


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
    for each in rules:
        if each.protocol not in (protocol, "-1") or each.high < low or each.low > high:
            continue
        if not each.allow and each.block in ANYWHERE and each.low <= low and high <= each.high:
            return False
        if each.allow and each.low <= low and high <= each.high:
            return True
        if each.allow:
            return True
    return False
