"""
Deployments in templates, one per AWS::SageMaker::Cluster.

Combines all templates of an app: stacks, nested stacks and stages. Values that only a deployment knows are UNRESOLVED,
so rules report "not checked".
"""

from collections.abc import Sequence
from pathlib import Path

from holdfast.catalog import CLUSTER
from holdfast.validation.cloudformation import Graph, Order, Resource, Template, Values
from holdfast.validation.model import App, Deployment, LogGroup
from holdfast.validation.readers import DOCUMENT, ClusterReader, UpdateReader, extensions, session_documents
from holdfast.validation.template_files import read_templates

LOG_GROUP = "AWS::Logs::LogGroup"


def deployments(path: Path) -> list[Deployment]:
    """Deployments in a template file, or in a cloud assembly (``cdk.out``). Raises ValueError for another path."""
    return deployments_in_app(read_templates(path))


def deployments_in_app(templates: Sequence[Template]) -> list[Deployment]:
    values = Values(Graph(templates))
    reader = ClusterReader(values)
    app = app_of(values)
    return [_deployment(resource, values, reader, app) for resource in values.graph.of_type(CLUSTER)]


def _deployment(resource: Resource, values: Values, reader: ClusterReader, app: App) -> Deployment:
    subnets = values.properties(resource).get("VpcConfig", "Subnets")
    cluster = reader.cluster(resource)  # first, so that what is shared is told where the cluster names it
    lustre, openzfs = reader.storage.file_systems(resource)
    return Deployment(
        path=resource.path,
        places={"network": subnets.path, "alarm_names": f"{resource.path}.InstanceGroups"},
        account=resource.template.account,
        region=resource.template.region,
        cluster=cluster,
        network=reader.network.network(subnets),
        lustre_file_systems=lustre,
        openzfs_file_systems=openzfs,
        log_groups=tuple(
            log_group(each, values) for each in values.graph.of_type(LOG_GROUP) if each.template is resource.template
        ),
        governance=reader.teams.governance(resource),
        node_pools=reader.pools.node_pools(),
        alarm_names=UpdateReader(values).alarm_names(),
        others=(
            *session_documents(values, values.graph.of_type(DOCUMENT)),
            *extensions(values, resource),
        ),
        app=app,
    )


def app_of(values: Values) -> App:
    return App(path="", values=values, order=Order(values.graph))


def log_group(resource: Resource, values: Values) -> LogGroup:
    properties = values.properties(resource)
    name = properties.get("LogGroupName")
    return LogGroup(
        path=resource.path,
        places={"name": name.path, "retention_days": f"{resource.path}.RetentionInDays"},
        name=name.text(),
        retention_days=properties.get("RetentionInDays").integer(),
    )
