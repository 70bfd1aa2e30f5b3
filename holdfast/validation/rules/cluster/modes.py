"""Options that belong to one mode, orchestrator or kind of node, and values with an inner form."""

import re
from collections.abc import Iterator, Mapping

from holdfast.catalog import instance_types, known_types
from holdfast.catalog.facts import facts_date, lambda_runtimes
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import (
    App,
    Cluster,
    Deployment,
    EnvironmentFile,
    Group,
    InstanceGroup,
    LustreFileSystem,
    mounting,
)

API = "SageMaker API reference, CreateCluster"
SCHEMA = "registry schema of AWS::SageMaker::Cluster"
GRAVITON = re.compile(r"^ml\.[a-z]+\d+g[a-z]*\.")
OLDER_NITRO = ("ml.p4d", "ml.g4dn", "ml.g5.", "ml.c5n", "ml.m5n", "ml.m5dn", "ml.r5n", "ml.r5dn", "ml.p3dn", "ml.inf1")
"""Families with EFA of Nitro v3 and before (EC2 user guide, 'Amazon EC2 Nitro-based instances')."""
MANY_NODES, SMALL_HEAD_GIB = 8, 16


@rule(
    "HF119",
    title="Instance types without hyper-threading have one thread per core",
    each=Group,
    source="EC2 user guide, 'CPU options for EC2 instances': Graviton has one thread per core",
)
def threads_on_graviton(group: Group, _: Deployment) -> Iterator[Broken]:
    """A vCPU of a Graviton type is a core. Two threads per core are refused there."""
    arm = [name for name in group.types if GRAVITON.match(name)]
    if group.threads_per_core == 2 and arm:
        yield refused(
            group.at("threads_per_core"),
            f"2 on {', '.join(arm)}",
            allowed="1 on Graviton types, whose cores have one thread",
            fix="write 1, or leave it out",
        )


@rule(
    "HF419",
    severity="warning",
    title="The Slurm controller is large enough for its nodes",
    each=Cluster,
    source="SageMaker developer guide and awsome-distributed-ai: controllers of ml.m5.2xlarge and larger for P5",
)
def controller_size(cluster: Cluster, _: Deployment) -> Iterator[Broken]:
    """
    slurmctld, slurmdbd and its database keep every job and node in memory, and many nodes ask at once. A burstable or
    small controller stalls the scheduler of a cluster that costs thousands of times as much.
    """
    if cluster.slurm is None:
        return
    heads = [group for group in cluster.instance_groups if group.node_type == "Controller"]
    nodes = sum(
        group.instance_count
        for group in cluster.instance_groups
        if group.node_type == "Compute" and any(each.accelerators for each in known_types(group.types))
    )
    for head in heads:
        for facts in known_types(head.types):
            if nodes >= MANY_NODES and facts.memory_gib < SMALL_HEAD_GIB:
                yield Broken(
                    path=head.at("instance_type"),
                    message=f"a controller of {facts.name} ({facts.memory_gib} GiB) for {nodes} accelerated nodes",
                    fix="take ml.m5.2xlarge or larger",
                )


@rule(
    "HF632",
    severity="warning",
    title="A file system with EFA is mounted by nodes with EFA",
    each=LustreFileSystem,
    source="FSx for Lustre user guide, 'Working with EFA-enabled file systems'",
)
def efa_without_nodes(lustre: LustreFileSystem, deployment: Deployment) -> Iterator[Broken]:
    """
    A file system with EFA costs capacity in large steps. Nodes without EFA mount it over TCP, so nothing is gained when
    none has it.
    """
    if not lustre.efa:
        return
    cluster, known = deployment.cluster, instance_types()
    groups = mounting(lustre.id, deployment) if cluster.eks is None else list(cluster.instance_groups)
    names = [name for group in groups for name in group.types]
    if names and not any(
        name not in known or (known[name].efa_interfaces and not name.startswith(OLDER_NITRO)) for name in names
    ):
        yield Broken(
            path=lustre.at("efa"),
            message=f"no node that mounts it has EFA of Nitro v4 or later: {', '.join(dict.fromkeys(names))}",
            fix="remove efa, or take a type with EFA",
        )


@rule(
    "HF725",
    title="Updates in batches are for EKS clusters only",
    each=InstanceGroup,
    source="SageMaker developer guide, 'Update the SageMaker HyperPod platform software': rolling updates are for EKS",
)
def rolling_on_slurm(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """
    Under Slurm an update of the software is made all at once. Batches, pauses and rollback alarms of a schedule are for
    clusters on EKS.
    """
    update = group.scheduled_update
    if update is not None and update.deployment is not None and deployment.cluster.eks is None:
        yield refused(
            update.at("deployment") if "deployment" in update.places else update.path,
            "batches of a scheduled update under Slurm",
            allowed="batches on EKS; a schedule alone under Slurm",
            fix="remove the deployment configuration",
        )


@rule(
    "HF812",
    title="An AMI release version is chosen on EKS clusters only",
    each=InstanceGroup,
    source=f"{SCHEMA}, ImageReleaseVersion: 'Supported only for EKS-orchestrated clusters'",
)
def release_on_slurm(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """Under Slurm HyperPod takes the newest release of its AMI."""
    own = (group.image_id or "default") != "default"  # a release beside an AMI is reported by HF803
    if group.image_release_version is not None and deployment.cluster.eks is None and not own:
        yield refused(
            group.at("image_release_version"),
            f"{group.image_release_version} under Slurm",
            allowed="none under Slurm",
            fix="remove the release",
        )


@rule(
    "HF524",
    severity="warning",
    title="Users of nodes are created on Slurm clusters only",
    each=EnvironmentFile,
    source="SageMaker developer guide, 'Setting up role-based access control': people reach EKS through its API",
)
def users_on_eks(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    On EKS users have no shell on nodes: people and jobs come through the Kubernetes API, with access entries and
    namespaces. POSIX accounts on the nodes have no use there.
    """
    if file.users and deployment.cluster.eks is not None:
        yield Broken(
            path=file.at("users"),
            message=f"{len(file.users)} POSIX accounts on nodes of EKS, where users have no shell",
            fix="remove lifecycle.users, and give people access entries (eks.admin_role_arns)",
        )


@rule(
    "HF726",
    title="The goodput target is above 0 and below 100 percent",
    each=EnvironmentFile,
    source="Holdfast; 'Cluster resiliency' of the SageMaker developer guide: nodes fail and are replaced",
)
def possible_target(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    Checkpoints and recoveries take time, so no cluster moves forward all of the time. 100 is more than any can reach,
    and 0 asks for nothing.
    """
    target = file.goodput_target_percent
    if target is not None and (target >= 100 or target <= 0):
        yield refused(
            file.at("goodput_target_percent"),
            f"{target} percent",
            allowed="1 to 99",
            fix="write what `holdfast plan` calls reachable, such as 90" if target >= 100 else "remove it, or write 90",
        )


@rule(
    "HF813",
    title="A repository is given by its name, without the registry",
    each=EnvironmentFile,
    source="ECR API reference, repositoryName; ECR user guide, 'Amazon ECR private registry'",
)
def repository_name(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    The registry follows from account and region, the image from its digest. A repository is a name such as
    team/training.
    """
    images = file.data.get("images")
    for which in ("training", "health_agent", "job_operator"):
        image = images.get(which) if isinstance(images, Mapping) else None
        name = image.get("repository") if isinstance(image, Mapping) else None
        if isinstance(name, str):
            first, slash, rest = name.partition("/")
            if ".dkr.ecr." in name or name.startswith(("http:", "https:")) or ("." in first and slash):
                yield refused(
                    f"images.{which}.repository",
                    show(name),
                    allowed="the name of a repository, without its registry",
                    fix=f"write {(rest or name).partition('@')[0].partition(':')[0]}",
                )


@rule(
    "HF820",
    title="TensorBoard's folder is on a file system that exists",
    each=EnvironmentFile,
    source="Holdfast",
)
def tensorboard(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """
    The folder for TensorBoard's logs is on the shared Lustre file system and kept in the data bucket. Without one there
    is nowhere to write.
    """
    observability, storage = file.data.get("observability"), file.data.get("storage")
    asked = isinstance(observability, Mapping) and observability.get("tensorboard") is True
    if asked and not (isinstance(storage, Mapping) and storage.get("lustre")):
        yield refused(
            "observability.tensorboard",
            "a folder of logs without a file system",
            allowed="a folder of logs in an environment with storage.lustre",
            fix="add storage.lustre, or remove tensorboard",
        )


@rule(
    "HF728",
    title="The shared environment of restricted groups has such groups",
    each=EnvironmentFile,
    source=f"{API}, RestrictedInstanceGroupsConfig",
)
def restricted_environment(file: EnvironmentFile, _: Deployment) -> Iterator[Broken]:
    """What restricted groups share is for clusters that have such groups."""
    cluster = file.data.get("cluster")
    if (
        isinstance(cluster, Mapping)
        and cluster.get("restricted_environment")
        and not cluster.get("restricted_instance_groups")
    ):
        yield refused(
            "cluster.restricted_environment",
            "an environment that no group shares",
            allowed="a shared environment in a file with restricted_instance_groups",
            fix="remove it, or add a restricted group",
        )


@rule(
    "HF811",
    title="Lambda functions have a runtime that can still be created",
    each=App,
    source="Lambda developer guide, 'Lambda runtimes', as cfn-lint carries it",
)
def runtimes(app: App, deployment: Deployment) -> Iterator[Broken]:
    """Some time after a runtime's end no function can be made with it, and a month later none updated."""
    today = deployment.today or facts_date()
    for function, node in app.each("AWS::Lambda::Function"):
        name = node.get("Runtime").text()
        facts = lambda_runtimes().get(name) if isinstance(name, str) else None
        if facts is not None and facts.create_block is not None and facts.create_block <= today:
            yield refused(
                f"{function.path}.Runtime",
                f"{name}, with which no function can be made since {facts.create_block}",
                allowed="runtimes that are supported",
                fix=f"write {facts.successor}" if facts.successor else "take a newer one",
            )


@rule(
    "HF815",
    severity="warning",
    title="Lambda runtimes still get security patches",
    each=App,
    source="Lambda developer guide, 'Lambda runtimes', as cfn-lint carries it",
)
def patched_runtimes(app: App, deployment: Deployment) -> Iterator[Broken]:
    """After its end a runtime gets no more security patches, and support for functions with it ends."""
    today = deployment.today or facts_date()
    for function, node in app.each("AWS::Lambda::Function"):
        name = node.get("Runtime").text()
        facts = lambda_runtimes().get(name) if isinstance(name, str) else None
        blocked = facts is not None and facts.create_block is not None and facts.create_block <= today
        if facts is not None and not blocked and facts.deprecated is not None and facts.deprecated <= today:
            yield Broken(
                path=f"{function.path}.Runtime",
                message=f"{name} has had no patches since {facts.deprecated}",
                fix=f"write {facts.successor}" if facts.successor else "take a newer one",
            )
