"""A real Kubernetes under the embedded EKS: its binaries, a cluster's control plane, its nodes, and who is let in."""

__all__: list[str] = []
