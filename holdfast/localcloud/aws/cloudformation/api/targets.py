"""Target of a request: its template and parameters, their validation, and the resulting changes. Changes nothing."""

import re
import urllib.parse
from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.cloudformation import deployment, registry
from holdfast.localcloud.aws.cloudformation.api.lookup import invalid
from holdfast.localcloud.aws.cloudformation.api.names import clashes, importable, taken
from holdfast.localcloud.aws.cloudformation.deployment import PAUSED, DeploymentTarget, Stack, Surroundings, system_tags
from holdfast.localcloud.aws.cloudformation.registry import attributes, prepared
from holdfast.localcloud.aws.cloudformation.resources import supports
from holdfast.localcloud.aws.cloudformation.template import (
    LARGEST,
    TemplateError,
    capabilities,
    check,
    chosen,
    failed_rules,
    parse,
    resolved,
)
from holdfast.localcloud.aws.common import ServiceError


class Targets:
    def __init__(self, *, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def target(self, request: dict[str, Any], stack: Stack | None) -> DeploymentTarget:
        """Return the target of the request. Reject invalid templates and parameters."""
        previous, region = stack.target if stack is not None else None, self._surroundings.region
        if request.get("UsePreviousTemplate"):
            if previous is None:
                raise invalid("UsePreviousTemplate is only possible for a stack that exists")
            body = previous.body
        else:
            body = self.body(request)
        try:
            document = parse(body)
            values = chosen(document, request.get("Parameters") or [], previous.parameters if previous else None)
            looked_up = resolved(document, values, self._surroundings.ssm_value)
            check(document, supports=lambda kind: supports(kind) and registry.available(kind, region))
        except TemplateError as error:
            raise invalid(str(error)) from None
        needed, given = capabilities(document), set(request.get("Capabilities") or ())
        if needed and not given & {"CAPABILITY_NAMED_IAM", *needed}:
            raise ServiceError("InsufficientCapabilitiesException", f"Requires capabilities : [{', '.join(needed)}]")
        tags = request.get("Tags")
        if tags is None and previous is not None:
            pairs = dict(previous.tags)
        else:
            pairs = {tag["Key"]: tag["Value"] for tag in tags or []}
        return DeploymentTarget(
            body=body, document=document, parameters=values, looked_up=looked_up, tags=pairs, capabilities=sorted(given)
        )

    def body(self, request: dict[str, Any]) -> str:
        """Return the template of a request, from the body, S3 or the stack."""
        if request.get("TemplateBody"):
            return str(request["TemplateBody"])
        url = request.get("TemplateURL")
        if not url:
            raise invalid("Either Template URL or Template Body must be specified.")
        parts = urllib.parse.urlparse(url)
        bucket, _, key = urllib.parse.unquote(parts.path).lstrip("/").partition("/")
        virtual = re.fullmatch(r"(.+?)\.s3[.-].*", parts.hostname or "")
        if virtual:
            bucket, key = virtual[1], urllib.parse.unquote(parts.path).lstrip("/")
        try:
            stored = self._surroundings.client("s3").get_object(Bucket=bucket, Key=key)
        except ClientError as error:
            raise invalid(f"S3 error: {error.response['Error'].get('Message', '')} ({url})") from None
        return str(stored["Body"].read(LARGEST + 1).decode("utf-8", "replace"))

    def judge(self, stack: Stack, target: DeploymentTarget) -> None:
        """Check rules, conditions and attribute names before anything is created."""
        scope = self._surroundings.scope(stack, target, stack.resources, foreseeing=True)
        failures = failed_rules(target.document.get("Rules", {}), scope)
        if failures:
            raise TemplateError("Template validation error: " + "; ".join(failures))
        for name, key in deployment.attributes_used(target.document):
            kind = target.document["Resources"][name]["Type"]
            known = attributes(kind)
            if known and key not in known and not any(entry.startswith(f"{key}.") for entry in known):
                raise TemplateError(
                    f"Template error: resource {name} does not support attribute type {key} in Fn::GetAtt"
                )
        deployment.desired(target.document, scope)

    def changes(self, stack: Stack, target: DeploymentTarget) -> list[dict[str, Any]]:
        """Return the changes of resources as a change set shows them."""
        with self._surroundings.store.lock:
            current = dict(stack.resources)
        fresh: frozenset[str] = frozenset()
        while True:  # a replacement makes values unknown, which may replace more
            scope = self._surroundings.scope(stack, target, current, foreseeing=True, fresh=fresh)
            changes, replaced = [], set()
            desired = deployment.desired(target.document, scope)
            for name, definition in desired.items():
                kind = definition["Type"]
                properties = prepared(kind, scope.resolve(definition.get("Properties", {})) or {})
                sent = deployment.with_tags(kind, properties, target.tags, system_tags(stack, name))
                imported = name in target.imports
                found = deployment.change(current.get(name), definition, name, properties, sent, imported=imported)
                if found is not None:
                    changes.append(found)
                    if found["ResourceChange"].get("Replacement") == "True":
                        replaced.add(name)
            if replaced <= fresh:
                break
            fresh |= replaced
        return changes + [deployment.removal(entry) for name, entry in current.items() if name not in desired]

    def names(self, stack: Stack, target: DeploymentTarget, *, importing: bool) -> tuple[dict[str, str], ...]:
        """Return clashes of names; with ``importing``, note in the target what it can import instead."""
        found = taken(self._surroundings, stack, target)
        target.imports = importable(self._surroundings, target, found) if importing else frozenset()
        return tuple(clashes(target, {key: name for key, name in found.items() if key not in target.imports}))

    def problems(self, stack: Stack, target: DeploymentTarget) -> tuple[dict[str, str], ...]:
        """Return violations of the registry's schemas, while references are still unknown."""
        scope = self._surroundings.scope(stack, target, stack.resources, foreseeing=True)
        found = []
        for name, definition in deployment.desired(target.document, scope).items():
            kind = definition["Type"]
            properties = prepared(kind, scope.resolve(definition.get("Properties", {})) or {})
            found += [
                {
                    "LogicalResourceId": name,
                    "ResourceType": kind,
                    "ValidationStatusReason": str(one),
                    "ValidationPath": "/".join((f"/Resources/{name}/Properties", *one.path)),
                }
                for one in registry.foreseen(kind, properties, region=self._surroundings.region)
            ]
        return tuple(found)

    def differs(self, stack: Stack, target: DeploymentTarget) -> bool:
        """Return True if anything but resources changes: outputs, tags, or a failed state."""
        old = stack.target
        if stack.status in PAUSED or old.tags != target.tags:
            return True
        outputs = old.document.get("Outputs", {}), target.document.get("Outputs", {})
        if outputs[0] != outputs[1]:
            return True
        used = deployment.parameters_of_outputs(target.document)
        return any(old.parameters.get(name) != target.parameters.get(name) for name in used)
