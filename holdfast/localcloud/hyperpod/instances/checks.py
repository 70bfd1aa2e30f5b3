"""Deep health checks of one instance, by the health agent or a short substitute: hold jobs, check, record."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.localcloud.hyperpod.logs import EventSink
from holdfast.localcloud.hyperpod.model import COMPUTE, RUNNING, Cluster, Instance
from holdfast.localcloud.hyperpod.slurm import SlurmClusters
from holdfast.localcloud.kubernetes import Clusters
from holdfast.localcloud.nodes import Node

STRESS = "InstanceStress"
AGENT = "/opt/holdfast/agent/bin/holdfast-agent"
NODE_LOG = "/var/log/aws/clusters/sagemaker-deep-health-check.log"
"""Log of AWS's checks on a node (field notes), as the stream ``DeepHealthCheckResults/<instance id>``."""
CHECK_TIMEOUT_S = 900.0
REACH_TIMEOUT_S = 3.0
FREE_WITHIN_S = 5.0
"""Longest wait for the end of jobs before the next decision."""
FREE_POLL_S = 0.5

_STRESS = """set -u
zeros=3b6a07d0d404fab4e23b6d34bc6696a6a312dd92821332385e5af7c01c421351
found=$(head -c 67108864 /dev/zero | sha256sum) || exit 2
[ "${found%% *}" = $zeros ] || { echo "processor: 64 MiB of zeros have the digest ${found%% *}"; exit 1; }
status=0
for place in /dev/shm /opt/sagemaker /var/tmp; do
    [ -d $place ] || continue
    one=$place/.deep-health-check.$$
    if ! { head -c 16777216 /dev/urandom > $one.a && cp $one.a $one.b && sync $one.a $one.b; } 2> $one.error; then
        echo "$place: cannot be written: $(cat $one.error)"; status=1
    elif ! cmp $one.a $one.b; then
        echo "$place: data read back differs from data written"; status=1
    fi
    rm -f $one.*
done
exit $status
"""
"""Processor, memory and disk; GPU and EFA are "not supported" where there are none."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    failed: tuple[str, ...] = ()
    """Failed checks with their findings. A check that cannot run is no failure."""
    results: tuple[dict[str, object], ...] = ()
    """One per check, for the log."""


@dataclass(frozen=True, kw_only=True)
class DeepCheck:
    cluster: Cluster
    instance: Instance
    slurms: SlurmClusters
    kubernetes: Clusters
    events: EventSink
    is_given_up: Callable[[], bool]

    @property
    def _is_compute(self) -> bool:
        return self.cluster.group(self.instance.group).slurm_role == COMPUTE

    def hold(self) -> None:
        """Hold new jobs: a maintenance reservation of Slurm, or HyperPod's label and taint."""
        if self._is_compute:
            self.slurms.of(self.cluster).reserve(self.instance.host_name)
        self.kubernetes.start_check(self.cluster.eks_arn, self.instance.instance_id)

    def is_free(self) -> bool:
        """Return True if no job of Slurm runs there, now or within a moment."""
        deadline = time.monotonic() + FREE_WITHIN_S
        while self._is_compute and not self.slurms.of(self.cluster).is_free(self.instance.host_name):
            if time.monotonic() > deadline or self.is_given_up():
                return False
            time.sleep(FREE_POLL_S)
        return True

    def release(self, *, passed: bool) -> None:
        if self._is_compute:
            self.slurms.of(self.cluster).release(self.instance.host_name)
        self.kubernetes.end_check(self.cluster.eks_arn, self.instance.instance_id, passed=passed)

    def run(self, node: Node, *, checks: tuple[str, ...]) -> Outcome:
        """Run the checks in order; results go to the instance's log and CloudWatch."""
        results = tuple(self._one(node, check) for check in checks)
        lines = [json.dumps(one) for one in results]
        node.inside(NODE_LOG).append("".join(f"{line}\n" for line in lines).encode())
        self.events.note(
            group=f"/aws/sagemaker/Clusters/{self.cluster.name}/{self.cluster.cluster_id}",
            stream=f"DeepHealthCheckResults/{self.instance.instance_id}",
            lines=lines,
        )
        failed = tuple(f"{one['check']}: {one['details']}" for one in results if one["result"] == "Failed")
        return Outcome(failed=failed, results=results)

    def _one(self, node: Node, check: str) -> dict[str, object]:
        began = time.monotonic()
        try:
            result, details = self._stress(node) if check == STRESS else self._reach(node)
        except (OSError, subprocess.SubprocessError) as error:
            # Nothing is known of the node then, so nothing is held against it.
            result, details = "NotRun", str(error)
        return {
            "instance_id": self.instance.instance_id,
            "check": check,
            "result": result,
            "details": details,
            "duration_s": round(time.monotonic() - began, 3),
        }

    def _stress(self, node: Node) -> tuple[str, str]:
        has_agent = node.inside(AGENT).exists()
        command = [AGENT, "check", "--deep", "--json"] if has_agent else ["/bin/sh", "-c", _STRESS]
        done = node.run(command, timeout_s=CHECK_TIMEOUT_S)
        reported = " ".join((done.stdout.strip() or done.stderr.strip()).split())[-2000:]
        by = "the health agent's check" if has_agent else "the built-in check"
        if done.returncode == 0:
            return "Passed", by
        return ("Failed" if done.returncode == 1 else "NotRun"), f"{by} ended with {done.returncode}: {reported}"

    def _reach(self, node: Node) -> tuple[str, str]:
        """Check reachability in the group: an instance that reaches none is at fault, one that misses some is not."""
        peers = [
            one.address
            for one in self.cluster.instances
            if one.group == self.instance.group and one != self.instance and one.status == RUNNING
        ]
        if not peers:
            return "NotRun", "no other instance of the group runs"
        script = 'exec 3<>"/dev/tcp/$1/22"'
        limit = f"{REACH_TIMEOUT_S:g}"
        reached = [
            peer
            for peer in peers
            if node.run(["timeout", limit, "bash", "-c", script, "reach", peer], timeout_s=30).returncode == 0
        ]
        reported = f"{len(reached)} of {len(peers)} instances of the group are reachable"
        return ("Passed" if reached else "Failed"), reported
