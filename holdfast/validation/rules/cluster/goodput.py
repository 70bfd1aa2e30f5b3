"""724: reachability of the file's goodput target, calculated by the planner."""

from collections.abc import Iterator

from holdfast.catalog import known_types
from holdfast.catalog.goodput import failure_rates, recovery_stages
from holdfast.validation.engine import Broken, rule
from holdfast.validation.model import Deployment, EnvironmentFile, InstanceGroup

RECOVERY = "checkpoints"
"""The way to recover that every HyperPod cluster has, without anything in the training program."""


@rule(
    "HF724",
    severity="warning",
    title="The goodput target can be reached",
    each=EnvironmentFile,
    source="Holdfast; `holdfast plan` shows the whole calculation and its sources",
)
def goodput_target(file: EnvironmentFile, deployment: Deployment) -> Iterator[Broken]:
    """
    `goodput.target_percent` is compared with what the renewal model of the planner expects of the largest group that
    trains: failures at the published rate of its accelerators, recovery from checkpoints as measured on HyperPod
    clusters, the file's spares and checkpoint interval. The finding names the setting that would have to change.
    """
    target, interval_s = file.goodput_target_percent, file.checkpoint_interval_s
    trained = [
        (accelerator, group) for group in deployment.cluster.instance_groups if (accelerator := _accelerator(group))
    ]
    if target is None or not trained or not 0 < target < 100:
        return
    # Only here, because it brings NumPy along, and most files ask for no goodput.
    from holdfast import planner

    accelerator, group = max(trained, key=lambda pair: pair[1].instance_count)
    spares = group.spare_count or 0
    instances = group.instance_count - spares
    try:
        rate = planner.assumed_rate(failure_rates(), accelerator=accelerator).estimate.per_instance_hour
    except planner.PlanError:
        return  # nobody has counted the failures of its accelerators
    failures = planner.Failures(per_instance_hour=rate)
    strategy = planner.strategy_at(recovery_stages()[RECOVERY], instances=instances)
    best_s = planner.best_interval_s(mtbf_h=1 / (rate * instances), write_s=planner.ASSUMED_WRITE_S)
    checkpoints = planner.Checkpoints(interval_s=interval_s or max(1.0, best_s), write_s=planner.ASSUMED_WRITE_S)
    scenario = planner.Scenario(
        instances=instances, failures=failures, strategy=strategy, checkpoints=checkpoints, spares=spares
    )
    paths = {
        "spare_count": group.at("spare_count"),
        "checkpoint_interval_s": file.at("checkpoint_interval_s"),
        "target_percent": file.at("goodput_target_percent"),
    }
    for missed in planner.shortfalls(scenario, target=target / 100):
        yield Broken(path=paths[missed.setting], message=missed.message, fix=missed.fix)


def _accelerator(group: InstanceGroup) -> str:
    found = [each for each in known_types(group.types) if each.accelerators]
    return found[0].accelerator if found and group.instance_count > (group.spare_count or 0) else ""
