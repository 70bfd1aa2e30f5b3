"""What of an environment AWS can tell again, for tests of imports."""

from typing import Any

from holdfast.config import Environment

AWS_DOES_NOT_KNOW = ("allow_replacement", "goodput", "health", "images", "observability", "sessions", "suppress")
"""Settings of Holdfast's own, or of what is beside the cluster."""


def known_to_aws(environment: Environment) -> dict[str, Any]:
    """The environment without what nobody can read from AWS; spares are nodes like the others there."""
    document = environment.model_dump(mode="json", exclude=set(AWS_DOES_NOT_KNOW))
    document["lifecycle"].pop("mode")
    groups = environment.cluster.instance_groups
    for group, settings in zip(document["cluster"]["instance_groups"], groups, strict=True):
        group["instance_count"] += group.pop("spare_count")
        group["lifecycle_mode"] = environment.lifecycle_mode(settings)  # whichever of the two places said it
    document["storage"].pop("on_delete")
    document.pop("termination_protection")  # of the stack
    if document["storage"]["lustre"]:
        document["storage"]["lustre"].pop("maintenance_window")  # FSx also tells the one that it chose
    if document["eks"]:
        for of_the_stack in ("on_delete", "install_on_nodes"):
            document["eks"].pop(of_the_stack)
        document["eks"].pop("node_pools", None)  # objects of Kubernetes
    document["lifecycle"].pop("scripts")
    if document["slurm"]:
        document["slurm"].pop("lending")  # of the health agent, not of HyperPod
    if document["eks"] and document["eks"]["task_governance"]:
        document["eks"]["task_governance"]["teams"].sort(key=lambda team: team["name"])  # made in parallel
    if document["network"]["existing"] is not None:
        document["network"]["existing"].pop("control_plane_subnet_ids")  # Slurm's are those of its database alone
    return document
