"""
Shared by all parts of Holdfast: event schema, timelines, fault taxonomy, lending, trust in Kubernetes.

Standard library only and Python 3.9, because it runs on nodes before anything is installed: Amazon Linux 2023, of which
HyperPod's EKS nodes are made, has no newer one.
"""

from holdfast_common import kinds, node_socket, slurm_answers
from holdfast_common.decisions import Elastic, Waiting, elastic_nodes, shares
from holdfast_common.detectors_lost import LostDetector, LostDetectors, lost_detectors
from holdfast_common.events import Event, ParsedEvents, detail_step, is_of_stream, of_job, parse_events
from holdfast_common.faults import FAULTS, Fault, Remedy, Severity, When, fault_named
from holdfast_common.incidents import Incident, RemedyStep, Sighting, State
from holdfast_common.kubernetes import (
    JOB_API,
    JOB_GROUP,
    JOB_INDEX_LABEL,
    JOB_KIND,
    JOB_LABEL,
    JOB_PLURAL,
    JOB_VERSION,
    NODE_HEALTH_LABEL,
    ClusterAccess,
    KubernetesClient,
    KubernetesError,
    kubernetes_trust,
)
from holdfast_common.lease import Lease
from holdfast_common.log import (
    EventLog,
    dropped_event,
    events_counted,
    events_log_group,
    instance_id,
    job_name,
    log_of_jobs,
    stream_of_jobs,
)
from holdfast_common.ordered import OrderedEvents, Problems, StoredEvents, in_order
from holdfast_common.schema import SOURCES, VERSION, Detail, EventError
from holdfast_common.stories import Stall
from holdfast_common.texts import closest_word, plain, visible
from holdfast_common.timelines import IncidentReader, JobReader, JobTimeline, Phase, Timeline, timeline

__all__ = [
    "FAULTS",
    "JOB_API",
    "JOB_GROUP",
    "JOB_INDEX_LABEL",
    "JOB_KIND",
    "JOB_LABEL",
    "JOB_PLURAL",
    "JOB_VERSION",
    "NODE_HEALTH_LABEL",
    "SOURCES",
    "VERSION",
    "ClusterAccess",
    "Detail",
    "Elastic",
    "Event",
    "EventError",
    "EventLog",
    "Fault",
    "Incident",
    "IncidentReader",
    "JobReader",
    "JobTimeline",
    "KubernetesClient",
    "KubernetesError",
    "Lease",
    "LostDetector",
    "LostDetectors",
    "OrderedEvents",
    "ParsedEvents",
    "Phase",
    "Problems",
    "Remedy",
    "RemedyStep",
    "Severity",
    "Sighting",
    "Stall",
    "State",
    "StoredEvents",
    "Timeline",
    "Waiting",
    "When",
    "closest_word",
    "detail_step",
    "dropped_event",
    "elastic_nodes",
    "events_counted",
    "events_log_group",
    "fault_named",
    "in_order",
    "instance_id",
    "is_of_stream",
    "job_name",
    "kinds",
    "kubernetes_trust",
    "log_of_jobs",
    "lost_detectors",
    "node_socket",
    "of_job",
    "parse_events",
    "plain",
    "shares",
    "slurm_answers",
    "stream_of_jobs",
    "timeline",
    "visible",
]
