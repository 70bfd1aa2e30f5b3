"""
Files that are on an instance before anything runs on it, rendered from the cluster as described. Pure.
"""

import json
import shlex
from collections.abc import Mapping

from holdfast.localcloud.hyperpod._model import Cluster, Instance

RESOURCE_CONFIG = "/opt/ml/config/resource_config.json"
EVENTS = "/var/log/holdfast/events.jsonl"


def hosts(cluster: Cluster) -> str:
    """/etc/hosts with every instance of the cluster; nodes have no DNS."""
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost"]
    lines += [
        f"{one.address} {one.host_name}" for one in sorted(cluster.instances, key=lambda one: _numeric(one.address))
    ]
    return "\n".join(lines) + "\n"


def resource_config(cluster: Cluster) -> str:
    """resource_config.json as HyperPod writes it; Instances is null for an empty group."""
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


def task_prolog(*, environment: Mapping[str, str]) -> str:
    """
    The program whose output Slurm adds to each task's environment.

    ``environment`` is what the service knows; what lifecycle scripts left in /etc/holdfast/environment goes over it.
    """
    fixed = "\n".join(f"echo {shlex.quote(f'export {name}={value}')}" for name, value in environment.items())
    return f"""#!/bin/sh
{fixed}
path=$PATH
if [ -r /etc/holdfast/environment ]; then
    while IFS= read -r line; do
        case "$line" in
            PATH=*) path=$(printf '%s' "${{line#PATH=}}" | sed 's/^"\\(.*\\)"$/\\1/') ;;
            [A-Za-z_]*=*) printf 'export %s\\n' "$line" ;;
        esac
    done < /etc/holdfast/environment
fi
# In a container programs are the image's.
[ -z "${{HOLDFAST_CONTAINER_IMAGE-}}" ] || exit 0
case "$path" in
    /opt/holdfast/env/bin | /opt/holdfast/env/bin:*) ;;
    *) path=/opt/holdfast/env/bin:$path ;;
esac
printf 'export PATH=%s\\n' "$path"
"""


def job_environment(cluster: Cluster, instance: Instance) -> dict[str, str]:
    """What a job finds in its environment on this instance."""
    return {"HOLDFAST_CLUSTER": cluster.name, "HOLDFAST_INSTANCE_ID": instance.instance_id, "HOLDFAST_EVENTS": EVENTS}


def _numeric(address: str) -> tuple[int, ...]:
    return tuple(int(part) for part in address.split("."))
