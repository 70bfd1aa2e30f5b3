"""Accounting database of a Slurm cluster. Separate, because loading RDS takes time: no import from here."""

from holdfast_constructs.slurm.accounting import SlurmAccountingDatabase

__all__ = ["SlurmAccountingDatabase"]
