"""Accounting database of a Slurm cluster."""

from holdfast_constructs.slurm.accounting import SlurmAccountingDatabase

__all__ = ["SlurmAccountingDatabase"]
