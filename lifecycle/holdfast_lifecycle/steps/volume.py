"""
Containerd's images and what pods write are on the group's extra volume, now and after a reboot.

HyperPod mounts the volume at /opt/sagemaker and puts nothing there. AWS's sample moves both folders in its lifecycle
script (awslabs/awsome-distributed-ai 95b939c, on_create_main.sh); here mount units bind them, as Amazon's image for EKS
does with local disks (awslabs/amazon-eks-ami 81fec2e, setup-local-disks), which keeps containerd's configuration and
survives reboots.
"""

from typing import Optional

from holdfast_lifecycle.model import Context, StepError
from holdfast_lifecycle.node import is_active, is_written, run_program, start, stop, wait_until, write_whole

VOLUME = "/opt/sagemaker"
FOLDERS = {"/var/lib/containerd": "containerd", "/var/lib/kubelet": "kubelet"}
"""What is bound, and the service that uses it."""
_WAIT_S = 60.0
"""As AWS's sample: the volume may come a little after the script."""
_COPY_S = 300.0
_UNITS = "/etc/systemd/system"


def _mounts(context: Context) -> dict[str, tuple[str, str]]:
    """By mount point: the device, and its folder mounted there."""
    lines = (line.split() for line in context.path("/proc/self/mountinfo").read_text().splitlines())
    return {fields[4]: (fields[2], fields[3]) for fields in lines}


def _place(folder: str) -> str:
    return f"{VOLUME}/holdfast/{folder.rsplit('/', 1)[1]}"


def _unit_name(folder: str) -> str:
    return folder.strip("/").replace("/", "-") + ".mount"


def _unit(folder: str) -> bytes:
    lines = (
        "# Written by Holdfast.",
        "[Unit]",
        f"Description={folder} on the volume at {VOLUME}",
        f"RequiresMountsFor={VOLUME}",
        f"Before={FOLDERS[folder]}.service",
        "[Mount]",
        f"What={_place(folder)}",
        f"Where={folder}",
        "Type=none",
        "Options=bind",
        "[Install]",
        f"WantedBy=multi-user.target {FOLDERS[folder]}.service",
    )
    return ("\n".join(lines) + "\n").encode()


def _elsewhere(context: Context) -> Optional[str]:
    """Folder that others have moved already; it stays."""
    mounts = _mounts(context)
    for folder in FOLDERS:
        path = context.path(folder)
        if path.is_symlink() or (folder in mounts and not _is_ours(context, folder)):
            return folder
    return None


def _is_ours(context: Context, folder: str) -> bool:
    return is_written(context.path(f"{_UNITS}/{_unit_name(folder)}"), _unit(folder))


def _is_bound(context: Context, folder: str) -> bool:
    return _is_ours(context, folder) and folder in _mounts(context)


def check(context: Context) -> bool:
    if VOLUME not in _mounts(context):
        return not context.has_volume
    return _elsewhere(context) is not None or all(_is_bound(context, folder) for folder in FOLDERS)


def apply(context: Context) -> None:
    if not wait_until(lambda: VOLUME in _mounts(context), timeout_s=_WAIT_S):
        return  # verify says it; pods run without the volume too
    expected = [folder for folder in FOLDERS if not _is_bound(context, folder)]
    running = [unit for unit in ("containerd", "kubelet") if is_active(unit)]
    for unit in reversed(running):
        stop(unit)
    try:
        for folder in expected:
            _bind(context, folder)
    finally:
        for unit in running:
            start(unit)


def _bind(context: Context, folder: str) -> None:
    source, place = context.path(folder), context.path(_place(folder))
    source.mkdir(parents=True, exist_ok=True)
    place.parent.mkdir(exist_ok=True)
    if not _is_ours(context, folder):
        # What an interrupted run has left is copied once more: nothing is used there before the unit is written.
        run_program("rm", "-rf", str(place))
        run_program("cp", "-a", str(source), str(place), timeout_s=_COPY_S)
        write_whole(context.path(f"{_UNITS}/{_unit_name(folder)}"), _unit(folder))
        run_program("systemctl", "daemon-reload")
    start(_unit_name(folder))


def verify(context: Context) -> str:
    if VOLUME not in _mounts(context):
        asked = f"not mounted after {_WAIT_S:g} s" if context.has_volume else "not requested"
        return f"a volume at {VOLUME} is {asked}: images and pods are on the root volume"
    elsewhere = _elsewhere(context)
    if elsewhere is not None:
        return f"{elsewhere} is already in another place, and stays there"
    missing = [folder for folder in FOLDERS if not _is_bound(context, folder)]
    if missing:
        raise StepError(
            expected=f"{' and '.join(FOLDERS)} are on the volume at {VOLUME}",
            seen=f"not bound: {', '.join(missing)}",
            action=f"read 'systemctl status {_unit_name(missing[0])}' on this node",
        )
    return f"{' and '.join(FOLDERS)} are on the volume at {VOLUME}"
