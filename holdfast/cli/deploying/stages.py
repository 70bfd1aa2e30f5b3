"""The stages of ``holdfast up`` by their names, which its progress lines show, in their order."""

from enum import StrEnum


class Stage(StrEnum):
    """What a deployment goes through; some of it only where the environment or the local cloud needs it."""

    CHECK = "check this machine"
    AWS = "start the embedded AWS"
    CONTROL_PLANE = "start the HyperPod control plane"
    SETTLE = "wait for the operation of an earlier command"
    BOOTSTRAP = "bootstrap the CDK"
    ADMINISTRATORS = "find who administers Kubernetes"
    COMPARE = "compare with what is deployed"
    SYNTH = "synthesise the stack"
    DEPLOY = "deploy the stack"
    NODES = "wait for the nodes"
    KUBECTL = "tell kubectl of the cluster"
    MONITOR = "start Prometheus and Alertmanager"
