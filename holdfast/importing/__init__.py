"""What is in AWS, read back: the environment of a stack, and environment files from clusters that are there."""

from holdfast.importing._deployed import Deployed, deployed_environment
from holdfast.importing._environment import from_observed, from_samples
from holdfast.importing._imported import Imported, Note, render
from holdfast.importing._keeping import PARTS, Part
from holdfast.importing._observed import Observed, read_cluster

__all__ = [
    "PARTS",
    "Deployed",
    "Imported",
    "Note",
    "Observed",
    "Part",
    "deployed_environment",
    "from_observed",
    "from_samples",
    "read_cluster",
    "render",
]
