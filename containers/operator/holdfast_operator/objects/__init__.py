"""Objects of the API server: facts from pods and nodes; pods, Service and Secret of a job. Pure."""

from holdfast_operator.objects.beside import secret_of, service_of
from holdfast_operator.objects.facts import node_facts, owner_uid, pod_facts
from holdfast_operator.objects.pods import METRICS_PORT, pod_of, selector_of
from holdfast_operator.objects.queue import QUEUE_FINALIZER, is_held

__all__ = [
    "METRICS_PORT",
    "QUEUE_FINALIZER",
    "is_held",
    "node_facts",
    "owner_uid",
    "pod_facts",
    "pod_of",
    "secret_of",
    "selector_of",
    "service_of",
]
