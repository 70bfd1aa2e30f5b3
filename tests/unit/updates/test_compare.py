"""What a change does, setting by setting, and what of it may be deployed."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.config import Environment
from holdfast.updates import Effect, compare, environment_metadata, environment_of, guard, settings

ENVIRONMENTS = Path(__file__).parents[3] / "environments"
SLURM = yaml.safe_load((ENVIRONMENTS / "slurm-p5.yaml").read_text())
EKS = yaml.safe_load((ENVIRONMENTS / "eks-p5.yaml").read_text())
WORKERS = "cluster.instance_groups.workers"
SETTINGS = frozenset(settings())
HOME = {"capacity_gib": 512}


def environment(document: dict[str, Any]) -> Environment:
    return Environment.model_validate(document)


def deployed(document: dict[str, Any]) -> dict[str, Any]:
    found = environment_of({"Metadata": environment_metadata(environment(document))})
    assert found is not None
    return found


def edited(document: dict[str, Any], *edits: tuple[str, Any]) -> dict[str, Any]:
    """A copy with settings set by path; None takes one away, items of lists go by name."""
    changed = copy.deepcopy(document)
    for path, value in edits:
        *parents, leaf = path.split(".")
        place: Any = changed
        for part in parents:
            place = named(place, part) if isinstance(place, list) else place.setdefault(part, {})
        if isinstance(place, list):
            place.remove(named(place, leaf)) if value is None else place.append(value)
        elif value is None:
            del place[leaf]
        else:
            place[leaf] = value
    return changed


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(item for item in items if item["name"] == name)


def effects(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Effect]:
    return {change.path: change.effect for change in compare(deployed(old), environment(new))}


def test_an_unchanged_file_changes_nothing() -> None:
    assert effects(SLURM, SLURM) == {}
    assert guard(environment(SLURM), deployed(SLURM)) == []


@pytest.mark.parametrize(
    ("path", "value", "effect"),
    [
        ("cluster.node_recovery", "None", Effect.IN_PLACE),
        ("cluster.name", "other", Effect.REPLACES_CLUSTER),
        ("cluster.name", "slurm-p5", Effect.NOTHING),
        ("cluster.tags", {"team": "a"}, Effect.IN_PLACE),
        (f"{WORKERS}.instance_count", 20, Effect.IN_PLACE),
        (f"{WORKERS}.instance_count", 8, Effect.DELETES_NODES),
        (f"{WORKERS}.instance_type", "ml.p5en.48xlarge", Effect.REFUSED),
        (f"{WORKERS}.volume_gib", 1000, Effect.NEW_NODES),
        (f"{WORKERS}.threads_per_core", 2, Effect.NEW_NODES),
        (f"{WORKERS}.capacity", "spot", Effect.REFUSED),
        (f"{WORKERS}.image_release_version", "1.0.1", Effect.ROLLING),
        (f"{WORKERS}.slurm.partition", "train", Effect.IN_PLACE),
        (f"{WORKERS}.slurm.node_type", "Login", Effect.REFUSED),
        ("storage.lustre.capacity_gib", 38400, Effect.IN_PLACE),
        ("storage.lustre.capacity_gib", 9600, Effect.REFUSED),
        ("storage.lustre.throughput_mbps_per_tib", 1000, Effect.IN_PLACE),
        ("storage.lustre.efa", True, Effect.REFUSED),
        ("storage.lustre.metadata_iops", 6000, Effect.IN_PLACE),
        ("storage.lustre.compression", "NONE", Effect.IN_PLACE),
        ("storage.lustre.mount_path", "/data", Effect.NEW_NODES),
        ("storage.lustre.datasets.data.s3_prefix", "other", Effect.REFUSED),
        ("storage.lustre.datasets.data.auto_import", ["NEW"], Effect.IN_PLACE),
        ("storage.lustre.datasets.checkpoints.auto_import", ["NEW"], Effect.REFUSED),
        ("storage.home", HOME, Effect.NEW_NODES),
        ("lifecycle.scripts", ["scripts/tune.sh"], Effect.NEW_NODES),
        ("encryption.kms_key", "create", Effect.REPLACES_FILE_SYSTEM),
        ("network.cidr", "10.2.0.0/16", Effect.REFUSED),
        ("network.availability_zone", "us-west-2b", Effect.REFUSED),
        ("network.egress", "none", Effect.IN_PLACE),
        ("slurm.config_strategy", "Merge", Effect.IN_PLACE),
        ("goodput.target_percent", 90, Effect.NOTHING),
    ],
)
def test_a_changed_setting_has_the_effect_of_its_policy(path: str, value: object, effect: Effect) -> None:
    assert effects(SLURM, edited(SLURM, (path, value))) == {path: effect}


@pytest.mark.parametrize(
    ("versions", "effect"),
    [(("1.33", "1.34"), Effect.IN_PLACE), (("1.32", "1.34"), Effect.REFUSED), (("1.34", "1.33"), Effect.REFUSED)],
)
def test_kubernetes_goes_up_one_version_at_a_time(versions: tuple[str, str], effect: Effect) -> None:
    old, new = (edited(EKS, ("eks.kubernetes_version", version)) for version in versions)

    assert effects(old, new) == {"eks.kubernetes_version": effect}


def test_saying_the_defaults_of_slurm_changes_nothing() -> None:
    assert effects(edited(SLURM, ("slurm", None)), SLURM) == {"slurm": Effect.NOTHING}
    assert effects(edited(SLURM, ("slurm", None)), edited(SLURM, ("slurm.config_strategy", "Merge"))) == {
        "slurm": Effect.IN_PLACE
    }


def test_throughput_with_efa_is_fixed_and_metadata_operations_only_rise() -> None:
    fast = edited(SLURM, ("storage.lustre.efa", True), ("storage.lustre.metadata_iops", 6000))

    assert effects(fast, edited(fast, ("storage.lustre.throughput_mbps_per_tib", 1000))) == {
        "storage.lustre.throughput_mbps_per_tib": Effect.REFUSED
    }
    assert effects(fast, edited(fast, ("storage.lustre.metadata_iops", 12000))) == {
        "storage.lustre.metadata_iops": Effect.IN_PLACE
    }
    assert effects(fast, edited(fast, ("storage.lustre.metadata_iops", 3000))) == {
        "storage.lustre.metadata_iops": Effect.REFUSED
    }


def test_a_spare_that_becomes_a_worker_changes_nothing_in_aws() -> None:
    changed = edited(SLURM, (f"{WORKERS}.instance_count", 17), (f"{WORKERS}.spare_count", 0))

    assert set(effects(SLURM, changed).values()) == {Effect.NOTHING}


def test_a_group_that_goes_takes_its_nodes_and_one_that_comes_is_made() -> None:
    extra = {"name": "extra", "instance_type": "ml.g5.8xlarge", "instance_count": 2,
             "slurm": {"node_type": "Compute", "partition": "extra"}}  # fmt: skip
    larger = edited(SLURM, ("cluster.instance_groups.extra", extra))

    assert effects(SLURM, larger) == {"cluster.instance_groups.extra": Effect.IN_PLACE}
    assert effects(larger, SLURM) == {"cluster.instance_groups.extra": Effect.REPLACES_GROUP}


def test_capacity_waits_for_the_metadata_iops_that_it_needs_and_rises_in_an_update_of_its_own() -> None:
    capacity, iops = "storage.lustre.capacity_gib", "storage.lustre.metadata_iops"
    small = edited(SLURM, (capacity, 1200), (iops, 1500), ("storage.lustre.efa", False))
    raised = edited(small, (iops, 3000))
    assert effects(small, edited(small, (capacity, 2400))) == {capacity: Effect.REFUSED}
    assert effects(small, edited(raised, (capacity, 2400)))[capacity] is Effect.REFUSED
    assert effects(small, raised) == {iops: Effect.IN_PLACE}
    assert effects(raised, edited(raised, (capacity, 2400))) == {capacity: Effect.IN_PLACE}
    assert effects(raised, edited(raised, (capacity, 2400), (iops, 6000)))[capacity] is Effect.REFUSED


def test_a_renamed_controller_is_refused() -> None:
    renamed = edited(SLURM, ("cluster.instance_groups.controller.name", "head"))

    assert effects(SLURM, renamed) == {
        "cluster.instance_groups.controller": Effect.REFUSED,
        "cluster.instance_groups.head": Effect.REFUSED,
    }


def test_a_file_system_that_goes_is_data_that_goes() -> None:
    assert effects(SLURM, edited(SLURM, ("storage.lustre", None))) == {"storage.lustre": Effect.REPLACES_FILE_SYSTEM}


def test_a_dataset_is_replaced_only_when_nothing_of_the_old_link_is_kept() -> None:
    moved = edited(
        SLURM,
        ("storage.lustre.datasets.data.s3_prefix", "other"),
        ("storage.lustre.datasets.data.file_system_path", "/other"),
    )
    renamed = edited(SLURM, ("storage.lustre.datasets.data.name", "text"))

    assert set(effects(SLURM, moved).values()) == {Effect.REPLACES_RESOURCE}
    assert effects(SLURM, renamed) == {
        "storage.lustre.datasets.data": Effect.IN_PLACE,
        "storage.lustre.datasets.text": Effect.REFUSED,
    }


def test_continuous_provisioning_needs_merge_under_slurm_and_is_never_given_up() -> None:
    merge = edited(SLURM, ("slurm.config_strategy", "Merge"))
    mode = "cluster.node_provisioning_mode"

    assert effects(SLURM, edited(SLURM, (mode, "Continuous"))) == {mode: Effect.REFUSED}
    assert effects(merge, edited(merge, (mode, "Continuous"))) == {mode: Effect.NEW_NODES}
    custom = edited(merge, ("lifecycle.mode", "custom"))
    assert effects(custom, edited(custom, (mode, "Continuous"))) == {mode: Effect.IN_PLACE}
    assert effects(EKS, edited(EKS, (mode, None))) == {mode: Effect.REFUSED}


HEAD = next(
    group["name"] for group in SLURM["cluster"]["instance_groups"] if group["slurm"]["node_type"] == "Controller"
)
SUBNETS = {"subnet_ids": ["subnet-0123456789abcdef0"], "security_group_ids": ["sg-0123456789abcdef0"]}
OVERRIDE = f"cluster.instance_groups.{HEAD}.override_vpc"
OTHER_SUBNETS = ["subnet-0fedcba9876543210"]


@pytest.mark.parametrize(
    ("before", "setting", "value"),
    [
        ((), f"cluster.instance_groups.{HEAD}.instance_type", "ml.m5.4xlarge"),
        ((), OVERRIDE, SUBNETS),
        ((OVERRIDE, SUBNETS), f"{OVERRIDE}.subnet_ids", OTHER_SUBNETS),
        ((), f"cluster.instance_groups.{HEAD}.slurm.node_type", "Login"),
        ((), f"{WORKERS}.slurm.node_type", "Controller"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_no_change_of_the_controller_is_advised_to_add_a_second_one(
    before: tuple[str, Any], setting: str, value: Any
) -> None:
    old = edited(SLURM, before) if before else SLURM
    found = {change.path: change for change in compare(deployed(old), environment(edited(old, (setting, value))))}

    assert found[setting].effect is Effect.REFUSED
    assert "add a group" not in found[setting].action
    assert "another cluster" in found[setting].action


def test_other_groups_are_still_advised_to_make_way_for_another() -> None:
    change = compare(deployed(SLURM), environment(edited(SLURM, (f"{WORKERS}.instance_type", "ml.p5en.48xlarge"))))[0]

    assert change.action.startswith("add a group of another name")


def test_accounting_that_is_kept_outside_cannot_come_back() -> None:
    outside = edited(
        SLURM,
        ("cluster.node_provisioning_mode", "Continuous"),
        ("slurm.accounting", {"create": True}),
    )
    without = edited(outside, ("slurm.accounting", None))

    assert effects(outside, without) == {"slurm.accounting": Effect.REFUSED}
    assert effects(outside, edited(outside, ("slurm", None)))["slurm"] is Effect.REFUSED


@pytest.mark.parametrize(
    ("before", "after", "effect", "words"),
    [
        (None, "custom", Effect.NEW_NODES, "the controller gets it with UpdateClusterSoftware alone"),
        (None, "none", Effect.NEW_NODES, "the controller gets it with UpdateClusterSoftware alone"),
        ("custom", "extension", Effect.NEW_NODES, "run UpdateClusterSoftware first"),
        ("custom", None, Effect.NEW_NODES, "run UpdateClusterSoftware first"),
        (None, "extension", Effect.NOTHING, ""),
    ],
)
@pytest.mark.parametrize("path", ["lifecycle.mode", f"{WORKERS}.lifecycle_mode"])
def test_another_lifecycle_mode_reaches_new_nodes(
    path: str, before: str | None, after: str | None, effect: Effect, words: str
) -> None:
    absent = edited(SLURM, (path, "none"), (path, None))
    old, new = (absent if mode is None else edited(SLURM, (path, mode)) for mode in (before, after))

    (change,) = compare(deployed(old), environment(new))

    assert (change.path, change.effect) == (path, effect)
    assert words in change.action


def test_a_mode_of_the_environment_that_every_group_overrides_changes_nothing() -> None:
    groups = (("cluster.instance_groups.controller.lifecycle_mode", "none"), (f"{WORKERS}.lifecycle_mode", "none"))
    own = edited(SLURM, *groups)

    assert effects(own, edited(own, ("lifecycle.mode", "custom"))) == {"lifecycle.mode": Effect.NOTHING}


def test_another_network_needs_another_cluster_name() -> None:
    moved = edited(SLURM, ("network.cidr", "10.2.0.0/16"), ("cluster.name", "second"))
    without = edited(SLURM, ("storage.lustre", None))
    moved_without = edited(without, ("network.cidr", "10.2.0.0/16"), ("cluster.name", "second"))

    assert effects(SLURM, moved)["network.cidr"] is Effect.REPLACES_FILE_SYSTEM
    assert effects(without, moved_without)["network.cidr"] is Effect.REPLACES_CLUSTER


def test_the_worst_comes_first() -> None:
    changed = edited(
        SLURM,
        ("cluster.node_recovery", "None"),
        (f"{WORKERS}.volume_gib", 1000),
        ("storage.lustre.capacity_gib", 9600),
        ("cluster.name", "other"),
    )

    assert list(effects(SLURM, changed)) == [
        "storage.lustre.capacity_gib",
        "cluster.name",
        f"{WORKERS}.volume_gib",
        "cluster.node_recovery",
    ]


def test_metadata_of_an_older_version_is_compared_with_defaults() -> None:
    older = deployed(SLURM)
    del older["encryption"], older["observability"], older["cluster"]["tags"]
    older["cluster"]["instance_groups"][0].pop("labels")
    older["no_longer_there"] = {"a": 1}

    assert compare(older, environment(SLURM)) == []


def test_a_template_without_the_metadata_says_nothing() -> None:
    assert environment_of({"Resources": {}}) is None
    assert environment_of({"Metadata": {"Other": 1}}) is None


def test_a_replacement_is_refused_until_the_file_names_it() -> None:
    renamed = edited(SLURM, ("cluster.name", "other"))
    allowed = {**renamed, "allow_replacement": ["cluster.name"]}

    refused = guard(environment(renamed), deployed(SLURM))

    assert [str(problem) for problem in refused] == [
        "cluster.name: replaces the cluster: a cluster cannot be renamed: one of the new name is made, then the old "
        "one is deleted with its nodes; wait until no job runs, and have quota and addresses for both clusters at "
        "once; to allow it, add cluster.name to allow_replacement"
    ]
    assert guard(environment(allowed), deployed(SLURM)) == []


def test_what_aws_refuses_cannot_be_allowed() -> None:
    smaller = edited(SLURM, ("storage.lustre.capacity_gib", 9600))
    problems = guard(environment({**smaller, "allow_replacement": ["storage.lustre.capacity_gib"]}), deployed(SLURM))

    assert [(problem.severity, problem.path) for problem in problems] == [
        ("error", "storage.lustre.capacity_gib"),
        ("warning", "allow_replacement"),
    ]


def test_an_allowance_that_names_no_setting_is_an_error_and_a_stale_one_a_warning() -> None:
    wanted = environment({**SLURM, "allow_replacement": ["cluster.nam", "cluster.name"]})

    assert [(problem.severity, str(problem)) for problem in guard(wanted, deployed(SLURM))] == [
        (
            "error",
            "allow_replacement: got cluster.nam; allowed: the path of a setting of this file, groups, datasets and "
            "users by name (cluster.instance_groups.workers); correct or remove it",
        ),
        (
            "warning",
            "allow_replacement: cluster.name allows a replacement that this file does not ask for any more; remove it",
        ),
    ]


def test_a_first_deployment_is_judged_by_its_allowances_alone() -> None:
    assert guard(environment({**SLURM, "allow_replacement": ["cluster.name"]}), None) == []


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return "1.35" if value.startswith("1.") else f"{value}-x"
    if isinstance(value, list):
        return [*value, "x"]
    return {**value, "x": "y"} if isinstance(value, dict) else "x"


def single_changes(section: dict[str, Any], path: str = "", place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every copy of a section in which one setting is another, or one section or item is gone, with its path."""
    for key, value in section.items():
        at, setting = f"{path}{key}", f"{place}{key}"
        if f"{setting}[]" in SETTINGS:
            for index, item in enumerate(value):
                before, after, name = value[:index], value[index + 1 :], f"{at}.{item['name']}"
                yield name, {**section, key: [*before, *after]}
                for inner, changed in single_changes(item, f"{name}.", f"{setting}[]."):
                    if inner != f"{name}.name":
                        yield inner, {**section, key: [*before, changed, *after]}
        elif any(known.startswith(f"{setting}.") for known in SETTINGS):
            if setting in SETTINGS and value is not None:
                yield at, {**section, key: None}
            for inner, changed in single_changes(value or {}, f"{at}.", f"{setting}."):
                yield inner, {**section, key: changed}
        else:
            yield at, {**section, key: other(value)}


@pytest.mark.parametrize("name", ["full", "full-slurm", "local"])
def test_every_single_change_is_noticed_and_judged(name: str) -> None:
    wanted = Environment.model_validate(yaml.safe_load((ENVIRONMENTS / f"{name}.yaml").read_text()))
    document = environment_of({"Metadata": environment_metadata(wanted)})
    assert document is not None
    mutants = dict(single_changes(document))

    for path, mutant in mutants.items():
        assert [change.path for change in compare(mutant, wanted)] == [path]

    assert len(mutants) > 50
