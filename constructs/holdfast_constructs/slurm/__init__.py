"""
What a Slurm cluster has outside of its nodes: the accounting database. How Slurm is configured is left to cluster. It
stands apart because loading RDS takes time: nothing in here may import it.
"""

from holdfast_constructs.slurm.accounting import SlurmAccountingDatabase

__all__ = ["SlurmAccountingDatabase"]
