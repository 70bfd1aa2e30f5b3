"""srun --container-image on nodes of a local HyperPod: a real Slurm, the plugin, runc. One cluster serves all tests."""

import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from slurm_lab import SlurmLab
from small_image import add_small_image
from waiting import eventually

from holdfast.localcloud.containers import missing
from holdfast.localcloud.nodes import Node

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.root,
    pytest.mark.slurm,
    pytest.mark.skipif(bool(missing()), reason="; ".join(missing())),
]
CLOSED = "/root/closed"
needs_squashfs = pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="needs squashfs-tools")


class Lab(SlurmLab):
    """With steps in containers on the first worker."""

    def srun(self, *argv: str, image: str = "small", **options: Any) -> "subprocess.CompletedProcess[str]":
        where = ("-N1", "-w", self.workers[0].spec.hostname)
        return self.run("srun", *where, f"--container-image={image}", *argv, **options)


def traces(node: Node) -> list[str]:
    """What a container leaves behind: a mount in the node's own namespace, a process, a file."""
    found = [
        line
        for line in node.run(["cat", "/proc/1/mountinfo"], timeout_s=10).stdout.splitlines()
        if "/run/holdfast/container" in line or "lowerdir=/opt/holdfast/images" in line
    ]
    mine = (node.root / "proc/1/ns/mnt").stat().st_ino
    found += [
        f"process {process.name} {name}"
        for process in (node.root / "proc").glob("[0-9]*")
        for name, mounts in [name_and_mounts(process)]
        if name in ("runc", "holdfast-keeper") or mounts not in (0, mine)
    ]
    stage = node.root / "run/holdfast/container"
    return found + [str(path) for path in (stage.iterdir() if stage.is_dir() else [])]


def name_and_mounts(process: Path) -> tuple[str, int]:
    """What a process is called, and the number of its mount namespace; 0 when it is gone."""
    try:
        return (process / "comm").read_text().strip(), (process / "ns/mnt").stat().st_ino
    except OSError:
        return "", 0


def cgroups() -> set[str]:
    return {str(path) for path in Path("/sys/fs/cgroup").glob("*/*") if path.is_dir()}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    before = cgroups()
    lab = Lab(tmp_path_factory.mktemp("home"))
    try:
        add_small_image(lab.store, name="small", Env=["OF_IMAGE=1", "SAID=image", "PATH=/bin"], WorkingDir="/work")
        for node in lab.workers:
            node.run(["mkdir", "-m", "700", CLOSED], timeout_s=9)
            node.write_file(f"{CLOSED}/file", b"secret\n")
            node.write_file("/root/file", b"secret\n", mode=0o600)
            node.run(["sh", "-c", "mkdir -p /shared && chmod 1777 /shared && echo of-node > /shared/file"], timeout_s=9)
        yield lab
        eventually(lambda: not [trace for node in lab.workers for trace in traces(node)])
        assert cgroups() == before
    finally:
        lab.close()


@pytest.fixture(autouse=True)
def leaves_nothing(lab: Lab) -> Iterator[None]:
    yield
    eventually(lambda: not [trace for node in lab.workers for trace in traces(node)])


@pytest.mark.documented("HP-84")
def test_a_step_sees_the_files_and_the_working_directory_of_its_image(lab: Lab) -> None:
    done = lab.srun("sh", "-c", "cat /etc/of-the-image; pwd; ls -d /opt/slurm /usr/share 2>&1 | grep -c cannot")
    assert (done.returncode, done.stdout.split()) == (0, ["small", "/work", "2"]), done.stderr


def test_a_task_is_its_user_without_privileges(lab: Lab) -> None:
    script = "id -u; id -un; grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs)' /proc/self/status; setuid-sh -c 'id -u'"
    done = lab.srun("sh", "-c", script)
    assert done.stdout.split() == [
        "1000", "ubuntu", "CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "1000",
    ]  # fmt: skip


def test_exit_codes_input_and_output_pass_through(lab: Lab) -> None:
    done = lab.controller.run(
        ["srun", "-N1", "--container-image=small", "sh", "-c", "cat; echo oops >&2; exit 7"],
        user="ubuntu",
        cwd="/tmp",
        input="words\n",
        timeout_s=60,
    )
    assert (done.returncode, done.stdout) == (7, "words\n")
    assert "oops" in done.stderr
    assert "pyxis: imported docker image: small" in done.stderr


def test_the_images_variables_go_over_the_jobs_unless_the_user_wants_the_jobs(lab: Lab) -> None:
    jobs = {"SAID": "job", "OF_JOB": "1", "LANG": "C.UTF-8"}
    show = ("sh", "-c", "echo $SAID $OF_IMAGE $OF_JOB ${LANG-none} $PATH")
    assert lab.srun(*show, env=jobs).stdout.split() == ["image", "1", "1", "none", "/bin"]
    kept = lab.srun("--container-env=SAID,LANG", *show, env=jobs)
    assert kept.stdout.split() == ["job", "1", "1", "C.UTF-8", "/bin"]


def test_the_job_environment_of_the_service_reaches_a_task_in_a_container(lab: Lab) -> None:
    assert lab.srun("sh", "-c", "echo $HOLDFAST_CLUSTER").stdout == "lab\n"


def test_mounts_and_the_working_directory_are_as_asked(lab: Lab) -> None:
    done = lab.srun(
        "--container-mounts=/shared:/data,/shared:/fixed:ro,tmpfs:/scratch",
        "--container-workdir=/data",
        "sh",
        "-c",
        "pwd; cat file; echo written > new; touch /scratch/x && stat -c %u /scratch/x; touch /fixed/no || echo refused",
    )
    assert done.stdout.split() == ["/data", "of-node", "1000", "refused"], done.stderr
    assert lab.workers[0].read_file("/shared/new") == b"written\n"


def test_all_tasks_of_a_step_on_a_node_share_one_container(lab: Lab) -> None:
    script = (
        "echo $SLURM_PROCID > /tmp/$SLURM_PROCID; while [ ! -e /tmp/0 -o ! -e /tmp/1 ]; do sleep 0.05; done; ls /tmp"
    )
    done = lab.srun("-n2", "--overcommit", "sh", "-c", script)
    assert sorted(done.stdout.split()) == ["0", "0", "1", "1"], done.stderr


def test_a_step_over_two_nodes_runs_in_a_container_on_each(lab: Lab) -> None:
    done = lab.run("srun", "-N2", "--container-image=small", "cat", "/etc/hostname", "/etc/of-the-image")
    assert sorted(done.stdout.split()) == sorted([*(node.spec.hostname for node in lab.workers), "small", "small"])


def test_a_batch_script_runs_in_the_container_that_sbatch_asks_for(lab: Lab) -> None:
    lab.run("sh", "-c", "printf '#!/bin/sh\\n#SBATCH --container-image=small\\ncat /etc/of-the-image\\n' > /tmp/job.sh")
    worker = lab.workers[0].spec.hostname
    done = lab.run("sbatch", "--wait", "-w", worker, "-o", "/shared/batch.out", "--container-mounts=/shared", "job.sh")
    assert done.returncode == 0, done.stderr
    said = lab.workers[0].read_file("/shared/batch.out").decode().splitlines()
    assert said == ["pyxis: importing docker image: small", "pyxis: imported docker image: small", "small"]


def image_file(lab: Lab, name: str = "image.sqsh") -> Path:
    """The tree of the small image as enroot import writes it, on the shared file system."""
    stored = lab.store.find("small")
    assert stored is not None
    work = lab.workers[0].root / "fsx" / f"tree-of-{name}"
    shutil.copytree(lab.store.folder(stored) / "rootfs", work, symlinks=True)
    (work / "etc/environment").write_text("PATH=/bin\nOF_FILE=1\n")
    (work / "etc/rc").write_text('mkdir -p "/work" 2> /dev/null\ncd "/work" && unset OLDPWD || exit 1\n')
    made = lab.workers[0].root / "fsx" / name
    subprocess.run(["mksquashfs", str(work), str(made), "-quiet", "-no-progress"], check=True, capture_output=True)
    shutil.rmtree(work)
    return made


@needs_squashfs
def test_an_image_file_runs_by_its_path_and_is_unpacked_once_per_node(lab: Lab) -> None:
    made = image_file(lab)
    script = "cat /etc/of-the-image; echo $OF_FILE; pwd; stat -c %u /bin/sh; echo x > /bin/mine && echo written"
    for number in range(2):
        done = lab.run("srun", "-N2", f"--container-image=/fsx/{made.name}", "sh", "-c", script)
        assert sorted(done.stdout.split()) == sorted(["small", "1", "/work", "1000", "written"] * 2), done.stderr
        assert "importing docker image" not in done.stderr
        for node in lab.workers:
            unpacked = [one for one in (node.root / "opt/holdfast/unpacked").iterdir() if one.is_dir()]
            assert len(unpacked) == 1, number
            assert not (unpacked[0] / "rootfs/bin/mine").exists()


@needs_squashfs
def test_an_image_file_is_found_from_the_folder_of_the_step_and_its_new_content_is_taken(lab: Lab) -> None:
    made = image_file(lab, "other.sqsh")
    assert (
        lab.srun("cat", "/etc/of-the-image", image="./other.sqsh", cwd="/fsx", env={"PWD": "/fsx"}).stdout == "small\n"
    )
    half = made.with_name("half.sqsh")
    half.write_bytes(made.read_bytes()[: made.stat().st_size // 2])
    done = lab.srun("true", image="/fsx/half.sqsh")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if "pyxis" in line]
    assert f"half.sqsh: it has {half.stat().st_size} of its " in line
    broken = bytearray(made.read_bytes())
    broken[200 : len(broken) // 2] = bytes(len(broken) // 2 - 200)
    made.write_bytes(broken)
    done = lab.srun("true", image="/fsx/other.sqsh")
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if "pyxis" in line]
    assert "failed to import image file: /fsx/other.sqsh: unsquashfs:" in line


@needs_squashfs
def test_an_image_file_is_read_with_the_rights_of_the_user(lab: Lab) -> None:
    made = image_file(lab, "secret.sqsh")
    made.chmod(0o600)
    done = lab.srun("true", image="/fsx/secret.sqsh")
    assert "failed to import image file: /fsx/secret.sqsh: Permission denied" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--container-image=absent:1"], "pyxis: failed to import docker image: absent:1"),
        (["--container-image=/tmp/file.sqsh"], "/tmp/file.sqsh: no such file on this node"),
        (["--container-image=../../etc"], "../../etc: it is not a file; name a squashfs file"),
        (["--container-image=small/../small"], "is not an image name"),
        (["--container-mounts=/absent:/x"], "pyxis: --container-mounts: source path does not exist: /absent"),
        ([f"--container-mounts={CLOSED}/file:/x"], f"--container-mounts: {CLOSED}/file: Permission denied"),
        (["--container-mounts=/proc/self/fd/0:/x"], "--container-mounts: /proc/self/fd/0:"),
        (["--container-mounts=/proc/self/root/root/closed:/x"], "--container-mounts: /proc/self/root/root/closed:"),
        (["--container-mounts=/shared:/x:suid"], "flag 'suid' is not known"),
        (["--container-mounts=:"], "invalid format"),
        (["--container-workdir=/absent"], "pyxis: couldn't chdir to /absent: No such file or directory"),
        (["--container-name=kept"], "--container-name is not available on the local cluster"),
        (["--container-readonly", "--container-writable"], "both --container-writable and --container-readonly"),
    ],
)
def test_what_cannot_be_is_refused_with_one_line(lab: Lab, options: Sequence[str], said: str) -> None:
    image = [] if any("--container-image" in option for option in options) else ["--container-image=small"]
    done = lab.run("srun", "-N1", "-w", lab.workers[0].spec.hostname, *image, *options, "sh", "-c", "echo ran")
    assert done.returncode != 0
    assert "ran" not in done.stdout.split()
    lines = [line for line in done.stderr.splitlines() if said in line]
    assert len(lines) == 1, done.stderr


def test_a_mounted_file_is_as_closed_to_the_user_as_on_the_node(lab: Lab) -> None:
    done = lab.srun("--container-mounts=/root/file:/x", "cat", "/x")
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "Permission denied" in done.stderr


def test_nothing_is_made_on_the_node_where_the_user_may_not(lab: Lab) -> None:
    done = lab.srun("--container-mounts=/etc:/etc-of-node,/shared:/etc-of-node/new", "sh", "-c", "echo ran")
    assert "Permission denied" in done.stderr
    assert not (lab.workers[0].root / "etc/new").exists()


def test_a_mount_cannot_leave_the_container_through_a_link_of_the_image(lab: Lab) -> None:
    def unpack(root: Path) -> None:
        (root / "escape").symlink_to("/proc/1/root/shared")

    lab.store.add("links", digest=f"sha256:{'a' * 64}", config={}, unpack=unpack)
    done = lab.srun("--container-mounts=/shared:/escape/stolen", "true", image="links")
    assert "cannot mount at /escape/stolen" in done.stderr
    assert not (lab.workers[0].root / "shared/stolen").exists()


def test_a_read_only_container_refuses_writes_but_for_tmp(lab: Lab) -> None:
    script = "touch /work/x || echo refused; touch /tmp/x && echo made"
    assert lab.srun("--container-readonly", "sh", "-c", script).stdout.split() == ["refused", "made"]
    assert lab.srun("sh", "-c", "touch /work/x && echo made").stdout.split() == ["made"]


def test_a_task_killed_inside_ends_its_step_as_outside(lab: Lab) -> None:
    outside = lab.run("srun", "-N1", "sh", "-c", "kill -9 $$")
    inside = lab.srun("sh", "-c", "kill -9 $$")
    assert (inside.returncode, outside.returncode) == (128 + signal.SIGKILL,) * 2


def running(lab: Lab, *options: str, marker: str) -> str:
    """A job whose container runs, with a program in it that left its parents; the job's number."""
    # Asked for by bash: sleep's words are how the test finds the processes.
    script = f"setsid sleep {marker} & sleep {marker}"
    wrap = f"srun --container-image=small sh -c '{script}'"
    worker = lab.workers[0].spec.hostname
    number = lab.run("sbatch", "--parsable", "-w", worker, "-o", "/dev/null", *options, "--wrap", wrap).stdout.strip()
    eventually(lambda: len(sleepers(lab.workers[0], marker)) == 2)
    return str(number)


def sleepers(node: Node, marker: str) -> list[int]:
    listed = node.run(["pgrep", "-f", "-x", f"sleep {marker}"], timeout_s=10).stdout
    return [int(number) for number in listed.split()]


def kill_slurmstepd(node: Node, *, step: str) -> None:
    named = node.run(["pgrep", "-x", "slurmstepd", "-a"], timeout_s=10).stdout.splitlines()
    found = [line.split()[0] for line in named if f"[{step}]" in line]
    assert len(found) == 1
    node.run(["kill", "-9", *found], timeout_s=10)


def test_scancel_ends_the_container_with_all_that_is_in_it(lab: Lab) -> None:
    job = running(lab, marker="1001")
    lab.run("scancel", job)
    eventually(lambda: not sleepers(lab.workers[0], "1001"))


def test_a_program_that_stays_behind_ends_with_its_step(lab: Lab) -> None:
    done = lab.srun("sh", "-c", "setsid sleep 1002 >/dev/null 2>&1 </dev/null & sleep 0.2; echo started")
    assert done.stdout == "started\n"
    eventually(lambda: not sleepers(lab.workers[0], "1002"))


def test_nothing_of_a_container_outlives_slurmstepd(lab: Lab) -> None:
    job = running(lab, "--no-requeue", marker="1003")
    kill_slurmstepd(lab.workers[0], step=f"{job}.0")
    eventually(lambda: not sleepers(lab.workers[0], "1003"))
    lab.run("scancel", job)


def test_a_requeued_job_leaves_no_container(lab: Lab) -> None:
    job = running(lab, "--requeue", marker="1004")
    lab.run("scontrol", "requeuehold", job)
    eventually(lambda: not sleepers(lab.workers[0], "1004"))
    lab.run("scancel", job)


@pytest.fixture
def another_runc(lab: Lab) -> Iterator[Callable[[str], None]]:
    """Put a script in runc's place on the first worker."""
    path = "/usr/local/sbin/runc"

    def install(script: str) -> None:
        lab.workers[0].write_file(path, f"#!/bin/sh\n{script}\n".encode(), mode=0o755)

    try:
        yield install
    finally:
        lab.workers[0].run(["rm", "-f", path], timeout_s=10)


def test_a_container_that_runc_cannot_make_fails_its_step_with_runcs_last_words(
    lab: Lab, another_runc: Callable[[str], None]
) -> None:
    another_runc("echo first >&2; echo broken >&2; exit 1")
    done = lab.srun("true")
    assert done.returncode == 1
    assert "pyxis: container start failed: runc: broken" in done.stderr


def test_nothing_of_a_container_half_made_outlives_slurmstepd(lab: Lab, another_runc: Callable[[str], None]) -> None:
    another_runc("exec sleep 1005")
    worker = lab.workers[0]
    wrap = "srun --container-image=small true"
    job = lab.run(
        "sbatch", "--parsable", "--no-requeue", "-w", worker.spec.hostname, "-o", "/dev/null", "--wrap", wrap
    ).stdout.strip()
    eventually(lambda: sleepers(worker, "1005"))
    assert traces(worker)
    kill_slurmstepd(worker, step=f"{job}.0")
    # Before the helper itself gives runc up, which is after ten seconds.
    eventually(lambda: not sleepers(worker, "1005"), within_s=5)
    lab.run("scancel", job)
