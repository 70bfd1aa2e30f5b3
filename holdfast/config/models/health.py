from typing import Literal

from holdfast.config.models import fields
from holdfast.config.models.base import Model


class Health(Model):
    """The health agent, which runs on every node that has lifecycle scripts."""

    enabled: bool = True
    """Whether the agent runs. Default: true"""
    mode: Literal["observe", "act"] = "observe"
    """observe: reports faults and the remedies that it would request, and changes nothing. act: also hands over the
    ranks of a faulty node and requests a reboot or replacement from HyperPod. Default: observe"""
    breaker_share: fields.Share = 0.1
    """The part of the nodes that may be rebooted or replaced within an hour, at least one; the others need manual
    approval. Default: 0.1"""
    checks: fields.ScriptPaths = ()
    """Executables of your own that the agent runs again and again, by paths from this file's folder; exit code 0 is
    healthy, 1 a finding, 2 unknown. Default: none"""
    burn_in_seconds: fields.BurnInSeconds = 120
    """How long a new compute node is tried out before it joins. A node that fails does not join. 0: not at all.
    Default: 120"""
    metrics_port: fields.OwnPort | None = None
    """TCP port at which the agent of each node serves its metrics to a Prometheus of yours, which has to show the token
    in /var/lib/holdfast-agent/metrics.token of that node. Default: none, they are not served"""
