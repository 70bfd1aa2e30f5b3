"""Stages of ``holdfast up``, as its progress lines name them, in their order."""

from enum import StrEnum


class Stage(StrEnum):
    """Stage of a deployment; some occur only where needed."""

    CHECK = "check this machine"
    AWS = "start the embedded AWS"
    CONTROL_PLANE = "start the HyperPod control plane"
    SETTLE = "wait for the operation of an earlier command"
    BOOTSTRAP = "bootstrap the CDK"
    ADMINISTRATORS = "check the administrator roles of Kubernetes"
    COMPARE = "compare with what is deployed"
    SYNTH = "synthesise the stack"
    DEPLOY = "deploy the stack"
    NODES = "wait for the nodes"
    KUBECTL = "write the kubeconfig"
    MONITOR = "start Prometheus and Alertmanager"
