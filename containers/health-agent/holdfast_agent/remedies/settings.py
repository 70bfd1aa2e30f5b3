"""What the hands and the decisions are told: which way, how many nodes at most, and who this node is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast_agent.configuration import Configuration, load


@dataclass(frozen=True)
class RemedySettings:
    """
    The keys of the agent's configuration that remedies need.

    Args:
        mode: ``remedies.mode``. Default: observe
        way: ``remedies.way``: who is asked to take the node. Default: none
        share: ``remedies.breaker_share``: of the nodes, within an hour. Default: 0.1
        orchestrator: ``cluster.orchestrator``: where all agents see what each has asked for. Default: slurm
        cluster: ``cluster.name``.
        host: ``node.host``: the node's name in Slurm or Kubernetes.
        instance_id: ``node.instance_id``.
        is_controller: ``controller.enabled``: this node is never taken. Default: False
    """

    mode: str = "observe"
    way: str = "none"
    share: float = 0.1
    orchestrator: str = "slurm"
    cluster: str = ""
    host: str = ""
    instance_id: str = ""
    is_controller: bool = False

    @staticmethod
    def of(configuration: Configuration) -> "RemedySettings":
        """From the agent's configuration; the way of labels needs Kubernetes, whatever is said of the orchestrator."""
        on_eks = configuration.cluster_orchestrator == "eks" or configuration.remedies_way == "label"
        host = configuration.node_host
        return RemedySettings(
            mode=configuration.remedies_mode,
            way=configuration.remedies_way,
            share=configuration.remedies_breaker_share,
            orchestrator="eks" if on_eks else "slurm",
            cluster=configuration.cluster_name,
            host=host if on_eks else host.partition(".")[0],
            instance_id=configuration.node_instance_id,
            is_controller=configuration.controller_enabled,
        )

    @staticmethod
    def read(*, config: Path, overrides: Sequence[str] = ()) -> "RemedySettings":
        """From the agent's file and KEY=VALUE pairs; raises ConfigurationError."""
        return RemedySettings.of(load(file=config if config.exists() else None, assignments=overrides))
