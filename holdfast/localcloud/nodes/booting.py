"""Boot, caller's side: plan, run the boot program, record the node."""

import contextlib
import importlib.util
import marshal
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from holdfast.localcloud.home import remove_tree_quietly
from holdfast.localcloud.kernel_log import KernelLogError, KernelLogs
from holdfast.localcloud.nodes.kernel import boot, limits, proc
from holdfast.localcloud.nodes.kernel import plan as plan_command

from . import cgroups, root
from .fabric import Fabric, Network, link_name, mac_of
from .spec import NodeError, NodeRecord, NodeSpec, write_atomically

BOOT_TIMEOUT_S = 30.0
_MOUNT_AGAIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from boot import mount_kernel_log_again as mount; "
    "mount(*map(int, sys.argv[1:]))"
)


def start(
    spec: NodeSpec, *, directory: Path, fabric: Fabric, network: Network, home: Path, kept: bool, lock: int
) -> NodeRecord:
    """
    Boot one node into its ``directory``; its record is on disk before it can outlive this process.

    ``kept``: keep an earlier root. ``lock``: the fleet's, shared with the boot program.
    """
    plan = _plan(spec, directory=directory, fabric=fabric, network=network, home=home, kept=kept, lock=lock)
    with _fuse() as log, _helper(spec, lock=lock, log=log) as helper:
        if log is not None:
            plan = {**plan, "kernel_log": log, "inherited": [lock, log]}
        assert helper.stdin is not None
        assert helper.stdout is not None
        helper.stdin.write(marshal.dumps({**plan}))
        helper.stdin.flush()
        answer = helper.stdout.readline()
        if not answer:
            raise _BootError
        pid = int(answer)
        ticks = proc.start_ticks(pid)
        if ticks is None:
            raise _BootError
        at = tuple(layer["at"] for layer in plan["layers"])
        record = NodeRecord(spec=spec, pid=pid, start_ticks=ticks, link=plan["link"], layers=at)
        write_atomically(path=directory / "node.json", text=record.to_json())
        if log is not None:
            try:
                KernelLogs(directory.parent).attach(spec.instance_id, fuse=log)
            except KernelLogError as error:
                raise NodeError(f"{spec.instance_id}: {error}") from None
        try:
            helper.communicate(b"1", timeout=BOOT_TIMEOUT_S)
            released = helper.returncode == 0
        except BaseException:
            proc.kill(pid=pid, ticks=ticks, timeout_s=BOOT_TIMEOUT_S)  # it may be on its own by now
            raise
        if not released:
            proc.kill(pid=pid, ticks=ticks, timeout_s=BOOT_TIMEOUT_S)
            raise _BootError
    return record


def give_kernel_log(instance_id: str, *, pid: int, logs: KernelLogs) -> None:
    """Mount a running node's kernel log again. Raise NodeError, or KernelLogError of the logs' process."""
    with _fuse() as log:
        if log is None:
            return
        command = [sys.executable, "-I", "-S", "-c", _MOUNT_AGAIN, str(Path(boot.__file__).parent), str(pid), str(log)]
        done = subprocess.run(
            command, pass_fds=(log,), capture_output=True, text=True, timeout=BOOT_TIMEOUT_S, check=False, cwd="/"
        )
        if done.returncode:
            why = done.stderr.strip().rpartition("\n")[2]
            raise NodeError(f"{instance_id}: cannot remount the kernel log: {why}")
        logs.attach(instance_id, fuse=log)


def _plan(
    spec: NodeSpec, *, directory: Path, fabric: Fabric, network: Network, home: Path, kept: bool, lock: int
) -> plan_command.BootPlan:
    layers = _layers(directory / "layers", image=spec.image)
    (directory / "root").mkdir(exist_ok=True)
    upper = Path(layers[0]["upper"])
    directories, files = root.root_contents(spec, kept=upper if kept else None)
    capabilities = {**limits.KEPT, **(limits.FOR_CONTAINERS if spec.runs_containers else {})}
    covers = [
        plan_command.PlannedFile(path=path, content=content, mode=0o644, uid=0, gid=0)
        for path, content in spec.kernel_files.items()
    ]
    binds = [_bind(mount.source, mount.target, mount.read_only) for mount in spec.mounts]
    return plan_command.BootPlan(
        caller=os.getpid(),
        inherited=[lock],
        hostname=spec.hostname,
        link=link_name(spec.instance_id),
        address=spec.address,
        prefix=network.network.prefixlen,
        subnet=str(network.network),
        gateway=str(network.gateway),
        mac=mac_of(spec.address),
        fabric=str(fabric.path),
        root=str(directory / "root"),
        console=str(directory / "console.log"),
        layers=layers,
        image=str(spec.image) if spec.image else "",
        hide=[] if kept else root.hidden_names(Path("/")),
        empty=[] if kept else root.emptied_directories(home, image=spec.image),
        directories=directories,
        files=files,
        binds=binds,
        capabilities=sorted(capabilities.values()),
        read_only=_read_only(spec),
        masked=list(limits.MASKED),
        cgroups=_cgroups(spec, home=home),
        kernel_files=covers,
        kernel_log=-1,
    )


def _read_only(spec: NodeSpec) -> list[str]:
    """Make /proc/sys read-only, except for the node's network where containers need it."""
    if not spec.runs_containers:
        return list(limits.READ_ONLY)
    others = [path for path in limits.READ_ONLY if path != limits.SETTINGS]
    return [*others, *(f"{limits.SETTINGS}/{name}" for name in os.listdir(limits.SETTINGS) if name != "net")]  # noqa: PTH208


def _cgroups(spec: NodeSpec, *, home: Path) -> list[plan_command.Cgroup]:
    if not spec.runs_containers:
        return []
    try:
        return cgroups.make(home=home, instance_id=spec.instance_id)
    except OSError as error:
        raise NodeError(f"{spec.instance_id}: no cgroups for its containers: {error}") from None


def _layers(directory: Path, *, image: Path | None) -> list[plan_command.Layer]:
    if image is not None:
        _check_image(image)
    layers = []
    for index, at in enumerate(["/", *root.disk_mounts(Path("/proc/self/mountinfo").read_text())]):
        upper, work = directory / str(index) / "upper", directory / str(index) / "work"
        if not upper.exists():
            upper.mkdir(parents=True)
            info = Path(at).stat()
            os.chown(upper, info.st_uid, info.st_gid)
            upper.chmod(stat.S_IMODE(info.st_mode))
        remove_tree_quietly(work)
        work.mkdir()
        over = [str(image / at[1:])] if image is not None and (image / at[1:]).is_dir() else []
        layers.append(plan_command.Layer(at=at, lowers=[*over, at], upper=str(upper), work=str(work)))
    return layers


def _check_image(image: Path) -> None:
    if not image.is_dir():
        raise NodeError(f"image {image} is not a directory; build it before the node boots")
    if image.stat().st_dev == Path("/").stat().st_dev:  # the kernel refuses a lower layer inside another: ELOOP
        raise NodeError(f"image {image} lies on the same file system as /; build it below the fleet's directory")


class _BootError(Exception): ...


def _program() -> str:
    compiled = importlib.util.cache_from_source(boot.__file__)
    return compiled if Path(compiled).is_file() else boot.__file__


@contextlib.contextmanager
def _fuse() -> Iterator[int | None]:
    try:
        descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _helper(spec: NodeSpec, *, lock: int, log: int | None) -> "Iterator[subprocess.Popen[bytes]]":
    helper = subprocess.Popen(
        [sys.executable, "-I", "-S", _program()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.environ.get("PATH", "") + ":/usr/sbin:/usr/bin:/sbin:/bin"},
        cwd="/",
        pass_fds=(lock,) if log is None else (lock, log),
        start_new_session=True,
    )
    watchdog = threading.Timer(BOOT_TIMEOUT_S, helper.kill)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield helper
    except BaseException as error:
        helper.kill()
        reported = _drain(helper)
        if isinstance(error, _BootError | BrokenPipeError | subprocess.TimeoutExpired):
            raise NodeError(f"{spec.instance_id} did not boot: {reported or 'the boot program was killed'}") from None
        raise
    finally:
        watchdog.cancel()
        helper.wait()
        for stream in (helper.stdin, helper.stdout, helper.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _drain(helper: "subprocess.Popen[bytes]") -> str:
    assert helper.stderr is not None
    return helper.stderr.read().decode(errors="replace").strip()


def _bind(source: Path, target: str, read_only: bool) -> plan_command.Bind:  # noqa: FBT001
    resolved = source.resolve()
    if not resolved.exists():
        raise NodeError(f"mount source {source} does not exist; create it before the node boots")
    return plan_command.Bind(source=str(resolved), target=target, read_only=read_only)
