"""Functions behind custom resources: their rights and their network."""

from typing import Any

from botocore.exceptions import ClientError

from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    LocalMachine,
    Properties,
    ResourceContext,
    ResourceError,
)
from holdfast.localcloud.aws.footing import SubnetRoutes
from holdfast.localcloud.aws.iam import Rights

FAILED = "Received response status [FAILED] from custom resource. Message returned: "


class StackFunction:
    """Function named by a custom resource's ServiceToken."""

    def __init__(self, context: ResourceContext, properties: Properties) -> None:
        self._context = context
        self.role = str(context.function(str(properties.get("ServiceToken", ""))).get("Role", ""))
        self._rights = (
            Rights(client=context.client, role=self.role, session=context.logical_id, account=context.account)
            if self.role
            else None
        )

    def denial(self, action: str, resource: str) -> str:
        """Return IAM's denial of an action of the function, or ""."""
        if self._rights is None:
            return ""
        account = self._context.account
        reported = self._rights.to(action, resource, {"aws:ResourceAccount": account, "aws:PrincipalAccount": account})
        return reported.reason

    def must(self, action: str, resource: str) -> None:
        """Fail as the function does if AWS denies its call."""
        denied = self.denial(action, resource)
        if denied:
            name = action.partition(":")[2]
            raise ResourceError(f"{FAILED}An error occurred (AccessDenied) when calling the {name} operation: {denied}")


def cluster_of(context: ResourceContext, properties: Properties) -> str:
    """Return the EKS cluster that a function of Holdfast works on, or ""."""
    found = context.function(str(properties.get("ServiceToken", "")))
    return str(found.get("Environment", {}).get("Variables", {}).get("CLUSTER_NAME", ""))


def where_it_runs(context: ResourceContext, properties: Properties) -> LocalMachine | None:
    """Return this machine if Kubernetes really runs behind a function's cluster; None if it is a record."""
    name = cluster_of(context, properties)
    return context.machine if name and context.machine is not None and context.machine.runs(name) else None


def reach_kubernetes(context: ResourceContext, properties: Properties) -> None:
    """Fail if a chart installer cannot reach its cluster, in Lambda's words, or has no access entry, in Kubernetes'."""
    found = context.function(str(properties.get("ServiceToken", "")))
    network = found.get("VpcConfig", {})
    if network.get("SubnetIds"):
        ways = SubnetRoutes(client=context.client, subnets=network["SubnetIds"], groups=network["SecurityGroupIds"])
        stuck = ways.no_way_to_aws("eks")
        if stuck:
            raise ResourceError(f"{FAILED}the function timed out. {stuck}")
    cluster = cluster_of(context, properties)
    if cluster and found.get("Role") and where_it_runs(context, properties) is None:
        try:
            context.client("eks").describe_access_entry(clusterName=cluster, principalArn=found["Role"])
        except ClientError:
            raise ResourceError(
                f"{FAILED}Error: Kubernetes cluster unreachable: the server has asked for the client to provide "
                f"credentials; {found['Role']} has no access entry in {cluster}"
            ) from None


def resource_of(service: str, parameters: dict[str, Any], context: ResourceContext) -> str:
    """Return the ARN of a call's object from its parameters, or ""."""
    group = parameters.get("logGroupName")
    if service == "logs" and group:
        return f"arn:aws:logs:{context.region}:{context.account}:log-group:{group}"
    return ""
