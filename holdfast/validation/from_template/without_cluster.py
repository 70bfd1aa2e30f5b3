"""
Templates without a HyperPod cluster, judged as far as possible without nodes.

Teams often keep network, file systems, EKS cluster and roles in separate templates. Questions about the cluster are
unknown, and one note reports that.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.catalog import CLUSTER, EKS_CLUSTER, FILE_SYSTEM
from holdfast.validation.cloudformation import UNRESOLVED, Graph, Resource, Template, Values
from holdfast.validation.from_template.per_cluster import LOG_GROUP, app_of, log_group
from holdfast.validation.model import MANAGED_POLICY, Deployment
from holdfast.validation.readers import CDK_EKS_CLUSTER, DOCUMENT, ClusterReader, session_documents

NO_CLUSTER = "(the cluster)"
"""The place of what only a cluster could tell."""


def has_cluster(templates: Sequence[Template]) -> bool:
    return any(True for _ in Graph(templates).of_type(CLUSTER))


def surroundings(templates: Sequence[Template]) -> Iterator[Deployment]:
    """One deployment per VPC with its subnets, and one for the rest of each template."""
    values = Values(Graph(templates))
    reader = ClusterReader(values)
    for vpc in values.graph.of_type("AWS::EC2::VPC"):
        network = reader.network.bare(vpc, unknown=NO_CLUSTER)
        yield _deployment(vpc.template, vpc.path, network=network, others=tuple(reader.network.subnets_of(vpc)))
    for index, template in enumerate(templates):
        path = f"{template.path}#Resources" if template.path else "Resources"
        held = _held(template, values, reader) | {"governance": None if index else reader.teams.governance(None)}
        yield _deployment(template, path, network=UNRESOLVED, app=None if index else app_of(values), **held)


def _held(template: Template, values: Values, reader: ClusterReader) -> dict[str, Any]:
    own = [resource for resource in values.graph.resources() if resource.template is template]
    lustre, openzfs = reader.storage.all_file_systems([each for each in own if each.type == FILE_SYSTEM])
    planes = [
        reader.control_planes.control_plane(each, None) for each in own if each.type in (EKS_CLUSTER, CDK_EKS_CLUSTER)
    ]
    roles = [reader.roles.role(values.itself(each)) for each in own if _is_of_nodes(each)]
    return {
        "lustre_file_systems": lustre,
        "openzfs_file_systems": openzfs,
        "log_groups": tuple(log_group(each, values) for each in own if each.type == LOG_GROUP),
        "others": (
            *planes,
            *(role for role in roles if role is not None),
            *session_documents(values, (each for each in own if each.type == DOCUMENT)),
        ),
    }


def _is_of_nodes(resource: Resource) -> bool:
    """True for a role of HyperPod's nodes: it has their managed policy."""
    properties = resource.body.get("Properties")
    if resource.type != "AWS::IAM::Role" or not isinstance(properties, Mapping):
        return False
    return MANAGED_POLICY in json.dumps(properties.get("ManagedPolicyArns"), default=repr)


def _deployment(template: Template, path: str, *, network: Any, **held: Any) -> Deployment:
    return Deployment(
        path=path,
        places={"cluster": NO_CLUSTER, "network": NO_CLUSTER},
        account=template.account,
        region=template.region,
        cluster=UNRESOLVED,
        network=network,
        **held,
    )
