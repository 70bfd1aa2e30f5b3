"""
slurm.conf, rendered from the cluster. Pure.

HyperPod owns ClusterName, SlurmctldHost, NodeName and PartitionName ("What particular configurations HyperPod manages
in Slurm configuration files", SageMaker developer guide) and TopologyPlugin ("Dynamic topology updates", same guide);
other lines belong to users once written. Timeouts are those of a development cluster: the control plane notices a lost
node before Slurm does.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.catalog import instance_types
from holdfast.localcloud.hyperpod.model import Cluster, Group, Instance
from holdfast.localcloud.hyperpod.slurm.topology import topology_plugin
from holdfast.localcloud.image import DEVICES, MOST_GPUS

FOLDER = "/opt/slurm/etc"
SLURM_CONF = f"{FOLDER}/slurm.conf"
GRES_CONF = f"{FOLDER}/gres.conf"
PLUGSTACK_CONF = f"{FOLDER}/plugstack.conf"
TOPOLOGY_CONF = f"{FOLDER}/topology.conf"
ACCOUNTING_CONF = f"{FOLDER}/accounting.conf"
DEFAULT_PARTITION = "dev"
"""Has every node, whatever other partition it is in (same guide, SlurmConfig)."""
OWNED = ("ClusterName=", "SlurmctldHost=", "TopologyPlugin=", "NodeName=", "PartitionName=")
NO_NODES = '""'
GPU = "gpu"
STARTING_REASON = "lifecycle scripts are running"
EXPEDITED_REQUEUE_SINCE = (25, 11)
"""Version of Slurm (slurm.conf(5), SlurmctldParameters)."""
_MIB_PER_GIB = 1024
_VCPUS_OF_TWO_SOCKETS = 96
"""Assumed: a p5.48xlarge has two sockets; EC2 documents none."""

_SETTINGS = (
    "SlurmUser=slurm",  # AWS's scripts give slurmdbd.conf to this user
    "SlurmdUser=root",
    # A requeued job waits until its old credential has expired; the default is 120 s, under 10 is refused.
    "AuthType=auth/munge",
    "AuthInfo=cred_expire=10",
    "StateSaveLocation=/var/spool/slurmctld",
    "SlurmdSpoolDir=/var/spool/slurmd",
    "SlurmctldPidFile=/run/slurm/slurmctld.pid",
    "SlurmdPidFile=/run/slurm/slurmd.pid",
    "SlurmctldLogFile=/var/log/slurm/slurmctld.log",
    "SlurmdLogFile=/var/log/slurm/slurmd.log",
    "MailProg=/bin/true",
    "MpiDefault=none",
    "SelectType=select/cons_tres",
    "SelectTypeParameters=CR_Core",
    "ProctrackType=proctrack/linuxproc",
    # HyperPod's auto-resume works with this task plugin only.
    "TaskPlugin=task/none",
    # A node has the CPUs and the memory of its instance type, whatever this machine has.
    "SlurmdParameters=config_overrides",
    "SchedulerParameters=permit_job_expansion,batch_sched_delay=0,sched_interval=5,bf_interval=5",
    "ReturnToService=2",
    "JobRequeue=1",
    "SlurmdTimeout=30",
    "SlurmctldTimeout=30",
    "MessageTimeout=5",
    "TCPTimeout=2",
    "BatchStartTimeout=10",
    # HyperPod's, by "Job step aborted: Waiting up to 32 seconds" in AWS's log of an auto-resume: srun waits 2 s longer.
    "KillWait=30",
    "InactiveLimit=0",
    "UnkillableStepTimeout=60",  # Slurm's default
    "TreeWidth=64",
    "JobCompType=jobcomp/none",
    "PropagateResourceLimits=ALL",  # Slurm's default
    "DebugFlags=NO_CONF_HASH",
    # Slurm's daemons take it up at their start only, so that a group with GPUs may come later.
    f"GresTypes={GPU}",
    "include accounting.conf",  # a comment until accounting is configured; relative, or compute nodes get none
)


@dataclass(frozen=True, kw_only=True)
class MachineSize:
    """Size of every instance; for Slurm, where its type is not in the catalog."""

    cpus: int
    memory_mib: int
    slurm: tuple[int, int] = (22, 5)
    """Version of the Slurm that is installed."""


def slurm_conf(cluster: Cluster, *, machine: MachineSize, without: Iterable[str] = ()) -> str:
    """Return the file, without lines for these ids. Raise ValueError without exactly one controller."""
    controllers = cluster.with_role("Controller")
    if len(controllers) != 1:
        raise ValueError(
            f"cluster {cluster.name} has {len(controllers)} Slurm controller instances; exactly 1 is allowed"
        )
    gone = frozenset(without)
    compute = [one for one in cluster.with_role("Compute") if one.instance_id not in gone]
    types = [group.instance_type for group in cluster.groups if group.slurm_role == "Compute"]
    plugin = topology_plugin(types, slurm=machine.slurm) if compute else ""
    lines = [
        f"ClusterName={cluster.name}",
        f"SlurmctldHost={controllers[0].host_name}({controllers[0].address})",
        *_SETTINGS,
        f"SlurmctldParameters={','.join(_controller_parameters(machine.slurm))}",
        *([f"TopologyPlugin={plugin}"] if plugin else ()),
        *(_node(one, group=cluster.group(one.group), machine=machine) for one in compute),
        *_partitions(cluster, compute=compute),
    ]
    return "\n".join(lines) + "\n"


def _controller_parameters(version: tuple[int, int]) -> Iterator[str]:
    yield "enable_configless"
    if version >= EXPEDITED_REQUEUE_SINCE:
        yield "enable_expedited_requeue"


def _node(instance: Instance, *, group: Group, machine: MachineSize) -> str:
    gpus = _gpus(group)
    gres = f"Gres={GPU}:{gpus} " if gpus else ""
    return (
        f"NodeName={instance.host_name} NodeAddr={instance.address} {_size(group, machine=machine)} {gres}State=UNKNOWN"
    )


def _size(group: Group, *, machine: MachineSize) -> str:
    """Return CPUs and memory of the instance type, as ``scontrol show node`` of HyperPod has them of a p5.48xlarge."""
    known = instance_types().get(group.instance_type)
    if known is None:
        return f"CPUs={machine.cpus} RealMemory={machine.memory_mib}"
    cores = known.vcpus // known.threads_per_core
    threads = min(group.threads_per_core, known.threads_per_core)
    sockets = 2 if known.vcpus >= _VCPUS_OF_TWO_SOCKETS else 1
    return (
        f"CPUs={cores * threads} Sockets={sockets} CoresPerSocket={cores // sockets} ThreadsPerCore={threads} "
        f"RealMemory={known.memory_gib * _MIB_PER_GIB}"
    )


def _gpus(group: Group) -> int:
    """Return GPUs of the instance type: Slurm counts them and assigns numbers."""
    known = instance_types().get(group.instance_type)
    if known is None or known.accelerator.startswith("Trainium"):
        return 0
    return min(known.accelerators, MOST_GPUS)


def gres_conf(cluster: Cluster) -> str:
    """Return gres.conf, a line for each node with GPUs. Configless Slurm distributes it."""
    counted = ((one, _gpus(cluster.group(one.group))) for one in cluster.with_role("Compute"))
    return "".join(
        f"NodeName={one.host_name} Name={GPU} File={DEVICES}{f'[0-{count - 1}]' if count > 1 else '0'}\n"
        for one, count in counted
        if count
    )


def _partitions(cluster: Cluster, *, compute: Sequence[Instance]) -> list[str]:
    members: dict[str, list[str]] = {DEFAULT_PARTITION: [one.host_name for one in compute]}
    for group in cluster.groups:
        if group.slurm_role != "Compute":
            continue
        for partition in group.partitions:
            if partition == DEFAULT_PARTITION:
                continue
            names = members.setdefault(partition, [])
            names.extend(one.host_name for one in compute if one.group == group.name)
    return [
        f"PartitionName={partition} Nodes={','.join(names) or NO_NODES} Default={'NO' if number else 'YES'} "
        "MaxTime=INFINITE State=UP"
        for number, (partition, names) in enumerate(members.items())
    ]


def merged(*, present: str, desired: str) -> str:
    """Return ``present`` with the owned lines of ``desired`` at the end; all of ``desired`` if it is empty."""
    if not present.strip():
        return desired
    kept = [line for line in present.splitlines() if not _is_owned(line)]
    return "\n".join([*kept, *owned_lines(desired)]) + "\n"


def owned_lines(conf: str) -> list[str]:
    return [line for line in conf.splitlines() if _is_owned(line)]


def _is_owned(line: str) -> bool:
    return line.lstrip().lower().startswith(tuple(key.lower() for key in OWNED))


def accounting_conf(*, host: str) -> str:
    """Return accounting.conf for a slurmdbd on this host, with the keys of AWS's setup_mariadb_accounting.sh."""
    lines = (
        "JobAcctGatherType=jobacct_gather/linux",
        "JobAcctGatherFrequency=30",
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={host}",
        "AccountingStoragePort=6819",
        f"AccountingStorageTRES=gres/{GPU}",
    )
    return "\n".join(lines) + "\n"


def node_names(conf: str) -> frozenset[str]:
    return frozenset(
        line.split()[0].removeprefix("NodeName=") for line in conf.splitlines() if line.startswith("NodeName=")
    )
