"""Driver: watches, one decision after another, its writes to the API server, lease, admission."""

from holdfast_operator.driver.admission import AdmissionServer, answer_to, pod_trial
from holdfast_operator.driver.cache import Cache
from holdfast_operator.driver.cluster import hyperpod_jobs_path, run_key
from holdfast_operator.driver.hyperpod import ForeignDefinitionError, HyperPodReconciler, check_definition
from holdfast_operator.driver.logs import Logs
from holdfast_operator.driver.matcher import Matcher, SlowPatternError
from holdfast_operator.driver.progress import ProgressReader
from holdfast_operator.driver.reconciler import Reconciler
from holdfast_operator.driver.service import run

__all__ = [
    "AdmissionServer",
    "Cache",
    "ForeignDefinitionError",
    "HyperPodReconciler",
    "Logs",
    "Matcher",
    "ProgressReader",
    "Reconciler",
    "SlowPatternError",
    "answer_to",
    "check_definition",
    "hyperpod_jobs_path",
    "pod_trial",
    "run",
    "run_key",
]
