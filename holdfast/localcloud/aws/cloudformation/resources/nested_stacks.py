# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
    ignore_gone,
)

POLL_S = 0.05
CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
STABLE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
NO_UPDATES = "No updates are to be performed."


class NestedStack(ResourceHandler):
    type = "AWS::CloudFormation::Stack"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        name = context.name(length=128)
        answer = context.client("cloudformation").create_stack(
            StackName=name, OnFailure="ROLLBACK", **self._arguments(properties)
        )
        context.note(answer["StackId"])
        return self._settled(context, answer["StackId"], ("CREATE_COMPLETE",), "created")

    def update(self, context: ResourceContext, made: Made, properties: Properties, old: Properties) -> Made:
        try:
            context.client("cloudformation").update_stack(StackName=made.physical_id, **self._arguments(properties))
        except ClientError as error:
            if error.response["Error"].get("Message") != NO_UPDATES:
                raise
            return self._settled(context, made.physical_id, (*STABLE, "UPDATE_ROLLBACK_COMPLETE"), "updated")
        return self._settled(context, made.physical_id, STABLE, "updated")

    def delete(self, context: ResourceContext, made: Made, properties: Properties) -> None:
        client = context.client("cloudformation")
        ignore_gone(client.delete_stack, StackName=made.physical_id)
        self._settled(context, made.physical_id, ("DELETE_COMPLETE",), "deleted")

    @staticmethod
    def _arguments(properties: Properties) -> dict[str, Any]:
        given = properties.get("Parameters", {})
        return {
            "TemplateURL": properties["TemplateURL"],
            "Parameters": [{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()],
            "Capabilities": CAPABILITIES,
            "Tags": [tag for tag in properties.get("Tags", []) if not tag["Key"].startswith("aws:")],
        }

    @staticmethod
    def _settled(context: ResourceContext, stack_id: str, good: tuple[str, ...], verb: str) -> Made:
        client = context.client("cloudformation")
        while True:
            stack = client.describe_stacks(StackName=stack_id)["Stacks"][0]
            if not stack["StackStatus"].endswith("_IN_PROGRESS"):
                break
            context.pause(POLL_S)
        if stack["StackStatus"] not in good:
            reason = stack.get("StackStatusReason", "")
            raise ResourceError(f"Embedded stack {stack_id} was not successfully {verb}: {reason}")
        outputs = {f"Outputs.{one['OutputKey']}": one["OutputValue"] for one in stack.get("Outputs", [])}
        return Made(physical_id=stack_id, attributes=outputs)
