"""Amazon EKS: clusters, add-ons, node groups and access, as records. Nothing runs Kubernetes here."""

from holdfast.localcloud.aws.eks.service import Eks

__all__ = ["Eks"]
