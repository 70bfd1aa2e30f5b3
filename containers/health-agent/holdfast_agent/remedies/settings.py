from dataclasses import dataclass

from holdfast_agent.configuration import Configuration


@dataclass(frozen=True)
class RemedySettings:
    """Keys of the agent's configuration that remedies need; ``is_controller``: this node is never taken."""

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
        """From the configuration; the way of labels needs Kubernetes, whatever the orchestrator."""
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
