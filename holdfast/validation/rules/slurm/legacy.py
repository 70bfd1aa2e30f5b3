"""4xx: Slurm that is configured by a file beside the lifecycle scripts."""

import json
from collections.abc import Iterator

from holdfast.catalog import limits
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Cluster, Deployment, Script
from holdfast.validation.rules.slurm.orchestrators import MIGRATION, REFERENCE


@rule(
    "HF402",
    title="Continuous provisioning with Slurm needs Slurm configured through the API",
    each=Cluster,
    source=MIGRATION,
)
def api_driven(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    Without Orchestrator the cluster has Slurm as provisioning_parameters.json beside the lifecycle scripts describes
    it, which AWS keeps for existing clusters. It is not compatible with continuous provisioning, and changes of that
    file reach no running cluster.
    """
    if cluster.eks is None and cluster.slurm is None and cluster.continuous:
        yield refused(
            cluster.at("node_provisioning_mode"),
            "continuous provisioning without Orchestrator.Slurm",
            allowed="continuous provisioning with Slurm configured through the API",
            fix="set Orchestrator.Slurm, and SlurmConfig on every group; or remove the provisioning mode",
        )


@rule("HF416", title="Slurm is configured in one place only", each=Script, source=f"{MIGRATION}: quoted failure")
def legacy_file(script: Script, deployment: Deployment) -> Iterator[Broken]:
    """
    provisioning_parameters.json beside the lifecycle scripts and SlurmConfig in the API exclude each other; the
    creation fails with both.
    """
    name = script.name.rpartition("/")[2]
    if deployment.cluster.slurm is not None and name in limits("legacy_slurm_file"):
        yield refused(script.path, f"{name} beside SlurmConfig", allowed="one of the two", fix="remove the file")


@rule(
    "HF417",
    title="The file provisioning_parameters.json names groups that exist",
    each=Script,
    source=f"{REFERENCE}; awsome-distributed-ai validate-config.py",
)
def legacy_file_content(script: Script, deployment: Deployment) -> Iterator[Broken]:
    """
    In the legacy mode provisioning_parameters.json has version "1.0.0", workload_manager "slurm", a controller_group
    and worker_groups, and every name in it is that of an instance group.
    """
    name = script.name.rpartition("/")[2]
    if name not in limits("legacy_slurm_file") or script.text is None or deployment.cluster.slurm is not None:
        return
    try:
        content = json.loads(script.text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        yield refused(script.path, "what is not a JSON object", allowed="one", fix="correct the file")
        return
    for key, value in (("version", "1.0.0"), ("workload_manager", "slurm")):
        if content.get(key) != value:
            yield refused(
                script.path, f"{key} {show(content.get(key))}", allowed=show(value), fix=f"write {show(value)}"
            )
    workers = content.get("worker_groups")
    reported = [content.get("controller_group"), content.get("login_group", content.get("controller_group"))]
    reported += [each.get("instance_group_name") for each in workers or () if isinstance(each, dict)]
    known = [group.name for group in deployment.cluster.instance_groups]
    for each in dict.fromkeys(map(show, reported)):
        if json.loads(each) not in known:
            yield refused(
                script.path,
                f"the group {each}",
                allowed=f"one of {', '.join(sorted(known))}",
                fix="write the name of an instance group",
            )
