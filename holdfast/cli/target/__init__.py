"""Which cluster a command speaks of: the one that ``holdfast up`` recorded, or any that AWS can be asked about."""

from ._locate import CLUSTER, ENVIRONMENT, PROFILE, REGION, check_region, locate
from ._remote import refuse_on_aws

__all__ = ["CLUSTER", "ENVIRONMENT", "PROFILE", "REGION", "check_region", "locate", "refuse_on_aws"]
