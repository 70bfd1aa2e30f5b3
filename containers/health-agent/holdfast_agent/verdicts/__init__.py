"""
Verdicts on signals: pure, without clock, file, process or network, so that all can be replayed.

Log lines become records (``LogReader``, ``parse_kmsg``), records signals (``Recognizer``), and signals verdicts
(``Engine``), by rows of data (``Policy``).
"""

from holdfast_agent.verdicts.engine import Engine, SnapshotError
from holdfast_agent.verdicts.forms import LogReader, parse_kmsg
from holdfast_agent.verdicts.history import History
from holdfast_agent.verdicts.nvidia import same_device
from holdfast_agent.verdicts.policy import Policy, Row
from holdfast_agent.verdicts.recognizer import Recognizer, is_worth_a_look
from holdfast_agent.verdicts.record import Record, recorded
from holdfast_agent.verdicts.stamps import rfc_3339, since_boot
from holdfast_agent.verdicts.verdict import Evidence, Verdict

__all__ = [
    "Engine",
    "Evidence",
    "History",
    "LogReader",
    "Policy",
    "Recognizer",
    "Record",
    "Row",
    "SnapshotError",
    "Verdict",
    "is_worth_a_look",
    "parse_kmsg",
    "recorded",
    "rfc_3339",
    "same_device",
    "since_boot",
]
