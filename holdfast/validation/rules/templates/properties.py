"""0xx: properties of resources, by CloudFormation's registry schemas."""

from collections.abc import Iterator

from holdfast.catalog.facts import is_type, schema_of, type_names
from holdfast.validation.cloudformation import Resource, Violation, closest, violations
from holdfast.validation.engine import Broken, refused, rule
from holdfast.validation.model import App, Deployment, body_path

SCHEMAS = "CloudFormation registry schemas, as cfn-lint carries them"
_OPEN = ("AWS::CloudFormation::CustomResource", "AWS::CloudFormation::Macro", "AWS::CDK::Metadata")
_ATTRIBUTES = (
    "Type",
    "Properties",
    "DependsOn",
    "Condition",
    "Metadata",
    "DeletionPolicy",
    "UpdateReplacePolicy",
    "CreationPolicy",
    "UpdatePolicy",
    "Description",
)
_POLICIES = ("Delete", "Retain", "RetainExceptOnCreate", "Snapshot")


@rule("HF050", title="Properties exist on their resource type", each=App, source=SCHEMAS)
def known_properties(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A misspelt property fails the deployment with "Encountered unsupported property", or, where a service takes
    anything, is left out in silence. Names are case-sensitive; the page of each type lists its own.
    """
    yield from _broken(app, "unknown")


@rule("HF051", title="Required properties are given", each=App, source=SCHEMAS)
def required_properties(app: App, _: Deployment) -> Iterator[Broken]:
    """
    CloudFormation checks properties against the registry schema before it calls any service, and refuses a resource
    without those that are required.
    """
    yield from _broken(app, "missing")


@rule("HF052", title="Values of properties match the registry schema", each=App, source=SCHEMAS)
def values_of_properties(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Kinds, words, ranges, lengths and forms, as the registry schema says them: "Properties validation failed for
    resource". Values that only the deployment knows are not judged.
    """
    yield from _broken(app, "value")


@rule("HF053", title="Resource types exist", each=App, source=SCHEMAS, suppressible=True)
def known_types(app: App, _: Deployment) -> Iterator[Broken]:
    """
    A type that CloudFormation does not know fails the whole template. One that is newer than the list, or a private
    one, can be accepted.
    """
    for resource in app.all():
        name = resource.type
        if not name.startswith(("AWS::", "Alexa::")) or name in _OPEN or name.startswith("AWS::Serverless::"):
            continue
        if name.endswith("::MODULE") or is_type(name):
            continue
        meant = closest(name, type_names())
        yield refused(
            f"{body_path(resource)}.Type",
            f"the type {name}",
            allowed="the types of CloudFormation's registry",
            fix=f"did you mean {meant}?" if meant else "name the type as its page in the CloudFormation reference does",
        )


@rule(
    "HF054",
    title="Resources have only CloudFormation's attributes",
    each=App,
    source="CloudFormation user guide, 'Resource attribute reference'",
)
def resource_attributes(app: App, _: Deployment) -> Iterator[Broken]:
    """
    Beside Type and Properties a resource has DependsOn, Condition, Metadata and the policies; anything else there is a
    property in the wrong place, or a misspelt attribute. DeletionPolicy is Delete, Retain, RetainExceptOnCreate or
    Snapshot.
    """
    for resource in app.all():
        for name in resource.body:
            if name not in _ATTRIBUTES and not str(name).startswith("Fn::"):
                meant = closest(str(name), _ATTRIBUTES)
                yield refused(
                    f"{body_path(resource)}.{name}",
                    f"the attribute {name}",
                    allowed=", ".join(_ATTRIBUTES),
                    fix=f"did you mean {meant}?" if meant else f"move {name} into Properties",
                )
        for name in ("DeletionPolicy", "UpdateReplacePolicy"):
            value = resource.body.get(name)
            choices = _POLICIES if name == "DeletionPolicy" else tuple(p for p in _POLICIES if "OnCreate" not in p)
            if isinstance(value, str) and value not in choices:
                yield refused(
                    f"{body_path(resource)}.{name}",
                    f'"{value}"',
                    allowed=f"one of {', '.join(choices)}",
                    fix=f"write {closest(value, choices) or 'Retain'}",
                )


def _broken(app: App, kind: str) -> Iterator[Broken]:
    for found in _violations(app):
        if found.kind == kind:
            yield refused(found.path, found.given, allowed=found.allowed, fix=found.fix)


def _violations(app: App) -> list[Violation]:
    """Cached for the three rules that report them."""
    if "violations" not in app.memo:
        app.memo["violations"] = [each for resource in app.all() for each in _of(app, resource)]
    found: list[Violation] = app.memo["violations"]
    return found


def _of(app: App, resource: Resource) -> Iterator[Violation]:
    schema = None if resource.type in _OPEN else schema_of(resource.type)
    if schema is not None:
        yield from violations(schema, app.node(resource))
