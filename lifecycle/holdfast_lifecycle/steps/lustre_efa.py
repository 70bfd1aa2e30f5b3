"""
Lustre uses the node's EFA devices, where a file system has EFA; otherwise the step says why not.

The commands are those of the FSx for Lustre user guide, "Configuring EFA clients", which offers them as a download.
Here they are a unit of the node: a closed network cannot download it, and only reviewed code runs. Like AWS's sample
for EKS, this step continues over TCP where EFA cannot be set up, with a remark.
"""

from typing import Optional

from holdfast_lifecycle.model import Context, StepError, interfaces
from holdfast_lifecycle.node import find_program, has_program, is_active, is_written, run_program, start, write_whole

UNIT = "holdfast-lustre-efa"
_UNITS = "/etc/systemd/system"
_DEVICES = "/sys/class/infiniband"
_EIGHT = ("p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "p6e-gb200.36xlarge")
"""Types with eight interfaces for Lustre; others with several get two (the guide, "Step 3: EFA interfaces"): a file
system takes 1024 of them from all its clients."""
_EXCLUDED = ("trn2",)
"""The guide: "excluding the trn2 instance family"."""


def devices(context: Context) -> list[str]:
    """EFA devices for Lustre, spread over all."""
    folder = context.path(_DEVICES)
    found = sorted(path.name for path in folder.iterdir() if _is_efa(context, path.name)) if folder.is_dir() else []
    kind = context.instance_type[len("ml.") :] if context.instance_type.startswith("ml.") else context.instance_type
    if not found or kind.startswith(_EXCLUDED):
        return []
    count = min(len(found), 8 if kind in _EIGHT else 2)
    return [found[index * len(found) // count] for index in range(count)]


def _is_efa(context: Context, name: str) -> bool:
    driver = context.path(f"{_DEVICES}/{name}/device/driver")
    return driver.exists() and driver.resolve().name == "efa"


def _why_not(context: Context) -> Optional[str]:
    if not context.lustre_efa:
        return "no file system with EFA"
    if not devices(context):
        return "no EFA device usable by Lustre"
    if not (has_program("lnetctl") and has_program("modprobe")):
        return "Lustre is mounted over TCP: the AMI has no Lustre client (lnetctl)"
    return None


def _unit(context: Context) -> bytes:
    modprobe, lnetctl = find_program("modprobe"), find_program("lnetctl")
    interface = interface_of(context.address)
    commands = [
        f"{modprobe} lnet",
        f"{modprobe} kefalnd ipif_name={interface}",
        f"{modprobe} ksocklnd",
        f"{lnetctl} lnet configure",
        f"-{lnetctl} net del --net tcp",
        f"{lnetctl} net add --net tcp --if {interface}",
        *(f"{lnetctl} net add --net efa --if {device} --peer-credits 32" for device in devices(context)),
        f"{lnetctl} set discovery 1",
        f"{lnetctl} udsp add --src efa --priority 0",
        f"{modprobe} lustre",
    ]
    lines = (
        "# Written by Holdfast.",
        "[Unit]",
        "Description=EFA interfaces for Lustre",
        "Wants=network-online.target",
        "After=network-online.target",
        "Before=kubelet.service",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        *(f"ExecStart={command}" for command in commands),
        "[Install]",
        "WantedBy=multi-user.target",
    )
    return ("\n".join(lines) + "\n").encode()


def interface_of(address: str) -> str:
    for name, found in interfaces():
        if found == address:
            return name
    raise StepError(
        expected=f"an interface of this node has the address {address}",
        seen="none has",
        action="run the lifecycle again: resource_config.json may be of another node",
    )


def check(context: Context) -> bool:
    if _why_not(context) is not None:
        return True
    return is_written(context.path(f"{_UNITS}/{UNIT}.service"), _unit(context)) and is_active(UNIT)


def apply(context: Context) -> None:
    write_whole(context.path(f"{_UNITS}/{UNIT}.service"), _unit(context))
    run_program("systemctl", "daemon-reload")
    try:
        start(UNIT)
    except StepError:
        return  # verify says it; pods mount over TCP


def verify(context: Context) -> str:
    why_not = _why_not(context)
    if why_not is not None:
        return why_not
    if not is_active(UNIT):
        return f"Lustre is mounted over TCP: {UNIT} failed, see 'journalctl -u {UNIT}' on this node"
    return f"Lustre over {', '.join(devices(context))}"
