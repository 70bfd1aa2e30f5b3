"""0xx: Ref and Fn::GetAtt give what the property takes; cfn-lint judges whether what they name exists."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.catalog.facts import Schema, schema_of
from holdfast.validation.cloudformation import Node, Reference, Resource
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import App, Deployment

RETURN_VALUES = "CloudFormation reference, 'Return values' on the page of each resource type"

_ANY_ATTRIBUTE = {
    "AWS::CloudFormation::CustomResource",
    "AWS::CloudFormation::Stack",
    "AWS::ServiceCatalog::CloudFormationProvisionedProduct",
}
_ARN_BY_REF = {
    "AWS::SNS::Topic",
    "AWS::IAM::ManagedPolicy",
    "AWS::SecretsManager::Secret",
    "AWS::StepFunctions::StateMachine",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::ElasticLoadBalancingV2::TargetGroup",
    "AWS::ElasticLoadBalancingV2::Listener",
    "AWS::CertificateManager::Certificate",
    "AWS::ECS::TaskDefinition",
    "AWS::SageMaker::Cluster",
    "AWS::Lambda::Version",
    "AWS::Lambda::Alias",
    "AWS::Lambda::LayerVersion",
    "AWS::IAM::SAMLProvider",
    "AWS::IAM::OIDCProvider",
    "AWS::CloudFormation::Stack",
    "AWS::Batch::JobQueue",
    "AWS::Batch::JobDefinition",
    "AWS::Batch::ComputeEnvironment",
    "AWS::ECS::Service",
    "AWS::APS::Workspace",
    "AWS::APS::RuleGroupsNamespace",
    "AWS::CodeStarConnections::Connection",
}


@rule("HF057", title="References give what the property takes: a name, an id or an ARN", each=App, source=RETURN_VALUES)
def kinds_of_references(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Ref gives a name, an id or an ARN, depending on the type; a property takes one of them. CloudFormation passes the
    name of a role on where its ARN is wanted, and the service refuses.
    """
    for resource in app.all():
        for part, node in typed_leaves(app, resource):
            if isinstance(node.value, Reference):
                yield from _kind(part, node, node.value)


def functions_of(app: App, resource: Resource) -> list[tuple[str, str, Any]]:
    """Functions in a resource's properties: place, name, argument."""
    key = f"functions {id(resource)}"
    if key not in app.memo:
        app.memo[key] = list(functions_in(resource.body.get("Properties"), resource.path))
    found: list[tuple[str, str, Any]] = app.memo[key]
    return found


def functions_in(value: Any, path: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from functions_in(item, f"{path}.{index}")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            is_function = len(value) == 1 and (key == "Ref" or str(key).startswith("Fn::"))
            if is_function:
                yield path, str(key), item
            yield from functions_in(item, path if is_function else f"{path}.{key}")


def typed_leaves(app: App, resource: Resource) -> list[tuple[Mapping[str, Any], Node]]:
    """Scalar values of a resource with their parts of its schema."""
    key = f"typed leaves {id(resource)}"
    if key not in app.memo:
        schema = schema_of(resource.type)
        app.memo[key] = [] if schema is None else list(_typed(schema, schema.body, app.node(resource)))
    found: list[tuple[Mapping[str, Any], Node]] = app.memo[key]
    return found


def _typed(schema: Schema, part: Mapping[str, Any], node: Node) -> Iterator[tuple[Mapping[str, Any], Node]]:
    value = node.value
    if isinstance(value, Mapping):
        properties = part.get("properties", {})
        for name in value:
            inner = properties.get(name)
            if isinstance(inner, Mapping):
                yield from _typed(schema, schema.resolved(inner), node.get(str(name)))
        for choice in (*part.get("oneOf", ()), *part.get("anyOf", ())):
            resolved = schema.resolved(choice) if isinstance(choice, Mapping) else {}
            if set(map(str, value)) <= set(resolved.get("properties", {})) and not properties:
                yield from _typed(schema, resolved, node)
    elif isinstance(value, list):
        inner = part.get("items")
        if isinstance(inner, Mapping):
            for entry in node.items() or ():
                yield from _typed(schema, schema.resolved(inner), entry)
    else:
        yield part, node


def _kind(part: Mapping[str, Any], node: Node, given: Reference) -> Iterator[Broken]:
    source = given.resource
    schema = schema_of(source.type)
    if schema is None or source.type in _ANY_ATTRIBUTE:
        return
    names = schema.reference if given.attribute == "Ref" else (given.attribute,)
    expected, is_arn = _takes_arn(part, node), _is_arn(source, given.attribute, names)
    if expected is None or is_arn is None or is_arn == expected:
        return
    by_ref = given.attribute == "Ref"
    shown = f"Ref {source.logical_id}" if by_ref else f"{source.logical_id}.{given.attribute}"
    attribute = next((each for each in sorted(schema.attributes) if each.lower().endswith("arn")), None)
    fix = f"use Ref {source.logical_id}, or the attribute that is no ARN"
    if expected:
        fix = f"use Fn::GetAtt {source.logical_id}.{attribute}" if attribute else "use what gives an ARN"
    yield refused(
        node.path,
        f"{shown}, {'|'.join(names)} of {source.type}",
        allowed="an ARN" if expected else "a name or id, no ARN",
        fix=fix,
    )


def _takes_arn(part: Mapping[str, Any], node: Node) -> bool | None:
    """True for a property that takes an ARN, False for a name or an id; None if unknown."""
    name = _property_name(node.path)
    choices = _choices(part)
    forms = {part.get("format"), *(each.get("format") for each in choices)} - {None}
    if name in _NAMES and not forms:
        return False
    if forms and all(str(each).endswith((".Id", ".Ids", ".Name", ".Names")) for each in forms):
        return False
    related = any(isinstance(each.get("relationshipRef"), Mapping) for each in (part, *choices))
    if re.match(r"\^?arn:", str(part.get("pattern", ""))):
        return True
    return True if name.endswith(("Arn", "ARN", "Arns", "ARNs")) and not related else None


_NAMES = {
    "ClusterName",
    "RoleName",
    "BucketName",
    "LogGroupName",
    "FileSystemId",
    "InstanceProfileName",
    "DNSName",
    "DnsName",
    "MountName",
    "DestinationBucketName",
    "NodegroupName",
    "VpcId",
    "SubnetId",
    "RouteTableId",
    "InternetGatewayId",
    "NatGatewayId",
    "SecurityGroupId",
    "GroupId",
}
"""Properties that take a name or an id and no ARN."""


def _choices(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for word in ("anyOf", "oneOf") for each in part.get(word, ()) if isinstance(each, Mapping)]


def _property_name(path: str) -> str:
    return next((each for each in reversed(path.split(".")) if not each.isdigit()), "")


def _is_arn(source: Resource, attribute: str, names: tuple[str, ...]) -> bool | None:
    """True if a reference gives an ARN; None if unknown."""
    if attribute == "Ref":
        if source.type in _ARN_BY_REF or (names[-1:] and names[-1].lower().endswith("arn")):
            return True
        return False if len(names) == 1 and not names[0].lower().endswith("id") else _id_is_no_arn(source.type)
    last = attribute.rpartition(".")[2].lower()
    return last.endswith("arn")


def _id_is_no_arn(kind: str) -> bool | None:
    return False if kind.startswith(("AWS::EC2::", "AWS::FSx::", "AWS::KMS::", "AWS::EFS::")) else None
