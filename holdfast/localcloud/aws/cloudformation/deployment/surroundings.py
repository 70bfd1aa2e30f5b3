"""References of template values: parameters, resources, other stacks' exports, SSM."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.cloudformation.deployment.store import DeploymentTarget, Resource, Stack, StackStore
from holdfast.localcloud.aws.cloudformation.resources.handlers import LocalMachine, ResourceContext
from holdfast.localcloud.aws.cloudformation.template import KNOWN_AFTER_APPLY, TemplateError, TemplateScope, typed
from holdfast.localcloud.aws.common import Mishaps


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    store: StackStore
    client: Callable[[str], Any]
    account: str
    region: str
    skip: bool = False
    """True if waits are skipped."""
    mishaps: Mishaps = field(default_factory=Mishaps)
    machine: LocalMachine | None = None
    """Default: none, everything is a record."""

    def context(
        self,
        stack: Stack,
        logical_id: str,
        *,
        pause: Callable[[float], None] = lambda _: None,
        note: Callable[[str], None] = lambda _: None,
    ) -> ResourceContext:
        """Return what a handler works with. Defaults: for questions, which wait for nothing and make nothing."""
        return ResourceContext(
            client=self.client,
            account=self.account,
            region=self.region,
            stack_name=stack.name,
            stack_id=stack.id,
            logical_id=logical_id,
            pause=pause,
            function=self.function,
            layer=self.layer,
            machine=self.machine,
            note=note,
        )

    def function(self, arn: str) -> dict[str, Any]:
        return self._sent("AWS::Lambda::Function", arn, named_by="Arn")

    def layer(self, arn: str) -> dict[str, Any]:
        return self._sent("AWS::Lambda::LayerVersion", arn, named_by="LayerVersionArn")

    def _sent(self, kind: str, arn: str, *, named_by: str) -> dict[str, Any]:
        with self.store.lock:
            entries = [entry for stack in self.store.stacks.values() for entry in stack.resources.values()]
        made = [entry for entry in entries if entry.type == kind]
        return next((entry.sent for entry in made if entry.attributes.get(named_by) == arn), {})

    def ssm_value(self, name: str) -> str:
        """Return the value of an SSM parameter, given as ``name`` or ``name:version``."""
        try:
            return str(self.client("ssm").get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"])
        except ClientError as error:
            raise TemplateError(
                f"Unable to fetch parameters [{name}] from parameter store for this account. "
                f"({error.response['Error']['Code']})"
            ) from None

    def secret_value(self, argument: str) -> str:
        """Return a secret or a member: ``name-or-ARN:SecretString:key:stage:version``, all but the first optional."""
        name, _, rest = argument.partition(":SecretString")
        key, stage, version = [*rest.removeprefix(":").split(":"), "", "", ""][:3]
        asked = {"VersionStage": stage, "VersionId": version}
        try:
            text = self.client("secretsmanager").get_secret_value(
                SecretId=name, **{member: value for member, value in asked.items() if value}
            )["SecretString"]
            return str(json.loads(text)[key]) if key else str(text)
        except ClientError as error:
            message = error.response["Error"].get("Message", "")
            raise TemplateError(f"Could not resolve the secret {name}: {message}") from None
        except (ValueError, KeyError):
            raise TemplateError(f"Could not find a value associated with JSONKey in SecretString: {key}") from None

    def zones(self) -> list[str]:
        return sorted(
            zone["ZoneName"] for zone in self.client("ec2").describe_availability_zones()["AvailabilityZones"]
        )

    def pseudo(self, stack: Stack) -> dict[str, Any]:
        return {
            "AWS::AccountId": self.account,
            "AWS::Region": self.region,
            "AWS::Partition": "aws",
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackId": stack.id,
            "AWS::StackName": stack.name,
            "AWS::NotificationARNs": [],
        }

    def scope(
        self,
        stack: Stack,
        target: DeploymentTarget,
        resources: Mapping[str, Resource],
        *,
        imports: set[str] | None = None,
        foreseeing: bool = False,
        fresh: frozenset[str] = frozenset(),
    ) -> TemplateScope:
        """
        Return the scope in which values of ``target`` resolve.

        Args:
            imports: Collects the exports that are used. Default: not collected.
            foreseeing: True if missing values are placeholders instead of errors, for change sets.
            fresh: Resources that the change will replace.
        """
        document = target.document

        def known(name: str) -> Resource | None:
            found = None if name in fresh else resources.get(name)
            return found if found is not None and found.physical_id else None

        def reference(name: str) -> Any:
            found = known(name)
            if found is not None:
                return found.physical_id
            if foreseeing and name in document["Resources"]:
                return KNOWN_AFTER_APPLY
            raise TemplateError(f"Template format error: Unresolved resource dependencies [{name}]")

        def attribute(name: str, key: str) -> Any:
            found = known(name)
            if found is None:
                return reference(name)
            value = found.attributes.get(key)
            if value is None:
                value = _inside(found.sent, key)
            if value is None:
                raise TemplateError(
                    f"Attribute {key} of resource {name} ({found.type}) has no value; "
                    f"it has {', '.join(sorted(found.attributes)) or 'none'}"
                )
            return value

        def imported(name: str) -> str:
            export = self.store.exports().get(name)
            if export is None:
                raise TemplateError(f"No export named {name} found.")
            if imports is not None:
                imports.add(name)
            return export[0]

        return TemplateScope(
            pseudo=self.pseudo(stack),
            parameters=typed(document, target.parameters, target.looked_up),
            mappings=document.get("Mappings", {}),
            conditions=document.get("Conditions", {}),
            reference=reference,
            attribute=attribute,
            imported=imported,
            dynamic=self._dynamic,
            zones=self.zones,
        )

    def _dynamic(self, service: str, argument: str) -> str:
        if service in ("ssm", "ssm-secure"):
            return self.ssm_value(argument)
        if service == "secretsmanager":
            return self.secret_value(argument)
        raise TemplateError(f"dynamic reference to {service}: the embedded AWS resolves ssm and secretsmanager only")


def _inside(properties: Any, key: str) -> Any:
    for part in key.split("."):
        if not isinstance(properties, Mapping) or part not in properties:
            return None
        properties = properties[part]
    return properties
