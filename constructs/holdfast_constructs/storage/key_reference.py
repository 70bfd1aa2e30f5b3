"""KMS key by any of its names: id, alias, or the ARN of either."""

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import custom_resources as cr
from constructs import Construct

ALIAS = "alias/"


def key_by_name(scope: Construct, construct_id: str, name: str) -> kms.IKey:
    """
    External key, by id, ``alias/...``, or the ARN of either.

    An alias is resolved by the deployment, once: CloudWatch Logs takes no alias, a policy allows keys and not aliases
    (KMS developer guide, "Use aliases to control access to KMS keys"), and encrypted data stays with its key when the
    alias moves on.
    """
    stack = Stack.of(scope)
    arn = name if name.startswith("arn:") else stack.format_arn(service="kms", resource=_resource(name))
    kind = arn.rpartition(":")[2]
    if not kind.startswith(ALIAS):
        return kms.Key.from_key_arn(scope, construct_id, arn)
    parts = stack.split_arn(arn, ArnFormat.NO_RESOURCE_NAME)
    keys = stack.format_arn(
        service="kms", region=parts.region, account=parts.account, resource="key", resource_name="*"
    )
    place = Construct(scope, f"{construct_id}-Alias")
    found = cr.AwsCustomResource(
        place,
        "Resource",
        on_update=cr.AwsSdkCall(  # also what runs on creation
            service="KMS",
            action="DescribeKey",
            parameters={"KeyId": arn},
            physical_resource_id=cr.PhysicalResourceId.of(kind),
            output_paths=["KeyMetadata.Arn"],
        ),
        install_latest_aws_sdk=False,
        policy=cr.AwsCustomResourcePolicy.from_statements(
            [
                iam.PolicyStatement(
                    actions=["kms:DescribeKey"],
                    resources=[keys],
                    conditions={"ForAnyValue:StringEquals": {"kms:ResourceAliases": kind}},
                )
            ]
        ),
    )
    return kms.Key.from_key_arn(scope, construct_id, found.get_response_field("KeyMetadata.Arn"))


def _resource(name: str) -> str:
    return name if name.startswith(ALIAS) else f"key/{name}"
