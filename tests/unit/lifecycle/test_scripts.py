"""The user's own scripts: after ours, in order, once per content; and what a node of EKS or without FSx does."""

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast_lifecycle import LifecycleError, StepError, load_context, plan
from holdfast_lifecycle.steps import STEPS, clock, fsx, job_environment, scripts

ADDRESS = "10.1.0.12"


def context(root: Path, **config: Any) -> Any:
    """A node of group workers whose bundle has these settings."""
    settings = {"cluster_name": "demo", "users": [], "fsx_mount_path": "/fsx", "events_path": "/var/log/events.jsonl"}
    (root / "config.json").write_text(json.dumps(settings | config))
    groups = [{"Name": "workers", "Instances": [{"InstanceId": "i-1", "CustomerIpAddress": ADDRESS}]}]
    (root / "resources.json").write_text(json.dumps({"InstanceGroups": groups}))
    return load_context(
        config=root / "config.json", resource_config=root / "resources.json", addresses={ADDRESS}, root=root
    )


def script(root: Path, name: str, text: str) -> None:
    (root / "scripts").mkdir(exist_ok=True)
    (root / "scripts" / name).write_text(f"#!/bin/sh\n{text}\n")


def test_scripts_run_in_their_order_and_once_per_content(tmp_path: Path) -> None:
    script(tmp_path, "one.sh", "echo one >>order")
    script(tmp_path, "two.sh", "echo two >>order")
    node = context(tmp_path, orchestrator="eks", scripts=["one.sh", "two.sh"])

    assert not scripts.check(node)
    scripts.apply(node)
    assert scripts.check(node)
    assert scripts.verify(node) == "one.sh, two.sh"
    scripts.apply(node)
    assert (tmp_path / "order").read_text() == "one\ntwo\n"

    script(tmp_path, "one.sh", "echo changed >>order")
    scripts.apply(node)
    assert (tmp_path / "order").read_text() == "one\ntwo\nchanged\n"


def test_a_failing_script_stops_those_after_it_and_says_which_it_was(tmp_path: Path) -> None:
    script(tmp_path, "one.sh", "exit 3")
    script(tmp_path, "two.sh", "echo two >>order")
    node = context(tmp_path, orchestrator="eks", scripts=["one.sh", "two.sh"])

    with pytest.raises(StepError) as caught:
        scripts.apply(node)

    assert (caught.value.expected, caught.value.seen) == ("one.sh ends with exit code 0", "exit code 3")
    assert not (tmp_path / "order").exists()
    with pytest.raises(StepError):
        scripts.verify(node)


def test_a_script_that_is_not_in_the_bundle_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepError) as caught:
        scripts.check(context(tmp_path, orchestrator="eks", scripts=["gone.sh"]))

    assert caught.value.expected == "gone.sh is in the lifecycle bundle"


def test_a_node_of_eks_needs_no_controller_and_runs_no_slurm_step(tmp_path: Path) -> None:
    node = context(tmp_path, orchestrator="eks")

    assert (node.role, node.controller_address) == ("Kubernetes", "")
    names = [step.name for step in plan(STEPS, role=node.role, hook=node.hook)]
    assert " ".join(names) == ("volume lustre_efa users fsx user_homes clock job_environment agent burn_in scripts")


def test_a_group_that_mounts_nothing_does_not_wait_for_a_file_system(tmp_path: Path) -> None:
    node = context(tmp_path, orchestrator="eks", fsx_instance_groups=["others"])

    assert node.fsx_mount_path == ""
    assert fsx.check(node)
    assert fsx.verify(node) == "this group mounts no shared file system"
    assert clock.check(node)


def test_a_group_among_those_that_mount_has_the_path(tmp_path: Path) -> None:
    assert context(tmp_path, orchestrator="eks", fsx_instance_groups=["workers"]).fsx_mount_path == "/fsx"


def test_jobs_find_the_training_image_in_their_environment(tmp_path: Path) -> None:
    (tmp_path / "holdfast_common").mkdir()
    image = "123456789012.dkr.ecr.us-west-2.amazonaws.com/train@sha256:00"
    job_environment.apply(context(tmp_path, orchestrator="eks", training_image=image))

    assert f"HOLDFAST_TRAINING_IMAGE={image}\n" in (tmp_path / "etc/holdfast/environment").read_text()


def test_jobs_find_what_only_the_deployment_knew(tmp_path: Path) -> None:
    (tmp_path / "holdfast_common").mkdir()
    (tmp_path / "job_environment.json").write_text('{"TENSORBOARD_LOGDIR": "s3://data/tensorboard of all"}')
    job_environment.apply(context(tmp_path, orchestrator="eks"))

    assert "TENSORBOARD_LOGDIR='s3://data/tensorboard of all'\n" in (tmp_path / "etc/holdfast/environment").read_text()
    assert "TENSORBOARD_LOGDIR" in (tmp_path / "etc/profile.d/holdfast.sh").read_text().splitlines()[-1]


@pytest.mark.parametrize("text", ["[1]", '{"A": 1}', "{"])
def test_a_job_environment_that_is_none_ends_the_lifecycle_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "job_environment.json").write_text(text)

    with pytest.raises(LifecycleError, match=r"job_environment\.json.*deploy the lifecycle bundle again"):
        context(tmp_path, orchestrator="eks")
