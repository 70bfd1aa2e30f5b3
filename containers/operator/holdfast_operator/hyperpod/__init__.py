"""
HyperPodPyTorchJob, the kind of AWS's training operator, run as a HoldfastJob. Pure.

Fields: the model of AWS's command line 3.12.0 (``hyperpod_pytorch_job_unified_config.py``) and the developer guide,
"Using the training operator to run jobs", both read 2026-11-29. Neither shows the schema of AWS's own definition.
"""

from holdfast_operator.hyperpod.kind import API, DEFINITION, KIND, PLURAL
from holdfast_operator.hyperpod.mistakes import hyperpod_mistakes
from holdfast_operator.hyperpod.status import hyperpod_status
from holdfast_operator.hyperpod.translation import child_name, grown_size, to_holdfast_job, without_effect

__all__ = [
    "API",
    "DEFINITION",
    "KIND",
    "PLURAL",
    "child_name",
    "grown_size",
    "hyperpod_mistakes",
    "hyperpod_status",
    "to_holdfast_job",
    "without_effect",
]
