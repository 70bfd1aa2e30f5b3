"""Supervision of long-running processes: threads, HTTP servers, failures, progress files, garbage collection."""

from holdfast.localcloud.supervision.batch import Batcher
from holdfast.localcloud.supervision.complaints import Complaints
from holdfast.localcloud.supervision.http_service import MOST_CONNECTIONS, HttpService, RequestHandler
from holdfast.localcloud.supervision.log_lines import LineFormatter, start_log
from holdfast.localcloud.supervision.passes import Pass, Passes, ProcessPasses, json_of_passes, passes_path, read_passes
from holdfast.localcloud.supervision.together import together
from holdfast.localcloud.supervision.worker import Worker

__all__ = [
    "MOST_CONNECTIONS",
    "Batcher",
    "Complaints",
    "HttpService",
    "LineFormatter",
    "Pass",
    "Passes",
    "ProcessPasses",
    "RequestHandler",
    "Worker",
    "json_of_passes",
    "passes_path",
    "read_passes",
    "start_log",
    "together",
]
