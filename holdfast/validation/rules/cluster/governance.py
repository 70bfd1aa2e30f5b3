"""7xx: task governance: the policy of a cluster and the quotas of teams."""

from collections.abc import Iterator, Mapping, Sequence

from holdfast.catalog import bounds, instance_types
from holdfast.catalog.facts import page_fact
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import Cluster, Deployment, Governance, Quota, TeamQuota, groups_of
from holdfast_common import closest_word

PAGE = "SageMaker developer guide, 'Policies' of HyperPod task governance"
ADDON = "amazon-sagemaker-hyperpod-taskgovernance"
BORROWS = "LendAndBorrow"
MOST_CLASSES = bounds("priority_classes").most


@rule("HF727", title="Compute quotas of teams fit the cluster", each=Governance, source=PAGE)
def quotas(governance: Governance, deployment: Deployment) -> Iterator[Broken]:
    """
    A quota is of a type that the cluster has, is for a team that has no other, and all of them together are not more
    than the cluster. A limit of borrowing is for those that borrow.
    """
    seen: dict[str, TeamQuota] = {}
    for team in governance.teams:
        if team.name in seen:
            yield refused(
                team.at("name"),
                f"a quota for {team.name} again, after {seen[team.name].path}",
                allowed="one quota for a team",
                fix="join the two, or name another team",
            )
        seen.setdefault(team.name, team)
        if (team.borrow_limit_percent is not None or team.borrow_limits) and team.sharing not in (BORROWS, None):
            limit = "borrow_limit_percent" if team.borrow_limit_percent is not None else "borrow_limits"
            yield refused(
                team.at(limit),
                f"a limit of borrowing with {team.sharing}",
                allowed=f"this limit with {BORROWS}",
                fix=f"remove {team.word(limit)}, or write {team.word('sharing')}: {BORROWS}",
            )
    yield from _types(governance, _nodes(deployment.cluster))
    if deployment.cluster.auto_scaler is None:
        yield from _capacity(governance, _nodes(deployment.cluster))


@rule(
    "HF737",
    severity="warning",
    title="With Karpenter, nodes of the groups cover the quotas",
    each=Governance,
    source=PAGE,
)
def scaled_quotas(governance: Governance, deployment: Deployment) -> Iterator[Broken]:
    """
    "The total reserved quota should not surpass the cluster's available capacity". Karpenter may add nodes, but a group
    that has a count and less than its teams were promised is usually a slip.
    """
    if deployment.cluster.auto_scaler is not None:
        counted = {kind: count for kind, count in _nodes(deployment.cluster).items() if count}
        for each in _capacity(governance, counted):
            yield Broken(path=each.path, message=each.message, fix=each.fix)


@rule(
    "HF324",
    title="There are at most 10 priority classes, each with its own name, in a policy",
    each=Governance,
    source="SageMaker API reference, SchedulerConfig",
)
def priority_classes(governance: Governance, deployment: Deployment) -> Iterator[Broken]:
    """They are part of the cluster's policy. Weights are 0 to 100; the higher, the earlier a job is admitted."""
    names = [each.name for each in governance.priority_classes]
    if names and governance.fair_share is None and deployment.file is not None:
        yield refused(
            governance.at("priority_classes"),
            "classes without a policy",
            allowed="classes of a policy",
            fix="let the environment make the policy, or remove them",
        )
    if len(names) > MOST_CLASSES:
        yield refused(
            governance.at("priority_classes"),
            f"{len(names)} classes",
            allowed=f"at most {MOST_CLASSES}",
            fix="remove some",
        )
    for index, each in enumerate(governance.priority_classes):
        if each.name in names[:index]:
            yield refused(each.at("name"), f"{show(each.name)} again", allowed="each name once", fix="rename it")


@rule(
    "HF729",
    severity="warning",
    title="Weights of teams are for fair share",
    each=Governance,
    source=f"{PAGE}: 'Fair-share weight'",
)
def weights(governance: Governance, _: Deployment) -> Iterator[Broken]:
    """Idle compute goes to teams by weight with fair share only; without, it goes to who asks first."""
    weighted = [team for team in governance.teams if team.weight]
    if governance.fair_share == "Disabled" and weighted:
        yield Broken(
            path=governance.at("fair_share"),
            message=f"{weighted[0].word('weight')} of {', '.join(team.name for team in weighted)} has no effect "
            f"without fair share",
            fix=f"turn {governance.word('fair_share')} on, or remove the weights",
        )


@rule(
    "HF735",
    title="GPU partitions of quotas are profiles of the type's GPUs",
    each=Quota,
    source="SageMaker developer guide, 'Using GPU partitions in Amazon SageMaker HyperPod'",
)
def partitions(quota: Quota, _: Deployment) -> Iterator[Broken]:
    """A profile names parts of a GPU and its memory: 1g.5gb is a seventh of an A100, 1g.10gb of an H100."""
    profiles = page_fact("gpu_partitions").get(quota.instance_type)
    if quota.partition is not None and profiles and quota.partition.removeprefix("mig-") not in profiles:
        yield refused(
            quota.at("partition"),
            f"{quota.partition} of {quota.instance_type}",
            allowed=", ".join(f"mig-{each}" for each in profiles),
            fix=f"write mig-{_same_part(quota.partition.removeprefix('mig-'), profiles)}",
        )


@rule(
    "HF736",
    title="Task governance has its add-on",
    each=Governance,
    source="SageMaker developer guide, 'Task governance setup'",
)
def addon(governance: Governance, deployment: Deployment) -> Iterator[Broken]:
    """The add-on brings Kueue and what turns policies and quotas into its objects."""
    eks = deployment.cluster.eks
    if (
        eks is not None
        and eks.control_plane is not None
        and all(each.name != ADDON for each in eks.control_plane.addons)
    ):
        yield refused(
            governance.path,
            f"task governance of an EKS cluster without {ADDON}",
            allowed="it with this add-on",
            fix=f"add the add-on {ADDON}, and let this wait for it",
        )


def _nodes(cluster: Cluster) -> dict[str, int]:
    """Most nodes of each type; those of a flexible group may all be of any of its types."""
    have: dict[str, int] = {}
    for group in groups_of(cluster):
        for kind in group.types:
            have[kind] = have.get(kind, 0) + group.instance_count
    return have


def _types(governance: Governance, have: Mapping[str, int]) -> Iterator[Broken]:
    for quota in (each for team in governance.teams for each in (*team.quota, *team.borrow_limits)):
        if quota.instance_type not in have:
            other = closest_word(quota.instance_type, have) or next(iter(have), None)
            yield refused(
                quota.at("instance_type"),
                f"a quota of {quota.instance_type}, which the cluster does not have",
                allowed=f"its types {', '.join(have)}" if have else "none: quotas are of instance groups",
                fix="remove the quota" if other is None else f"write {other}",
            )


def _capacity(governance: Governance, have: Mapping[str, int]) -> Iterator[Broken]:
    known, asked = instance_types(), [quota for team in governance.teams for quota in team.quota]
    for kind in have:
        of_kind = [quota for quota in asked if quota.instance_type == kind]
        each = known[kind].accelerators if kind in known else 0
        parts = [quota for quota in of_kind if quota.accelerators is not None] if each else []
        whole = [quota for quota in of_kind if quota.instance_count is not None]
        unit, what = (each, "accelerators") if parts else (1, "nodes")
        total = sum(unit * (quota.instance_count or 0) for quota in whole)
        total += sum(quota.accelerators or 0 for quota in parts)
        if total > unit * have[kind]:
            yield refused(
                parts[-1].at("accelerators") if parts else whole[-1].at("instance_count"),
                f"{total} {what} of {kind} promised, of {unit * have[kind]}",
                allowed=f"at most {unit * have[kind]} together",
                fix="promise less",
            )


def _same_part(partition: str, profiles: Sequence[str]) -> str:
    part = partition.partition(".")[0]
    return next((each for each in profiles if each.startswith(f"{part}.")), profiles[0])
