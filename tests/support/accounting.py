"""A line of Slurm's accounting, as sacct prints it for the command line."""

from holdfast.cli.slurm import DELIMITER, SACCT_FIELDS


def sacct_line(**changes: str) -> str:
    """A job that completed on one node; ``changes`` by the name of the field, such as ``State``."""
    said = {
        "JobID": "7", "JobIDRaw": "7", "State": "COMPLETED", "ExitCode": "0:0", "Submit": "1795371912",
        "Start": "1795371913", "End": "1795371915", "ElapsedRaw": "2", "NodeList": "ip-10-1-0-4", "User": "ubuntu",
        "WorkDir": "/fsx", "SubmitLine": "sbatch x", "JobName": "x", **changes,
    }  # fmt: skip
    return DELIMITER.join(said[field] for field in SACCT_FIELDS)
