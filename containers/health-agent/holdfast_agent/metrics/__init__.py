"""
Prometheus metrics of the agent: scraped, or sent by remote write.

Names are those of DCGM's exporter and of the node exporter where the meaning is the same, so existing dashboards work.
"""

from holdfast_agent.metrics.names import NAMES
from holdfast_agent.metrics.remote_write import compressed, write_request
from holdfast_agent.metrics.sender import Sender
from holdfast_agent.metrics.server import MetricsServer, read_token
from holdfast_agent.metrics.text import exposition

__all__ = [
    "NAMES",
    "MetricsServer",
    "Sender",
    "compressed",
    "exposition",
    "read_token",
    "write_request",
]
