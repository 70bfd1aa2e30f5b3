"""Slurm of HyperPod's image: /opt/slurm and its units. Texts only."""

SETTINGS = "/opt/slurm/etc"
COMMANDS = (
    "sacct", "sacctmgr", "salloc", "sattach", "sbatch", "sbcast", "scancel", "scontrol", "scrontab", "sdiag", "sinfo",
    "sprio", "squeue", "sreport", "srun", "sshare", "sstat", "strigger",
)  # fmt: skip
DAEMONS = ("slurmctld", "slurmd", "slurmdbd", "slurmstepd", "slurmrestd")

OPEN_MPI = "/opt/amazon/openmpi"
"""Where the EFA installer of the AMI puts it; a job that names this place gets the machine's own."""
MPI_PROGRAMS = (
    "mpic++", "mpicc", "mpicxx", "mpiexec", "mpif90", "mpifort", "mpirun", "ompi_info", "orted", "orterun", "prte",
    "prted", "prterun",
)  # fmt: skip

NO_ACCOUNTING = "# Accounting is not configured.\n"
"""accounting.conf without accounting. Newer commands reject an empty included file."""

SLURMD = """\
#!/bin/sh
# What it starts, jobs above all, cannot become root by programs with the set-user-ID bit, such as sudo.
exec setpriv --no-new-privs -- /usr/sbin/slurmd "$@"
"""

SLURMDBD_TEMPLATE = """\
AuthType=auth/munge
DbdHost=localhost
DbdPort=6819
SlurmUser=slurm
DebugLevel=info
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/var/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StoragePort=3306
StorageUser=${SLURM_DB_USER}
StoragePass=${SLURM_DB_PASSWORD}
StorageLoc=slurm_acct_db
"""
"""Settings of slurmdbd.conf(5); base-config fills the two variables with envsubst. The rest of the file is assumed."""

_UNIT = """\
[Unit]
Description={description}
After=network-online.target munge.service{after}
Wants=network-online.target
{condition}{limit}
[Service]
Type=simple
EnvironmentFile=-/etc/default/{name}
ExecStart=/opt/slurm/sbin/{name} -D -s {arguments}
ExecReload=/bin/kill -HUP $MAINPID
{settings}TasksMax=infinity

[Install]
WantedBy=multi-user.target
"""
"""Slurm 22.05's etc/slurmctld.service.in and its kin."""


def cgroup_conf(version: tuple[int, int]) -> str:
    """Return cgroup.conf for nodes without cgroups for Slurm; before 24.05 a plugin has to be named."""
    return f"CgroupPlugin={'disabled' if version >= (24, 5) else 'cgroup/v1'}\n"


def units() -> dict[str, str]:
    slurmctld = _UNIT.format(
        name="slurmctld",
        description="Slurm controller daemon",
        after="",
        condition=f"ConditionPathExists={SETTINGS}/slurm.conf\n",
        limit="",
        arguments="$SLURMCTLD_OPTIONS",
        settings="LimitNOFILE=65536\n",
    )
    # -b: a node shares the machine's uptime, and slurmctld would never believe that it was rebooted.
    # Exit status 1: a slurmd without configuration asks its controller again since Slurm 23.02, which HyperPod has;
    # before, it ends. A killed one stays down.
    slurmd = _UNIT.format(
        name="slurmd",
        description="Slurm node daemon",
        after=" remote-fs.target",
        condition="",
        limit="StartLimitIntervalSec=600\nStartLimitBurst=60\n",
        arguments="-b $SLURMD_OPTIONS",
        settings="RestartForceExitStatus=1\nRestartSec=5\nKillMode=process\nLimitNOFILE=131072\nLimitMEMLOCK=infinity\nLimitSTACK=infinity\nDelegate=yes\n",
    )
    slurmdbd = _UNIT.format(
        name="slurmdbd",
        description="Slurm DBD accounting daemon",
        after=" mysql.service mysqld.service mariadb.service",
        condition=f"ConditionPathExists={SETTINGS}/slurmdbd.conf\n",
        limit="",
        arguments="$SLURMDBD_OPTIONS",
        settings="LimitNOFILE=65536\n",
    )
    return {"slurmctld": slurmctld, "slurmd": slurmd, "slurmdbd": slurmdbd}


LOGROTATE = """\
"/var/log/slurm/*.log" {
    rotate 2
    size 50M
    copytruncate
    nocompress
    missingok
    notifempty
    sharedscripts
    postrotate
        pkill -x --signal SIGUSR2 slurmctld
        pkill -x --signal SIGUSR2 slurmd
        pkill -x --signal SIGUSR2 slurmdbd
        exit 0
    endscript
}
"""
"""sagemaker-hyperpod-slurm-log-rotation.md: 50 MB, two old files, copytruncate; slurmctld(8) reopens on SIGUSR2."""
