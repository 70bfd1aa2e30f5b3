"""7xx: how nodes are updated and patched."""

import datetime
import re
from collections.abc import Iterator

from holdfast.catalog.facts import schema_of
from holdfast.validation.engine import Broken, refused, rule, show
from holdfast.validation.model import (
    ALARM_OF_APP,
    AutoPatch,
    BatchSize,
    Deployment,
    InstanceGroup,
    RollingUpdate,
    ScheduledUpdate,
)
from holdfast.validation.rules.cluster.capacity import API

PATCHING = "SageMaker developer guide, 'Amazon SageMaker HyperPod AMI automatic patching'"
STRATEGIES = ("WhenIdle", "WhenAllIdle", "DrainFirst")


@rule(
    "HF709",
    title="Automatic patches are for EKS, and draining has a batch size",
    each=InstanceGroup,
    source=f"{PATCHING}, prerequisites; {API}, ClusterAutoPatchConfig",
)
def auto_patch(group: InstanceGroup, deployment: Deployment) -> Iterator[Broken]:
    """
    "Auto-patching is available only for HyperPod Amazon EKS clusters." With DrainFirst nodes are drained of pods, up to
    MaximumBatchSize at a time.
    """
    patch = group.auto_patch
    if patch is None:
        return
    if deployment.cluster.eks is None:
        yield refused(
            group.at("auto_patch"),
            "automatic patches under Slurm",
            allowed="automatic patches on EKS",
            fix="remove them, and update the group's software yourself",
        )
        return
    if patch.strategy not in STRATEGIES:
        yield refused(
            patch.at("strategy"), show(patch.strategy), allowed=f"one of {', '.join(STRATEGIES)}", fix="write WhenIdle"
        )
    if patch.strategy != "DrainFirst":
        return
    if patch.deployment is None or patch.deployment.maximum_batch_size is None:
        yield refused(
            patch.at("deployment"), "no batch size", allowed="one with DrainFirst", fix="add a maximum batch size"
        )


@rule(
    "HF738",
    severity="warning",
    title="Deployment settings of automatic patches are for rolling strategies",
    each=AutoPatch,
    source=f"{API}, ClusterAutoPatchConfig: 'Only applicable when using a rolling patching strategy'; {PATCHING}",
)
def patch_deployment(patch: AutoPatch, _: Deployment) -> Iterator[Broken]:
    """WhenIdle and WhenAllIdle patch nodes as they become idle: batches, waits and rollbacks have no effect."""
    if patch.deployment is not None and patch.strategy in ("WhenIdle", "WhenAllIdle"):
        yield Broken(
            path=patch.at("deployment"),
            message=f"deployment settings have no effect with {patch.strategy}",
            fix="remove them, or update the group on a schedule",
        )


@rule(
    "HF710",
    title="Batch sizes of updates are at most 100 percent",
    each=BatchSize,
    source=f"{API}, CapacitySizeConfig",
)
def batch_size(size: BatchSize, _: Deployment) -> Iterator[Broken]:
    """The same property holds numbers of instances, which may be more than 100."""
    if size.type == "CAPACITY_PERCENTAGE" and size.value > 100:
        yield refused(size.at("value"), str(size.value), allowed="1 to 100 percent", fix="write 25")


@rule(
    "HF712",
    title="Rollback alarms are named, each once",
    each=RollingUpdate,
    source=f"{API}, AutoRollbackConfig",
)
def rollback_alarms(update: RollingUpdate, deployment: Deployment) -> Iterator[Broken]:
    """Names of CloudWatch alarms, not ARNs."""
    names = update.rollback_alarms
    for index, name in enumerate(names):
        if name.startswith("arn:"):
            own = name.rpartition(":")[2]
            yield refused(
                f"{update.at('rollback_alarms')}.{index}" + (".AlarmName" if deployment.file is None else ""),
                f"the ARN of the alarm {own}",
                allowed="its name",
                fix=f"write Ref {own}" if name.startswith(ALARM_OF_APP) else f"write {own}",
            )
    if len(set(names)) < len(names):
        yield refused(update.at("rollback_alarms"), "an alarm twice", allowed="each alarm once", fix="shorten the list")


@rule(
    "HF713",
    severity="warning",
    title="An update does not take all nodes of a group at once",
    each=InstanceGroup,
    source="Holdfast",
)
def batch_leaves_nodes(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """
    A batch of the whole group stops everything that runs there, and no alarm can stop the rollout between batches.
    """
    for update in (group.scheduled_update, group.auto_patch):
        size = update.deployment.maximum_batch_size if update is not None and update.deployment is not None else None
        if size is None or group.instance_count < 2:
            continue
        most = 100 if size.type == "CAPACITY_PERCENTAGE" else group.instance_count
        if size.value == most or (size.type == "INSTANCE_COUNT" and size.value > most):
            yield Broken(
                path=size.at("value"),
                message=f"a batch takes all {group.instance_count} nodes of {group.name} at once",
                fix="take smaller batches",
            )


@rule(
    "HF714",
    title="Schedules are cron expressions",
    each=ScheduledUpdate,
    source=f"{API}, CronScheduleExpression; EventBridge Scheduler user guide, 'Cron-based schedules'",
)
def schedule(update: ScheduledUpdate, _: Deployment) -> Iterator[Broken]:
    """cron(minutes hours day-of-month month day-of-week year), in UTC; one of the two days is a question mark."""
    reason = _cron_mistake(update.schedule_expression)
    if reason is not None:
        yield refused(
            update.at("schedule_expression"),
            f"{show(update.schedule_expression)}, {reason}",
            allowed="cron(minutes hours day month weekday year)",
            fix="write cron(0 3 ? * SUN *)",
        )


@rule("HF715", title="Patch days are calendar dates", each=AutoPatch, source=f"{API}, PatchSchedule")
def patch_day(patch: AutoPatch, _: Deployment) -> Iterator[Broken]:
    """YYYY-MM-DD, and in the calendar."""
    if patch.next_patch_date is None:
        return
    try:
        datetime.date.fromisoformat(patch.next_patch_date[:10])
    except ValueError:
        yield refused(
            patch.at("next_patch_date"), show(patch.next_patch_date), allowed="a day of the calendar", fix="correct it"
        )


@rule(
    "HF716",
    severity="warning",
    title="A group is patched by a schedule or automatically, not both",
    each=InstanceGroup,
    source="Holdfast",
)
def two_updates(group: InstanceGroup, _: Deployment) -> Iterator[Broken]:
    """A schedule and automatic patches both change the AMI. Which of them updated a node is unknown."""
    if group.scheduled_update is not None and group.auto_patch is not None:
        yield Broken(
            path=group.at("auto_patch"),
            message="the group is updated on a schedule and patched by itself",
            fix="keep one of them",
        )


def _cron_mistake(expression: str) -> str | None:
    """Compare with the service's own pattern, which does not count the two days."""
    schema = schema_of("AWS::SageMaker::Cluster")
    assert schema is not None, "the registry has the cluster"
    pattern = schema.body["definitions"]["ScheduledUpdateConfig"]["properties"]["ScheduleExpression"]["pattern"]
    if not re.fullmatch(pattern, expression):
        return "which has a form that SageMaker does not take"
    fields = expression.split()
    if (fields[2] == "?") == (fields[4] == "?"):
        return "in which exactly one of day and weekday has to be ?"
    return None
