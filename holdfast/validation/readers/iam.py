"""
Reader of roles: trust, and all policies in the templates.

An external policy (an ARN of another account, a parameter, an unknown AWS managed policy) may allow anything: it is an
UNRESOLVED statement after the known ones.
"""

from typing import Any

from holdfast.validation.cloudformation import UNRESOLVED, Node, Reference, Resource, Text, Values, required
from holdfast.validation.model import Role, Statement

_LIMITED = {
    "AmazonSageMakerClusterInstanceRolePolicy",
    "AmazonSSMManagedInstanceCore",
    "CloudWatchAgentServerPolicy",
    "CloudWatchLogsFullAccess",
    "AmazonS3ReadOnlyAccess",
    "AmazonS3FullAccess",
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonEC2ContainerRegistryPullOnly",
}
"""AWS managed policies that allow nothing a rule asks for: no EC2 network, no FSx (the policies' reference pages)."""


class RoleReader:
    def __init__(self, values: Values) -> None:
        self._values = values
        self._roles: dict[Resource | str, Role] = {}

    def role(self, node: Node) -> Role | None:
        """Role of a property with its ARN or name; None if absent."""
        if not node.present:
            return None
        resource = node.resource("AWS::IAM::Role")
        if resource is None:
            text = required(node.text())
            key = node.token if text is UNRESOLVED else str(text)
            if key not in self._roles:
                self._roles[key] = Role(
                    path=node.path,
                    id=text,
                    trusted_services=UNRESOLVED,
                    statements=UNRESOLVED,
                    managed_policies=UNRESOLVED,
                )
            return self._roles[key]
        if resource not in self._roles:
            self._roles[resource] = self._read(resource)
        return self._roles[resource]

    def _read(self, resource: Resource) -> Role:
        properties = self._values.properties(resource)
        statements = [
            *self._inline(properties.get("Policies")),
            *self._separate(resource),
            *self._managed(properties.get("ManagedPolicyArns")),
        ]
        return Role(
            path=resource.path,
            places={
                "trusted_services": f"{resource.path}.AssumeRolePolicyDocument",
                "statements": f"{resource.path}.Policies",
                "managed_policies": f"{resource.path}.ManagedPolicyArns",
            },
            id=self._values.graph.identity(resource),
            trusted_services=_trusted(properties.get("AssumeRolePolicyDocument")),
            statements=tuple(
                sorted(statements, key=lambda each: not (each.is_known("effect") and each.is_known("actions")))
            ),
            managed_policies=_managed_names(properties.get("ManagedPolicyArns")),
        )

    def _inline(self, policies: Node) -> list[Statement]:
        entries = policies.items()
        if entries is None:
            return [_unknown(policies.path)]
        return [each for entry in entries for each in self._document(entry.get("PolicyDocument"))]

    def _separate(self, role: Resource) -> list[Statement]:
        found: list[Statement] = []
        lists = self._values.linked(["AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"], ["Roles"], role)
        single = self._values.linked(["AWS::IAM::RolePolicy"], ["RoleName"], role)
        for policy in (*lists.found, *single.found):
            found += self._document(self._values.properties(policy).get("PolicyDocument"))
        found += [_unknown(policy.path) for policy in (*lists.doubtful, *single.doubtful)]
        return found if self._values.graph.complete else [*found, _unknown(role.path)]

    def _managed(self, arns: Node) -> list[Statement]:
        entries = arns.items()
        if entries is None:
            return [_unknown(arns.path)]
        found: list[Statement] = []
        for entry in entries:
            policy = entry.resource("AWS::IAM::ManagedPolicy")
            if policy is not None:
                found += self._document(self._values.properties(policy).get("PolicyDocument"))
            elif _aws_managed(entry) not in _LIMITED:
                found.append(_unknown(entry.path))
        return found

    def _document(self, document: Node) -> list[Statement]:
        statement = document.get("Statement")
        if isinstance(statement.value, dict):
            entries: list[Node] | None = [statement]
        else:
            entries = statement.items()
        if entries is None:
            return [_unknown(statement.path)]
        return [self._statement(entry) for entry in entries]

    def _statement(self, node: Node) -> Statement:
        if not node.known or node.get("NotAction").present:
            return _unknown(node.path)
        # Under a condition it may not hold; that it may is taken as it does.
        return Statement(
            path=node.path,
            places={"actions": f"{node.path}.Action", "resources": f"{node.path}.Resource"},
            effect=required(node.get("Effect").text()),
            actions=node.get("Action").strings(),
            resources=self._resources(node.get("Resource")),
        )

    def _resources(self, node: Node) -> Any:
        entries = node.items() if isinstance(node.value, list) else [node]
        texts = [self._arn(entry.example) for entry in entries or ()]
        return UNRESOLVED if entries is None or UNRESOLVED in texts else tuple(texts)

    def _arn(self, value: object) -> Any:
        """ARN as text: ``${Bucket}`` and the like stand for generated names."""
        if isinstance(value, str):
            return value
        if isinstance(value, Text):
            parts = [self._arn(part) for part in value.parts]
            return UNRESOLVED if UNRESOLVED in parts else "".join(parts)
        if not isinstance(value, Reference):
            return UNRESOLVED
        identity = self._values.graph.identity(value.resource)
        if value.resource.type == "AWS::S3::Bucket" and value.attribute == "Arn":
            name = self._values.name(Reference(value.resource, "Ref"))
            return f"arn:aws:s3:::{name}" if isinstance(name, str) else f"arn:aws:s3:::${{{identity}}}"
        return f"${{{identity}}}" if value.attribute == "Ref" else f"${{{identity}.{value.attribute}}}"


def _trusted(document: Node) -> Any:
    statement = document.get("Statement")
    entries = [statement] if isinstance(statement.value, dict) else statement.items()
    services: set[str] = set()
    for entry in entries or ():
        if entry.get("Effect").text() == "Deny":
            continue
        principal = entry.get("Principal")
        if principal.value == "*":
            return UNRESOLVED
        service = principal.get("Service")
        for each in (service.items() or ()) if isinstance(service.value, list) else [service]:
            name = _service(each)
            if name is UNRESOLVED:
                return UNRESOLVED
            services |= {name} if name else set()
    return UNRESOLVED if entries is None else frozenset(services)


def _service(node: Node) -> Any:
    """``sagemaker.amazonaws.com``, also where the domain follows from the region."""
    return node.text() if isinstance(node.value, str) or not isinstance(node.example, str) else node.example


def _aws_managed(node: Node) -> Any:
    """Name of an AWS managed policy; None for others, UNRESOLVED if unknown."""
    text = node.text()
    if not isinstance(text, str):
        return UNRESOLVED
    before, _, name = text.rpartition("/")
    return name if ":iam::aws:policy" in before else None


def _managed_names(arns: Node) -> Any:
    entries = arns.items()
    if entries is None:
        return UNRESOLVED
    names = {
        None if entry.resource("AWS::IAM::ManagedPolicy") is not None else _aws_managed(entry) for entry in entries
    }
    return UNRESOLVED if UNRESOLVED in names else frozenset(names - {None})


def _unknown(path: str) -> Statement:
    return Statement(path=path, effect=UNRESOLVED, actions=UNRESOLVED, resources=UNRESOLVED)
