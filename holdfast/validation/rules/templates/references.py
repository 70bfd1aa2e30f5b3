"""0xx: Ref, Fn::GetAtt, Fn::Sub and DependsOn: what they name is there, and is of the kind that the property takes."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.catalog.facts import Schema, schema_of
from holdfast.validation.cloudformation import Node, Reference, Resource, Template, closest
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import App, Deployment, body_path

INTRINSICS = "CloudFormation reference, 'Intrinsic functions'"
RETURN_VALUES = "CloudFormation reference, 'Return values' on the page of each resource type"

_PSEUDO = {
    "AWS::AccountId",
    "AWS::NotificationARNs",
    "AWS::NoValue",
    "AWS::Partition",
    "AWS::Region",
    "AWS::StackId",
    "AWS::StackName",
    "AWS::URLSuffix",
}
_SUBSTITUTION = re.compile(r"\$\{([^!{}][^{}]*)\}")
_ANY_ATTRIBUTE = {
    "AWS::CloudFormation::CustomResource",
    "AWS::CloudFormation::Stack",
    "AWS::ServiceCatalog::CloudFormationProvisionedProduct",
}
_ALL_PROPERTIES = {
    "AWS::EC2::Instance",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::Subnet",
    "AWS::EC2::VPC",
    "AWS::EKS::Nodegroup",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::Grafana::Workspace",
    "AWS::RDS::DBInstance",
    "AWS::RDS::DBParameterGroup",
    "AWS::S3::AccessPoint",
    "AWS::SNS::Topic",
    "AWS::SQS::Queue",
    "AWS::SSM::Parameter",
    "AWS::Events::EventBus",
    "AWS::AutoScaling::AutoScalingGroup",
}
"""Types of which Fn::GetAtt gives every property, not only those that are read-only (cfn-lint, schema/_getatts)."""
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


@rule("HF055", title="References name something in the template", each=App, source=INTRINSICS)
def known_names(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Ref, Fn::GetAtt, Fn::Sub and DependsOn name resources, and Ref and Fn::Sub parameters and pseudo parameters, of the
    same template. Anything else fails with "Unresolved resource dependencies".
    """
    for template in app.values.graph.templates:
        yield from _unknown_names(app, template)


@rule(
    "HF058",
    severity="warning",
    title="Conditional resources are referred to under the same condition",
    each=App,
    source="CloudFormation reference, 'Condition functions': associate a condition with what uses the resource too",
)
def conditional_resources(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A resource whose condition does not hold is not there, and Ref or Fn::GetAtt of it fails with "Unresolved resource
    dependencies". What uses it needs the same condition, or Fn::If.
    """
    for template in app.values.graph.templates:
        if not template.left_out:
            continue
        for resource in app.all():
            if resource.template is template:
                for path, function, argument in functions_in(resource.body.get("Properties"), resource.path):
                    names = {*_named(function, argument)} | ({_owner(argument)} if function == "Fn::GetAtt" else set())
                    for name in sorted(filter(None, names & template.left_out)):
                        yield Broken(
                            path=path,
                            message=f"{name} is not there when its condition does not hold",
                            fix=f"give {resource.logical_id} the condition of {name}, or write Fn::If",
                        )


@rule("HF056", title="Fn::GetAtt asks for an attribute of the resource type", each=App, source=RETURN_VALUES)
def known_attributes(app: App, _: Deployment) -> Iterator[Broken]:
    """Fn::GetAtt gives the attributes under "Return values" of a type's page, and nothing else."""
    places = [(each.template, each.path, each.body.get("Properties")) for each in app.all()]
    for template in app.values.graph.templates:
        prefix = f"{template.path}#" if template.path else ""
        places.append((template, f"{prefix}Outputs", template.section("Outputs")))
    for template, start, value in places:
        for path, function, argument in functions_in(value, start):
            if function == "Fn::GetAtt":
                yield from _wrong_attribute(app, template, path, argument)
            if function == "Fn::Sub":
                for name in _substituted(argument):
                    if "." in name:
                        yield from _wrong_attribute(app, template, path, name)


@rule("HF057", title="References give what the property takes: a name, an id or an ARN", each=App, source=RETURN_VALUES)
def kinds_of_references(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Ref gives a name, an id or an ARN, depending on the type; a property takes one of them. The name of a role where its
    ARN is wanted, a VPC where a subnet is, the id of a file system where its DNS name is: CloudFormation passes all of
    them on, and the service refuses.
    """
    for resource in app.all():
        schema = schema_of(resource.type)
        if schema is not None:
            yield from _kinds(schema, schema.body, app.node(resource), resource)


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


def _unknown_names(app: App, template: Template) -> Iterator[Broken]:
    resources, parameters = template.section("Resources"), template.section("Parameters")
    resources = {**resources, **dict.fromkeys(template.left_out)}
    everything = {*resources, *parameters, *_PSEUDO}
    if any(str(name).startswith("Fn::") for name in resources) or not app.complete:
        return
    places = [
        (resource.path, resource.body.get("Properties")) for resource in app.all() if resource.template is template
    ]
    prefix = f"{template.path}#" if template.path else ""
    places += [(f"{prefix}Outputs.{name}", each) for name, each in template.section("Outputs").items()]
    for start, value in places:
        for path, function, argument in functions_in(value, start):
            for name in _named(function, argument):
                if name not in everything:
                    yield _no_such(path, f"{function} {name}", name, everything)
            if function == "Fn::GetAtt" and (logical := _owner(argument)) and logical not in resources:
                yield _no_such(path, f"Fn::GetAtt {logical}", logical, resources)
    for resource in app.all():
        if resource.template is not template:
            continue
        for name in resource.depends_on:
            if name not in resources:
                yield _no_such(f"{body_path(resource)}.DependsOn", f"DependsOn {name}", name, resources)


def _no_such(path: str, given: str, name: str, known: Any) -> Broken:
    meant = closest(name, map(str, known))
    return refused(
        path,
        f"{given}, which the template does not have",
        allowed="logical ids and parameters of the same template",
        fix=f"did you mean {meant}?" if meant else f"add {name}, or name another",
    )


def _named(function: str, argument: Any) -> Iterator[str]:
    if function == "Ref" and isinstance(argument, str):
        yield argument
    if function == "Fn::Sub":
        yield from (name.partition(".")[0] for name in _substituted(argument))


def _substituted(argument: Any) -> Iterator[str]:
    text, own = argument if isinstance(argument, list) and len(argument) == 2 else (argument, {})
    if isinstance(text, str) and isinstance(own, Mapping):
        for match in _SUBSTITUTION.finditer(text):
            name = match[1].strip()
            if name not in own and "&" not in name:
                yield name


def _owner(argument: Any) -> str | None:
    if isinstance(argument, str):
        return argument.partition(".")[0]
    return argument[0] if isinstance(argument, list) and argument and isinstance(argument[0], str) else None


def _wrong_attribute(app: App, template: Template, path: str, argument: Any) -> Iterator[Broken]:
    parts = argument.split(".", 1) if isinstance(argument, str) else argument
    if not (isinstance(parts, list) and len(parts) == 2 and all(isinstance(part, str) for part in parts)):
        return
    resource = app.values.graph.find(template, parts[0])
    if resource is None or resource.type in _ANY_ATTRIBUTE or resource.type.startswith("Custom::"):
        return
    schema = schema_of(resource.type)
    if schema is None:
        return
    known = set(schema.attributes)
    if resource.type in _ALL_PROPERTIES:
        known |= set(schema.properties)
    if parts[1] in known or any(name.startswith(f"{parts[1]}.") or parts[1].startswith(f"{name}.") for name in known):
        return
    meant = closest(parts[1], known)
    by_ref = parts[1] in schema.reference
    yield refused(
        path,
        f"{parts[0]}.{parts[1]}, which {resource.type} does not give",
        allowed=f"its attributes {', '.join(sorted(known)) or '(none)'}",
        fix=f"use Ref, which gives {parts[1]}" if by_ref else f"did you mean {meant}?" if meant else "use one of them",
    )


def _kinds(schema: Schema, part: Mapping[str, Any], node: Node, owner: Resource) -> Iterator[Broken]:
    value = node.value
    if isinstance(value, Mapping):
        properties = part.get("properties", {})
        for name in value:
            inner = properties.get(name)
            if isinstance(inner, Mapping):
                yield from _kinds(schema, schema.resolved(inner), node.get(str(name)), owner)
        for choice in (*part.get("oneOf", ()), *part.get("anyOf", ())):
            resolved = schema.resolved(choice) if isinstance(choice, Mapping) else {}
            if set(map(str, value)) <= set(resolved.get("properties", {})) and not properties:
                yield from _kinds(schema, resolved, node, owner)
    elif isinstance(value, list):
        inner = part.get("items")
        if isinstance(inner, Mapping):
            for entry in node.items() or ():
                yield from _kinds(schema, schema.resolved(inner), entry, owner)
    elif isinstance(value, Reference):
        yield from _kind(part, node, value)


def _kind(part: Mapping[str, Any], node: Node, given: Reference) -> Iterator[Broken]:
    source = given.resource
    source_schema = schema_of(source.type)
    if source_schema is None or source.type in _ANY_ATTRIBUTE:
        return
    names = source_schema.reference if given.attribute == "Ref" else (given.attribute,)
    shown = (
        f"Ref {source.logical_id}" if given.attribute == "Ref" else f"{source.logical_id}.{given.attribute}"
    ) + f", {'|'.join(names)} of {source.type}"
    expected = _expected(part, node)
    if expected.arn is not None and _is_arn(source, given.attribute, names) is not None:
        is_arn = _is_arn(source, given.attribute, names)
        if is_arn != expected.arn:
            attribute = next((each for each in sorted(source_schema.attributes) if each.lower().endswith("arn")), None)
            fix = (
                f"use Fn::GetAtt {source.logical_id}.{attribute}"
                if expected.arn and attribute
                else (
                    "use what gives an ARN"
                    if expected.arn
                    else f"use Ref {source.logical_id}, or the attribute that is no ARN"
                )
            )
            yield refused(node.path, shown, allowed="an ARN" if expected.arn else "a name or id, no ARN", fix=fix)
            return
    if expected.types and source.type not in expected.types and source.type.startswith("AWS::"):
        if expected.arn and _is_arn(source, given.attribute, names) and not expected.only:
            return
        if any(kind.rpartition("::")[2].lower() in given.attribute.lower() for kind in expected.types):
            return  # the attribute is one of that kind: ClusterSecurityGroupId of an EKS cluster
        yield refused(
            node.path,
            shown,
            allowed=f"what {' or '.join(sorted(expected.types))} gives",
            fix="name a resource of that type",
        )


class _Expected:
    """Type of a property's value: ARN or not, and of which resource types."""

    def __init__(self, *, arn: bool | None, types: frozenset[str], only: bool) -> None:
        self.arn, self.types, self.only = arn, types, only


def _expected(part: Mapping[str, Any], node: Node) -> _Expected:
    name = _property_name(node.path)
    relations = [part.get("relationshipRef"), *(each.get("relationshipRef") for each in _choices(part))]
    types = frozenset(each["typeName"] for each in relations if isinstance(each, Mapping))
    form = part.get("format")
    forms = {form, *(each.get("format") for each in _choices(part))} - {None}
    by_format = frozenset(
        str(each).partition(".")[0].removesuffix("s") for each in forms if str(each).startswith("AWS::")
    )
    only = name.lower() in _STRICT
    pattern = str(part.get("pattern", ""))
    arn: bool | None = None
    if re.match(r"\^?arn:", pattern) or (name.endswith(("Arn", "ARN", "Arns", "ARNs")) and not types - _WITH_ARN):
        arn = True
    if forms and all(str(each).endswith((".Id", ".Ids", ".Name", ".Names")) for each in forms):
        arn = False
    if name in _NAMES and not forms:
        arn = False
    return _Expected(
        arn=arn, types=by_format if only and by_format else types if only else _STRICT_FORMATS & by_format, only=only
    )


_WITH_ARN: frozenset[str] = frozenset()
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
_STRICT = {
    "subnetids",
    "subnets",
    "vpcid",
    "securitygroupids",
    "subnetid",
    "routetableid",
    "routetableids",
    "natgatewayid",
    "internetgatewayid",
    "gatewayid",
}
_STRICT_FORMATS = frozenset({"AWS::EC2::VPC", "AWS::EC2::Subnet", "AWS::EC2::SecurityGroup", "AWS::IAM::Role"})


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
