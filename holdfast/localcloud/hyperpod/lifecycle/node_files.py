"""Files of an instance before anything runs, rendered from the cluster. Pure."""

import json
import shlex
from collections.abc import Mapping

from holdfast.localcloud.hyperpod.model import COMPUTE, CONTROLLER, LOGIN, Cluster, Group, Instance
from holdfast.localcloud.hyperpod.slurm import DEFAULT_PARTITION
from holdfast_common import log_of_jobs

RESOURCE_CONFIG = "/opt/ml/config/resource_config.json"
PROVISIONING_PARAMETERS = "/opt/ml/config/provisioning_parameters.json"
LIFE_CYCLE_CONFIG = "/opt/ml/config/life_cycle_config.json"
AWS_SETTINGS = "/etc/holdfast/aws"
"""Settings of the image's ``aws`` for the embedded AWS; sudo empties the environment."""
PROVISIONING_LOG = "/var/log/provision/provisioning.log"
EVENTS = "/var/log/holdfast/events.jsonl"
JOB_EVENTS = str(log_of_jobs(EVENTS))
JOB_VARIABLES = "/opt/holdfast/slurm/job_environment"
LEFT_BY_SCRIPTS = "/etc/holdfast/environment"
"""Variables for jobs that lifecycle scripts left; they precede those of JOB_VARIABLES."""


def hosts(cluster: Cluster) -> str:
    """Return /etc/hosts with every instance of the cluster; nodes have no DNS."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    lines += [
        f"{one.address} {one.host_name}" for one in sorted(cluster.instances, key=lambda one: _numeric(one.address))
    ]
    return "\n".join(lines) + "\n"


def resource_config(cluster: Cluster) -> str:
    """Return resource_config.json as HyperPod writes it; Instances is null for an empty group."""
    groups = []
    for group in cluster.groups:
        members = sorted(
            (one for one in cluster.instances if one.group == group.name), key=lambda one: _numeric(one.address)
        )
        groups.append(
            {
                "Name": group.name,
                "InstanceType": group.instance_type,
                "Instances": [
                    {
                        "InstanceName": f"{group.name}-{number}",
                        "AgentIpAddress": one.address,
                        "CustomerIpAddress": one.address,
                        "InstanceId": one.instance_id,
                    }
                    for number, one in enumerate(members, start=1)
                ]
                or None,
            }
        )
    config = {"ClusterConfig": {"ClusterArn": cluster.arn, "ClusterName": cluster.name}, "InstanceGroups": groups}
    return json.dumps(config, indent=2) + "\n"


def provisioning_parameters(cluster: Cluster) -> str:
    """
    Return provisioning_parameters.json of SlurmConfig; AWS's own extensions fail without it.

    Its keys are undocumented. Here are those that AWS's lifecycle scripts read, without file systems, which the API
    has.
    """
    by_role: dict[str, list[str]] = {CONTROLLER: [], LOGIN: [], COMPUTE: []}
    for group in cluster.groups:
        by_role.setdefault(group.slurm_role, []).append(group.name)
    partitions = {group.name: (*group.partitions, DEFAULT_PARTITION)[0] for group in cluster.groups}
    parameters: dict[str, object] = {
        "version": "1.0.0",
        "workload_manager": "slurm",
        "controller_group": next(iter(by_role[CONTROLLER]), ""),
        "login_group": next(iter(by_role[LOGIN]), None),
        "worker_groups": [
            {"instance_group_name": name, "partition_name": partitions[name]} for name in by_role[COMPUTE]
        ],
    }
    return json.dumps(parameters, indent=2) + "\n"


def life_cycle_config(group: Group) -> str:
    """Return life_cycle_config.json: source and name of the script."""
    names = {"OnCreate": group.on_create, "OnInitComplete": group.on_init_complete}
    config = {"S3Uri": group.lifecycle_uri, **{key: value for key, value in names.items() if value}}
    return json.dumps(config, indent=2) + "\n"


def job_variables(environment: Mapping[str, str]) -> str:
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in environment.items())


def job_environment(cluster: Cluster, instance: Instance) -> dict[str, str]:
    """Return variables that a job's tasks have, unless the job sets them."""
    return {
        "HOLDFAST_CLUSTER": cluster.name,
        "HOLDFAST_INSTANCE_ID": instance.instance_id,
        "HOLDFAST_EVENTS": JOB_EVENTS,
        # All nodes share the machine's CPUs: OpenMP threads of several ranks would wait for each other in busy loops.
        "OMP_NUM_THREADS": "1",
    }


def instance_metadata(cluster: Cluster, instance: Instance, *, region: str, zone: str) -> dict[str, str]:
    """Return EC2's instance metadata by path below meta-data/."""
    return {
        "instance-id": instance.instance_id,
        # The type of the EC2 instance: AWS's scripts put "ml." before it.
        "instance-type": cluster.group(instance.group).instance_type.removeprefix("ml."),
        "local-hostname": instance.host_name,
        "hostname": instance.host_name,
        "local-ipv4": instance.address,
        "placement/region": region,
        "placement/availability-zone": zone or f"{region}a",
    }


def client_environment(*, endpoint: str, region: str) -> str:
    """Return the environment of the image's ``aws``. Credentials come from instance metadata."""
    settings = client_settings(endpoint=endpoint, region=region)
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def client_settings(*, endpoint: str, region: str) -> dict[str, str]:
    """Return AWS clients' settings for the embedded AWS; metadata may be slower than on EC2."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": region,
        "AWS_REGION": region,
        "AWS_METADATA_SERVICE_TIMEOUT": "5",
        "AWS_METADATA_SERVICE_NUM_ATTEMPTS": "4",
    }


def _numeric(address: str) -> tuple[int, ...]:
    return tuple(int(part) for part in address.split("."))
