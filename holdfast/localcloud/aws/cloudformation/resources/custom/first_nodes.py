"""Custom resources of Holdfast besides charts: wait for nodes, and clean a VPC of GuardDuty's endpoints."""
# ruff: noqa: ARG002 - handlers share one interface; not every type needs every argument

from holdfast.localcloud.aws.cloudformation.resources.custom.calls import answered
from holdfast.localcloud.aws.cloudformation.resources.custom.functions import where_it_runs
from holdfast.localcloud.aws.cloudformation.resources.handlers import (
    Made,
    Properties,
    ResourceContext,
    ResourceError,
    ResourceHandler,
)

PAUSE_S = 0.5
QUESTIONS = 80
"""40 s of pauses: nodes boot in seconds here; the function on AWS waits for 14 minutes."""


class FirstNodes(ResourceHandler):
    """``Custom::HoldfastNodes``: answered by its function. Without Kubernetes, a running node counts as ready."""

    type = "Custom::HoldfastNodes"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        name = properties.get("ClusterName")
        if not name:
            raise ResourceError(f"{self.type}: ClusterName must be given")
        made = Made(physical_id=f"nodes/{name}")
        machine = where_it_runs(context, properties)
        if machine is not None:
            given = answered(context, machine, kind=self.type, request="Create", properties=properties)
            return Made(physical_id=given or made.physical_id)
        for _ in range(QUESTIONS):
            if self._running(context, name):
                return made
            context.pause(PAUSE_S)
        if properties.get("Last") != "true":
            return made
        raise ResourceError(
            f"no node of HyperPod cluster {name} is ready in Kubernetes (none yet); look at its events and at the "
            f"logs of its nodes in /aws/sagemaker/Clusters/{name}; for scarce capacity set install_on_nodes to false"
        )

    @staticmethod
    def _running(context: ResourceContext, name: str) -> bool:
        pages = context.client("sagemaker").get_paginator("list_cluster_nodes").paginate(ClusterName=name)
        return any(
            node["InstanceStatus"]["Status"] == "Running" for page in pages for node in page["ClusterNodeSummaries"]
        )


class GuardDutyLeftovers(ResourceHandler):
    """``Custom::HoldfastGuardDuty``: there is no GuardDuty here, so nothing is left to delete."""

    type = "Custom::HoldfastGuardDuty"

    def create(self, context: ResourceContext, properties: Properties) -> Made:
        if not properties.get("VpcId"):
            raise ResourceError(f"{self.type}: VpcId must be given")
        return Made(physical_id=str(properties["VpcId"]))
