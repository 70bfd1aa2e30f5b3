"""Our bundle in both modes on a real Slurm: lines of slurm.conf long after a scale-up's scripts, a lost controller."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from bad_days import Lab
from waiting import eventually

from holdfast_constructs.lifecycle import collect

pytestmark = [pytest.mark.root, pytest.mark.slurm]

ROOT = Path(__file__).parents[3]
SOURCES = [ROOT / "lifecycle" / name for name in ("on_create.sh", "on_init_complete.sh", "holdfast_lifecycle")]
HOOKS = {"extension": ("OnInitComplete", "on_init_complete.sh"), "custom": ("OnCreate", "on_create.sh")}
DELAY_S = 2.0
SETTINGS = {"node_line_delay_s": DELAY_S}
SUCCEEDED = "[SageMaker] The lifecycle scripts succeeded."


Lifecycles = dict[str, dict[str, str]]


def upload(lab: Lab, mode: str) -> dict[str, str]:
    """Our own bundle, as the stack of an environment uploads it."""
    lustre = lab.lustre["FsxLustreConfig"]
    config = {
        "cluster_name": mode,
        "orchestrator": "slurm",
        "users": [],
        "fsx_mount_path": "/fsx",
        "fsx_instance_groups": ["controller", "workers"],
        "preload": [],
        "events_path": "/var/log/holdfast/events.jsonl",
        "scripts": [],
        "training_image": "",
    }
    files: dict[str, str | bytes] = dict(
        collect(sources=[*SOURCES, ROOT / "containers/common/holdfast_common"], config=config)
    )
    if mode == "custom":
        there = {"type": "lustre", "dns_name": lustre["DnsName"], "mount_name": lustre["MountName"]}
        mounts = [{"instance_group": name, "mount_path": "/fsx", **there} for name in ("controller", "workers")]
        files["mounts.json"] = json.dumps(mounts)
    hook, script = HOOKS[mode]
    return {"SourceS3Uri": lab.upload(f"lifecycle/{mode}", files), hook: script}


def groups(lab: Lab, lifecycle: dict[str, str], *, workers: int) -> list[Any]:
    """A controller and workers."""
    return [
        lab.group("controller", lifecycle=lifecycle, NodeType="Controller"),
        lab.group("workers", count=workers, lifecycle=lifecycle, NodeType="Compute", PartitionNames=["batch"]),
    ]


@pytest.fixture(scope="module")
def clusters(lab: Lab) -> Lifecycles:
    """A cluster in each mode, in service."""
    uploaded = {mode: upload(lab, mode) for mode in HOOKS}
    for mode, lifecycle in uploaded.items():
        lab.create(mode, groups(lab, lifecycle, workers=1))
    for mode in HOOKS:
        described = lab.settled(mode, within_s=60)
        assert described["ClusterStatus"] == "InService", (lab.failures(mode), described["FailureMessage"])
    return uploaded


def grow(lab: Lab, mode: str, lifecycle: dict[str, str], *, delay_s: float) -> None:
    """One worker more, whose line comes late: its script has ended well before, and it is in service after."""
    before = lab.instances(mode)
    controller = lab.node(mode, "controller")
    lab.sagemaker.update_cluster(ClusterName=mode, InstanceGroups=groups(lab, lifecycle, workers=2))
    (fresh,) = eventually(lambda: lab.instances(mode).keys() - before.keys())
    host = eventually(lambda: [n.spec.hostname for n in lab.fleet.nodes() if n.spec.instance_id == fresh])[0]

    log = lab.fleet.node(fresh).outside("/var/log/provision/provisioning.log")
    eventually(lambda: log.exists() and SUCCEEDED.encode() in log.read_bytes())
    ended = time.monotonic()
    assert f"NodeName={host} " not in controller.read_file("/opt/slurm/etc/slurm.conf").decode()
    assert lab.instances(mode)[fresh] == "Pending"
    assert lab.described(mode)["ClusterStatus"] == "Updating"

    described = lab.settled(mode, within_s=delay_s + 60)
    assert (described["ClusterStatus"], lab.all_run(mode)) == ("InService", True), lab.failures(mode)
    assert time.monotonic() - ended > delay_s - 1.0
    assert lab.failures(mode) == {}
    assert lab.instances(mode).keys() == {*before, fresh}
    done = controller.run(["srun", "-w", host, "hostname"], timeout_s=60)
    assert done.stdout.strip() == host, done.stderr


def grow_all(lab: Lab, clusters: Lifecycles, *, delay_s: float) -> None:
    with ThreadPoolExecutor() as pool:
        for grown in [pool.submit(grow, lab, mode, one, delay_s=delay_s) for mode, one in clusters.items()]:
            grown.result()


def grow_after_a_restart(lab: Lab, clusters: Lifecycles, *, delay_s: float) -> None:
    """The control plane that gives the lines is not the one that formed the clusters: it reads theirs."""
    lab.halt()
    lab.start(node_line_delay_s=delay_s)
    grow_all(lab, clusters, delay_s=delay_s)


@pytest.mark.e2e
def test_new_nodes_come_into_service_after_their_lines_in_slurm_conf_in_both_modes(
    lab: Lab, clusters: Lifecycles
) -> None:
    grow_after_a_restart(lab, clusters, delay_s=DELAY_S)


@pytest.mark.e2e
@pytest.mark.parametrize("mode", ["extension", pytest.param("custom", marks=pytest.mark.e2e)])
def test_a_controller_that_replaces_a_lost_one_knows_its_jobs(lab: Lab, clusters: Lifecycles, mode: str) -> None:
    lost = lab.node(mode, "controller")
    accounting = lost.root / "var/lib/mysql"
    eventually(lambda: accounting.is_symlink(), within_s=60)  # in extension mode it is moved in the background
    known = ("sacct", "--allusers", "-nPX", "-o", "jobid,state")
    submit = ("sbatch", "--parsable", "-o", "/dev/null", "--wrap", "true")
    began = time.time()
    job = eventually(lambda: lost.run(submit, timeout_s=10).stdout.strip(), within_s=30)
    eventually(lambda: f"{job}|COMPLETED" in lost.run(known, timeout_s=10).stdout.splitlines(), within_s=60)
    # slurmctld saves its state some seconds after a change; what it has not saved is lost with it, as everywhere.
    saved = lost.root / "fsx/.holdfast/slurm" / mode
    eventually(lambda: any(one.stat().st_mtime > began for one in saved.glob("state-*/job_state")), within_s=60)

    lost.destroy()

    instance = lost.spec.instance_id
    eventually(lambda: instance not in lab.instances(mode) and lab.all_run(mode), within_s=90)
    new = lab.node(mode, "controller")
    eventually(lambda: f"{job}|COMPLETED" in new.run(known, timeout_s=10).stdout.splitlines(), within_s=60)
    later = eventually(lambda: new.run(submit, timeout_s=10).stdout.strip(), within_s=30)
    assert int(later) > int(job)
    eventually(lambda: f"{later}|COMPLETED" in new.run(known, timeout_s=10).stdout.splitlines(), within_s=90)


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_a_line_that_comes_five_minutes_late_is_late_and_no_fault(lab: Lab, clusters: Lifecycles) -> None:
    for mode, lifecycle in clusters.items():
        lab.sagemaker.update_cluster(ClusterName=mode, InstanceGroups=groups(lab, lifecycle, workers=1))
        lab.settled(mode)
    grow_after_a_restart(lab, clusters, delay_s=300.0)
