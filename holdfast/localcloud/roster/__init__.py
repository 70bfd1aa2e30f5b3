"""Every process of the local system: where it runs, what notices its loss, and what restarts it. Data."""

from holdfast.localcloud.roster.model import Place, SystemProcess
from holdfast.localcloud.roster.processes import EVERY, at, named, upkept

__all__ = ["EVERY", "Place", "SystemProcess", "at", "named", "upkept"]
