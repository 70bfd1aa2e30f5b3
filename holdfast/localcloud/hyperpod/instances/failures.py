"""What is known to go wrong with an instance; anything else is a fault of the control plane."""

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
