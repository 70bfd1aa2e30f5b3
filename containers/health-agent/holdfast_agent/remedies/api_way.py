"""Requests by HyperPod's API: BatchRebootClusterNodes, BatchReplaceClusterNodes, for this instance only."""

from holdfast_agent.aws import Api, AwsError
from holdfast_agent.remedies.settings import RemedySettings
from holdfast_agent.remedies.slurm_ways import RefusedError

OPERATIONS = {"reboot": "BatchRebootClusterNodes", "replace": "BatchReplaceClusterNodes"}
_PASSING = ("InternalServerError", "ThrottlingException")


class ApiAsker:
    def __init__(self, *, settings: RemedySettings, api: Api) -> None:
        self._api, self._cluster, self._instance = api, settings.cluster, settings.instance_id

    def ask(self, remedy: str) -> None:
        """Raises AwsError, and RefusedError where it is in progress or forbidden."""
        if not self._instance or not self._cluster:
            raise RefusedError("remedies.way api needs node.instance_id and cluster.name; set both")
        answer = self._api.call(OPERATIONS[remedy], ClusterName=self._cluster, NodeIds=[self._instance])
        for failed in answer.get("Failed") or []:
            code, why = str(failed.get("ErrorCode", "")), str(failed.get("Message", ""))
            if code in _PASSING:
                raise AwsError(code, why)
            raise RefusedError(f"{code}: {why}", in_use=code == "InstanceIdInUse")
        if self._instance not in (answer.get("Successful") or []):
            raise AwsError("NoAnswer", f"{OPERATIONS[remedy]} returned no result for {self._instance}")

    def force(self, remedy: str) -> None:
        self.ask(remedy)
