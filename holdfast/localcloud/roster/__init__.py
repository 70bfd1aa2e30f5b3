"""Processes of the local system: place, detection of loss, restart. Data."""

from holdfast.localcloud.roster.model import Place, SystemProcess
from holdfast.localcloud.roster.processes import EVERY, LOOP, at, named, upkept

__all__ = ["EVERY", "LOOP", "Place", "SystemProcess", "at", "named", "upkept"]
