"""Poll of the cluster: Slurm, the service and CloudWatch Logs, each with its own deadline."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from holdfast_agent.aws import Api, AwsError
from holdfast_agent.controller.observation import HmaRecord, Instance, Observation
from holdfast_agent.slurm import Program, SlurmError, SlurmNode, parse_nodes
from holdfast_common import events_log_group

RESOURCE_CONFIG = Path("/opt/ml/config/resource_config.json")
OWN_STREAM = "control-plane"
"""Stream of a rehearsal's control plane; it does not exist on AWS."""
_STREAMS = "SagemakerHealthMonitoringAgent/"
_PATTERN = '"HealthMonitoringAgentDetectionEvent"'
OVERLAP_MS = 120_000
"""Lines of many streams do not arrive in order."""
ASKED_AGAIN_S = 300.0
_MOST_PAGES = 20


class ClusterPoller:
    """Polls the cluster; for a single thread. ``resource_config`` is HyperPod's file with the cluster's id."""

    def __init__(
        self,
        *,
        cluster: str,
        sagemaker: Api,
        logs: Api,
        program: Program,
        resource_config: Path = RESOURCE_CONFIG,
        with_slurm: bool = True,
    ) -> None:
        self._cluster, self._sagemaker, self._logs = cluster, sagemaker, logs
        self._program, self._resource_config, self._with_slurm = program, resource_config, with_slurm
        self._group = ""
        self._from_ms = 0
        self._has_events: Optional[bool] = None
        self._events_asked_s = float("-inf")

    def look(self, *, boot_s: float) -> Observation:
        problems: list[str] = []
        return Observation(
            boot_s=boot_s,
            has_control_plane_events=self._tried(self._has_control_plane_events, problems),
            instances=self._tried(self._instances, problems),
            nodes=self._tried(self._nodes, problems) if self._with_slurm else None,
            records=self._tried(self._records, problems),
            problems=tuple(problems),
        )

    @staticmethod
    def _tried(work: Callable[[], Any], problems: "list[str]") -> Any:
        try:
            return work()
        except (AwsError, SlurmError, OSError, ValueError, KeyError, TypeError) as error:
            problems.append(f"{type(error).__name__}: {error}"[:300])
            return None

    def _has_control_plane_events(self) -> bool:
        """True if a control plane writes the events of nodes; checked from time to time, since it may start later."""
        if self._has_events or time.monotonic() - self._events_asked_s < ASKED_AGAIN_S:
            return bool(self._has_events)
        try:
            stream = {"logGroupName": events_log_group(self._cluster), "logStreamName": OWN_STREAM}
            found = bool(self._logs.call("GetLogEvents", **stream, limit=1, startFromHead=True).get("events"))
        except AwsError as error:
            if error.code != "ResourceNotFoundException":
                raise
            found = False
        self._has_events, self._events_asked_s = found, time.monotonic()
        return found

    def _instances(self) -> "tuple[Instance, ...]":
        found: list[Instance] = []
        token = ""
        for _ in range(_MOST_PAGES):
            more = {"NextToken": token} if token else {}
            answer = self._sagemaker.call("ListClusterNodes", ClusterName=self._cluster, MaxResults=100, **more)
            for one in answer.get("ClusterNodeSummaries") or []:
                status = one.get("InstanceStatus") or {}
                found.append(
                    Instance(
                        instance_id=str(one["InstanceId"]),
                        group=str(one["InstanceGroupName"]),
                        status=str(status.get("Status", "")),
                        host=str(one.get("PrivateDnsHostname") or "").partition(".")[0],
                        message=str(status.get("Message") or "")[:300],
                    )
                )
            token = str(answer.get("NextToken") or "")
            if not token:
                return tuple(found)
        raise ValueError(f"more than {100 * _MOST_PAGES} instances")

    def _nodes(self) -> "tuple[SlurmNode, ...]":
        return parse_nodes(self._program.run(["scontrol", "--oneliner", "show", "node"]))

    def _records(self) -> "tuple[HmaRecord, ...]":
        """New records only: those before the first poll are history."""
        self._from_ms = self._from_ms or int(self._logs.now_s() * 1000)
        found: list[HmaRecord] = []
        token, latest = "", self._from_ms
        for _ in range(_MOST_PAGES):
            more = {"nextToken": token} if token else {}
            try:
                answer = self._logs.call(
                    "FilterLogEvents",
                    logGroupName=self._log_group(),
                    logStreamNamePrefix=_STREAMS,
                    filterPattern=_PATTERN,
                    startTime=max(0, self._from_ms - OVERLAP_MS),
                    **more,
                )
            except AwsError as error:
                if error.code == "ResourceNotFoundException":
                    return ()
                raise
            for event in answer.get("events") or []:
                stream = str(event.get("logStreamName", ""))
                latest = max(latest, int(event.get("timestamp", 0)))
                if stream.startswith(_STREAMS):
                    instance = stream.rpartition("/")[2]
                    text, event_id = str(event.get("message", "")), str(event.get("eventId", ""))
                    found.append(HmaRecord(instance_id=instance, event_id=event_id, text=text))
            token = str(answer.get("nextToken") or "")
            if not token:
                break
        self._from_ms = latest
        return tuple(found)

    def _log_group(self) -> str:
        if not self._group:
            arn = json.loads(self._resource_config.read_bytes())["ClusterConfig"]["ClusterArn"]
            self._group = f"/aws/sagemaker/Clusters/{self._cluster}/{str(arn).rpartition('/')[2]}"
        return self._group
