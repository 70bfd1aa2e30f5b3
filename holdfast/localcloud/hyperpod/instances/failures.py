"""Known failures of instances; other errors are faults of the control plane."""

import subprocess

from botocore.exceptions import BotoCoreError, ClientError

from holdfast.localcloud.hyperpod.lifecycle import LifecycleError
from holdfast.localcloud.hyperpod.slurm import SlurmError
from holdfast.localcloud.nodes import NodeError

KNOWN_FAILURES = (
    NodeError,
    SlurmError,
    LifecycleError,
    ClientError,
    BotoCoreError,
    OSError,
    subprocess.SubprocessError,
)
