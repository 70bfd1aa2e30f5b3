"""API operations that only read templates, change sets and exports."""

from typing import Any

from holdfast.localcloud.aws.cloudformation.api import lookup
from holdfast.localcloud.aws.cloudformation.api.lookup import paged, present
from holdfast.localcloud.aws.cloudformation.deployment import StackStore
from holdfast.localcloud.aws.cloudformation.template import described
from holdfast.localcloud.aws.common import ServiceError, tag_list


class TemplateViews:
    """Reading operations on templates, change sets and exports. Each holds the lock, so an answer is consistent."""

    def __init__(self, *, store: StackStore) -> None:
        self._store = store

    def get_template(self, **request: Any) -> dict[str, Any]:
        """GetTemplate: both stages are equal, since there are no transforms."""
        with self._store.lock:
            if request.get("ChangeSetName"):
                target = lookup.change_set(self._store, request["ChangeSetName"], request.get("StackName"))[1].target
            else:
                stack = lookup.named(self._store, request)
                target = stack.target
                if stack.status == "REVIEW_IN_PROGRESS":
                    return {"TemplateBody": "", "StagesAvailable": ["Original", "Processed"]}
        return {"TemplateBody": target.body, "StagesAvailable": ["Original", "Processed"]}

    def describe_change_set(self, **request: Any) -> dict[str, Any]:
        with self._store.lock:
            stack, made = lookup.change_set(self._store, request["ChangeSetName"], request.get("StackName"))
            page, more = paged(made.changes, request.get("NextToken"))
            target = made.target
            return present(
                {
                    "ChangeSetName": made.name,
                    "ChangeSetId": made.id,
                    "StackId": stack.id,
                    "StackName": stack.name,
                    "Description": made.description,
                    "CreationTime": made.created,
                    "ExecutionStatus": made.execution,
                    "Status": made.status,
                    "StatusReason": made.reason,
                    "NotificationARNs": [],
                    "Parameters": described(target.document, target.parameters, target.looked_up),
                    "Capabilities": target.capabilities,
                    "Tags": tag_list(target.tags),
                    "Changes": page,
                    "IncludeNestedStacks": False,
                    "RollbackConfiguration": {},
                    **more,
                }
            )

    def list_change_sets(self, **request: Any) -> dict[str, Any]:
        with self._store.lock:
            stack = lookup.found(self._store, request["StackName"])
            found = [
                present(
                    {
                        "StackId": stack.id,
                        "StackName": stack.name,
                        "ChangeSetId": made.id,
                        "ChangeSetName": made.name,
                        "ExecutionStatus": made.execution,
                        "Status": made.status,
                        "StatusReason": made.reason,
                        "CreationTime": made.created,
                        "Description": made.description,
                    }
                )
                for made in stack.change_sets.values()
            ]
        page, more = paged(found, request.get("NextToken"))
        return {"Summaries": page, **more}

    def list_exports(self, **request: Any) -> dict[str, Any]:
        found = [
            {"ExportingStackId": owner, "Name": name, "Value": value}
            for name, (value, owner) in sorted(self._store.exports().items())
        ]
        page, more = paged(found, request.get("NextToken"))
        return {"Exports": page, **more}

    def list_imports(self, **request: Any) -> dict[str, Any]:
        users = self._store.importers(request["ExportName"])
        if not users:
            raise ServiceError("ValidationError", f"Export '{request['ExportName']}' is not imported by any stack.")
        return {"Imports": users}
